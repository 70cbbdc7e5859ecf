// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"time"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// A judge is an ordinary run, whose definition has an agent for each vote: so its answers are in its log, it continues after a crash, and
// its price is known as that of any run.

const (
	// judgeTime limits one run of a judge.
	judgeTime = 15 * time.Minute
	// judgeTokens limits the answer to a prompt, with the thoughts of the model, and promptBytes is more than a prompt has.
	judgeTokens = 4096
	promptBytes = 8 << 10
	// judgesAtOnce is how many votes of a run are asked for at a time.
	judgesAtOnce = 6
	// callsOfVote is the most requests for a vote: two turns, because an answer may not fit, of three attempts each.
	callsOfVote = 6
)

// Use is what judges have used.
type Use struct {
	// Cost is nil if a price is unknown.
	Cost   *float64 `json:"cost"`
	Tokens int64    `json:"tokens"`
	Calls  int64    `json:"calls"`
}

// judgeDefinition returns the text of the definition that answers a question. A prompt may have placeholders, which are not those of the
// definition, so that it is in the state.
func (e *Eval) judgeDefinition(q *check.Question) string {
	state := make(map[string]any)
	var agents []any
	for i, prompt := range q.Prompts {
		key := fmt.Sprintf("prompt_%d", i+1)
		state[key] = prompt
		for v := range q.Samples {
			name := voteKey(i, v)
			agents = append(agents, map[string]any{
				"name": name, "model": q.Model, "context": "none", "instructions": "{{" + key + "}}", "output_key": name, "max_tokens": judgeTokens,
				"output_schema": map[string]any{"type": "object", "required": []string{"reason", "answer"}, "properties": map[string]any{
					"reason": map[string]any{"type": "string"}, "answer": map[string]any{"type": "string", "enum": q.Choices}}},
			})
		}
	}
	text := map[string]any{"name": "judge", "type": "parallel", "max_concurrency": judgesAtOnce, "max_model_calls": callsOfVote * len(agents), "state": state,
		"sub_agents": agents}
	if price, ok := e.priceOf(q.Model); ok {
		text["prices"] = budget.Prices{q.Model: price}
	}
	data, err := json.Marshal(text)
	if err != nil {
		panic("eval: a judge that is no JSON: " + err.Error()) // texts and numbers alone
	}
	return string(data)
}

// voteKey is the name of the agent that gives a vote, and the key of its answer.
func voteKey(prompt, vote int) string { return fmt.Sprintf("vote_%d_%d", prompt+1, vote+1) }

// priceOf returns the price of a judge: that of the versions, or else the list price.
func (e *Eval) priceOf(model string) (budget.Price, bool) {
	for _, prices := range e.prices {
		if p, ok := prices.Of(model); ok {
			return p, true
		}
	}
	l, ok := budget.Listed(model)
	return l.Price, ok
}

// judge returns what answers a question. It fails for a model that cannot be named.
func (e *Eval) judge(q *check.Question) (*side, error) {
	text := e.judgeDefinition(q)
	e.judgesMu.Lock()
	defer e.judgesMu.Unlock()
	if s := e.judges[text]; s != nil {
		return s, nil
	}
	dir, err := filepath.Abs(".")
	if err != nil {
		return nil, err
	}
	p := &program.Program{Dir: dir, Root: dir}
	def, err := p.ReadOwn("judge", program.Text(text))
	if err != nil {
		return nil, fmt.Errorf("the judge %s: %w", q.Model, err)
	}
	s := &side{def: def}
	if s.started, err = p.Started(def); err != nil {
		return nil, err
	}
	if e.judges == nil {
		e.judges = make(map[string]*side)
	}
	e.judges[text] = s
	return s, nil
}

// Judges returns the programs of the judges, so that a caller can find out what is missing to run them.
func (e *Eval) Judges() (all []*program.Program, err error) {
	for _, s := range e.judges {
		prog, err := program.Decode(s.started)
		if err != nil {
			return nil, err
		}
		all = append(all, prog)
	}
	return all, nil
}

// prepareJudges reads the definitions of the judges. It fails for a check that names no model.
func (e *Eval) prepareJudges() error {
	for i := range e.Set.Cases {
		c := &e.Set.Cases[i]
		for _, q := range append(e.grader.Asks(c, false), e.grader.Asks(c, true)...) {
			if q.Model == "" {
				return fmt.Errorf("a check of case %q asks a judge, and no model is named: write judge: PROVIDER/NAME into the file of cases, "+
					"or give --judge-model", c.ID)
			}
			if _, err := e.judge(q); err != nil {
				return err
			}
		}
	}
	return nil
}

// judgeFailure says why a judge has no answer.
type judgeFailure struct{ why string }

func (e *judgeFailure) Error() string { return e.why }

// panel asks judges about a case-run, or about a pair of them, and counts what they use.
type panel struct {
	e *Eval
	// The IDs of the runs of judges are made of these: the eval that has run the case, the version, the case, and the number.
	eval, side, of string
	n              int

	use    *Use                      // nil if none was asked
	given  map[string][][]check.Vote // by run; two checks with the same question have the same votes
	failed error                     // the first error: a *judgeFailure, or that of ctx or of the store
}

// panel returns judges of a case-run, or of a pair of them, of an eval.
func (e *Eval) panel(eval, side, of string, n int) *panel {
	return &panel{e: e, eval: eval, side: side, of: of, n: n, given: make(map[string][][]check.Vote)}
}

// ask implements [check.Ask]. The ID of a judge has a hash of what it is asked, so that the answers are found again after a crash.
func (p *panel) ask(ctx context.Context, q *check.Question) ([][]check.Vote, error) {
	votes, err := p.votes(ctx, q)
	if p.failed == nil {
		p.failed = err
	}
	return votes, err
}

func (p *panel) votes(ctx context.Context, q *check.Question) ([][]check.Vote, error) {
	if p.failed != nil {
		return nil, p.failed
	}
	by, err := p.e.judge(q)
	if err != nil {
		return nil, err
	}
	asked, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(asked)
	j := &job{of: &check.Case{ID: "judge", Turns: []check.Turn{{Input: q.Message}}}, by: by, limit: judgeTime,
		run: runID(p.eval, p.side, p.of, fmt.Sprintf("%d.judge-%s", p.n, hex.EncodeToString(sum[:4])))}
	if votes := p.given[j.run]; votes != nil {
		return votes, nil
	}
	if err := p.e.retry(ctx, j); err != nil {
		return nil, err
	}
	why, err := p.e.play(ctx, j)
	if err != nil {
		return nil, err
	}
	view, err := p.e.session(ctx, j.run)
	if err != nil {
		return nil, err
	}
	if view == nil {
		return nil, &judgeFailure{"it has not begun: " + why}
	}
	s, err := subjectOf(j.of, view)
	if err != nil {
		return nil, err
	}
	p.count(s)
	if why != "" {
		return nil, &judgeFailure{why}
	}
	votes, err := readVotes(q, maps.Collect(view.State().All()))
	if err != nil {
		return nil, err
	}
	p.given[j.run] = votes
	return votes, nil
}

// retry continues a judge that has failed before, such as for want of a key.
func (e *Eval) retry(ctx context.Context, j *job) error {
	view, err := e.session(ctx, j.run)
	if err != nil {
		return err
	}
	if last, _ := lastRun(view); last == nil || last.Status != mark.RunFailed {
		return nil
	}
	run, err := e.Supervisor.Resume(ctx, j.run, supervisor.ResumeOptions{Continue: true})
	if err != nil {
		return err
	}
	_, err = e.wait(ctx, j, run, nil)
	return err
}

// count adds the usage of a judge.
func (p *panel) count(s *check.Subject) {
	if p.use == nil {
		p.use = &Use{Cost: new(0.0)}
	}
	p.use.Calls += s.Usage.Calls
	p.use.Tokens += s.Usage.InputTokens + s.Usage.OutputTokens
	if s.Usage.Cost == nil {
		p.use.Cost = nil
	} else if p.use.Cost != nil {
		*p.use.Cost += *s.Usage.Cost
	}
}

// readVotes returns the votes in the state of a judge that has ended.
func readVotes(q *check.Question, state map[string]any) ([][]check.Vote, error) {
	all := make([][]check.Vote, len(q.Prompts))
	for i := range q.Prompts {
		for v := range q.Samples {
			answer, _ := state[voteKey(i, v)].(map[string]any)
			var vote check.Vote
			vote.Answer, _ = answer["answer"].(string)
			vote.Reason, _ = answer["reason"].(string)
			if vote.Answer == "" {
				return nil, &judgeFailure{"a vote is missing"}
			}
			all[i] = append(all[i], vote)
		}
	}
	return all, nil
}

// why returns why a judge has failed. Errors of ctx and of the store are no failures of a judge.
func (p *panel) why() (string, error) {
	if f, ok := errors.AsType[*judgeFailure](p.failed); ok {
		return "the judge: " + f.why, nil
	}
	return "", p.failed
}
