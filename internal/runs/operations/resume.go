// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/runs/prompt"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// ResumeRequest says how a run continues.
type ResumeRequest struct {
	// Definition and Text give the run another definition from here on.
	Definition string `json:"definition,omitempty" jsonschema:"the name of a definition for the rest of the run"`
	Text       string `json:"text,omitempty" jsonschema:"a definition as YAML for the rest of the run"`
	// AddIterations raises the limit of iterations; Limits replaces limits. With either, a run that a
	// limit has stopped continues.
	AddIterations uint   `json:"add_iterations,omitempty" jsonschema:"how many iterations to add to the limit"`
	Limits        Limits `json:"limits,omitzero" jsonschema:"limits in place of those that the run has"`
	// Retry retries the failed step of a failed run.
	Retry bool `json:"retry,omitempty" jsonschema:"try the failed step of a failed run again"`
}

// Resume continues a run.
func (r *Runs) Resume(ctx context.Context, id string, req *ResumeRequest) error {
	return r.change(ctx, "resume", id, func() error { return r.resume(ctx, id, req, true) })
}

// resume continues a run, or refuses that if too many runs wait. An answer of a person is never refused.
func (r *Runs) resume(ctx context.Context, id string, req *ResumeRequest, refusable bool) error {
	if r.closing.Load() {
		return supervisor.ErrClosed
	}
	one, err := r.Session(ctx, id)
	if err != nil {
		return err
	}
	view := session.ViewOf(one)
	run := session.RunOf(view)
	unchanged := *req == (ResumeRequest{})
	if run != nil && run.Driver != "" && !(r.mine(run) && (!unchanged || run.Status.IsFinal())) {
		if !unchanged {
			return problem.New(http.StatusConflict, "other_driver", "The run is not driven here", "it belongs to %s, which "+
				"continues it as it is; resume it without a change", run.Driver)
		}
		if err := r.Accepted(ctx, id); err != nil {
			return err
		}
		return r.hand(ctx, id, run.Driver)
	}
	view.Log().CacheOutline()
	p, err := program.Of(view)
	if err != nil {
		return noProgram("The run cannot be resumed here", err)
	}
	if p.Dir != r.Dir {
		return problem.New(http.StatusConflict, "another_folder", "The run was started in another folder",
			"it was started in %s; resume it there with: %s resume %s", p.Dir, cmp.Or(p.Program, "refrain"), id)
	}
	change := &program.Change{Definition: r.other(ctx, req), AddIterations: req.AddIterations, Retry: req.Retry}
	if change.Limits, err = req.Limits.given(); err != nil {
		return err
	}
	if req.AddIterations > 0 && req.Limits.MaxIterations != nil {
		return problem.Bad("give either add_iterations or limits.max_iterations")
	}
	def, opts, err := p.Apply(change, view)
	if err != nil {
		return p.Otherwise(&r.Code, refusal(err))
	}
	if err := r.accepted(ctx, p, def, view); err != nil {
		return err
	}
	switch {
	case r.mine(run) && !r.byWorkers(p, def):
		return problem.New(http.StatusConflict, "other_driver", "The run is not driven here", "the workers of a cluster take no text of a "+
			"client, and no definition with a workspace: fork the run with it")
	case r.mine(run):
		return r.askWorkers(ctx, id, &opts)
	case unchanged && run != nil && !run.Status.IsFinal() && r.byWorkers(p, def):
		return r.hand(ctx, id, r.Driver)
	}
	made, err := p.Build(ctx, r.env(), def) // before anything is written
	if err != nil {
		return CannotBuild(r.Here(err))
	}
	opts.Agents, opts.Refusable = made, refusable
	_, err = r.Supervisor.Resume(ctx, id, opts)
	return err
}

// noProgram is the error of a run whose log does not have what it was started with.
func noProgram(title string, err error) error {
	if errors.Is(err, supervisor.ErrNotFound) {
		return err
	}
	return problem.New(http.StatusUnprocessableEntity, "no_definition", title, "%v", err)
}

// refusal is the problem of a change that a run cannot have. Other errors it returns as they are.
func refusal(err error) error {
	change, ok := errors.AsType[*program.ChangeError](err)
	if !ok {
		return err
	}
	switch change.Refusal {
	case program.CannotAdd:
		return problem.Bad("add_iterations: %v", err)
	case program.NotFailed:
		return problem.New(http.StatusConflict, "not_failed", "The run has not failed", "it has completed")
	case program.HasFailed:
		return problem.New(http.StatusConflict, "failed", "The run has failed", "a higher limit does not change that; "+
			"with retry the failed step is tried again")
	}
	status := http.StatusConflict
	if change.Refusal == program.BadLimits {
		status = http.StatusUnprocessableEntity
	}
	return problem.New(status, "bad_limits", "The run cannot have these limits", "%v", err)
}

// other returns what reads the definition that a request has; nil if it has none.
func (r *Runs) other(ctx context.Context, req *ResumeRequest) func(*program.Program) (*definition.Definition, error) {
	if req.Definition == "" && req.Text == "" {
		return nil
	}
	return func(p *program.Program) (*definition.Definition, error) {
		next, def, err := r.program(ctx, req.Definition, req.Text)
		if err != nil {
			return nil, err
		}
		p.File, p.Path, p.Files, p.Untrusted = next.File, next.Path, next.Files, p.Untrusted || next.Untrusted
		return def, nil
	}
}

// wake continues a run that has its answers, unless a process drives it or it cannot continue
// here. The process that paused the run drives it for a moment longer, and may or may not
// accept the answers.
func (r *Runs) wake(ctx context.Context, id string) error {
	over := time.After(LetsGo)
	for {
		held, err := r.Supervisor.Driver(ctx, id)
		if err != nil {
			return err
		}
		if held == nil {
			if err = r.resume(ctx, id, &ResumeRequest{}, false); !errors.Is(err, supervisor.ErrUnderWay) {
				if errors.Is(err, supervisor.ErrOver) {
					err = nil
				}
				return err
			}
		}
		one, err := r.Brief(ctx, id, 1)
		if err != nil {
			return err
		}
		if run := session.RunOf(one); run == nil || run.Status != mark.RunWaiting {
			return nil // it goes on
		}
		select {
		case <-over:
			return nil // whoever drives it has the answers
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// LetsGo is how long a process may take to release a run that waits.
const LetsGo = 10 * time.Second

// ForkRequest says where to fork a run, and how the fork continues.
type ForkRequest struct {
	// Iteration and Loop, or Seq, name the place; the default is after the last iteration.
	// Iteration 0 is before the first one.
	Iteration *int            `json:"iteration"`
	Loop      session.Address `json:"loop"`
	Seq       int64           `json:"seq"`
	// Resume continues the fork, also with another definition or other limits.
	Resume bool `json:"resume"`
	ResumeRequest
}

// Fork makes a new run from the beginning of another, and returns its ID. The fork is paused, unless the
// request resumes it. A fork that cannot continue is not kept.
func (r *Runs) Fork(ctx context.Context, id string, req *ForkRequest) (forked string, err error) {
	err = r.Change(ctx, "fork", func() (string, error) {
		forked, err = r.fork(ctx, id, req)
		return forked, err
	})
	return forked, err
}

func (r *Runs) fork(ctx context.Context, id string, req *ForkRequest) (string, error) {
	at := supervisor.Checkpoint{Loop: req.Loop, Seq: req.Seq}
	if n := req.Iteration; n != nil {
		at.Iteration, at.First = *n, *n == 0
	}
	if req.Iteration != nil && req.Seq != 0 || at.Iteration < 0 || req.Seq < 0 {
		return "", problem.Bad("give either an iteration, from 0, or a seq, from 1")
	}
	if !req.Resume && req.ResumeRequest != (ResumeRequest{}) || req.Retry {
		return "", problem.Bad("a fork that goes on may have another definition and limits: give them with resume: true")
	}
	var p *program.Program
	var def *definition.Definition
	if read := r.other(ctx, &req.ResumeRequest); read != nil {
		run, err := r.Brief(ctx, id, 0)
		if err != nil {
			return "", err
		}
		if p, err = program.Of(run); err != nil {
			return "", noProgram("The run cannot be continued here", err)
		}
		if def, err = read(p); err != nil {
			return "", err
		}
	}
	forked, err := ForkFitting(ctx, r.Supervisor, id, at, r.Code, p, def)
	if diverged, ok := errors.AsType[*agent.DivergedError](err); ok {
		return "", problem.New(http.StatusConflict, "does_not_fit", "The definition does not fit what the run has done", "%s", Misfit(diverged))
	}
	if err != nil || !req.Resume {
		return forked, err
	}
	if err := r.resume(ctx, forked, &req.ResumeRequest, true); err != nil {
		return "", errors.Join(err, supervisor.Remove(ctx, r.Service, r.Key(forked)))
	}
	return forked, nil
}

// ForkFitting forks a run if the fork can continue with a definition, which is that of the program. A nil
// def means the definition of the run, which always fits. It fails with an [*agent.DivergedError] if the
// definition differs from the run's log up to the checkpoint; see [Misfit].
func ForkFitting(ctx context.Context, sup *supervisor.Supervisor, id string, at supervisor.Checkpoint, code program.Code,
	p *program.Program, def *definition.Definition) (string, error) {
	if def == nil {
		return sup.Fork(ctx, id, at)
	}
	return sup.ForkIf(ctx, id, at, func(events []*session.Event) error { return prompt.Fits(ctx, code, events, p, def) })
}

// Misfit returns why a run was not forked with a definition.
func Misfit(e *agent.DivergedError) string {
	return fmt.Sprintf("at %s the log has %s; now there is: %s. No fork was made: fork at an earlier place, or with a definition "+
		"that has the same steps up to there", e.Address, e.Want, e.Got)
}

// AnswerRequest answers a question of a run.
type AnswerRequest struct {
	// Question is the ID of the question; it may be empty if only one question is open.
	Question string          `json:"question"`
	Value    json.RawMessage `json:"value"`
	Reason   string          `json:"reason"`
	// ClaimedBy is who answers, as the client says it. The log also has the name of the [Caller].
	ClaimedBy string `json:"by"`
	// Wait keeps Answer from continuing a run that no process drives.
	Wait bool `json:"wait"`

	// Key is the key of the A2A message.
	Key string `json:"-"`
}

// mostClaim is how many characters of [AnswerRequest.ClaimedBy] the log keeps.
const mostClaim = 128

// Answer answers a question of the run. A run that no process drives continues when it has all
// answers that it waits for.
func (r *Runs) Answer(ctx context.Context, id string, req *AnswerRequest) error {
	open, err := r.Supervisor.Questions(ctx, id)
	if err == nil {
		err = r.Accepted(ctx, id)
	}
	if err != nil {
		return err
	}
	if req.Question == "" && len(open) == 1 {
		req.Question = open[0].ID
	}
	a := mark.Answer{ID: req.Question, Value: req.Value, Reason: req.Reason, ClaimedBy: brief.Clip(req.ClaimedBy, mostClaim), Key: req.Key}
	if c := CallerOf(ctx); c != nil {
		a.By = c.Name
	}
	for _, q := range open {
		if q.ID != a.ID {
			continue
		}
		if err := q.Check(&a); err != nil {
			return problem.New(http.StatusUnprocessableEntity, "bad_answer", "The answer does not fit", "%v", err)
		}
	}
	var left []mark.Question
	err = r.change(ctx, "answer", id, func() error { left, err = r.Supervisor.Answer(ctx, id, a); return err })
	if err != nil || len(left) > 0 || req.Wait {
		return err
	}
	return r.wake(ctx, id)
}

// Words for yes and no.
var (
	yes = []string{"yes", "y", "true", "ok", "approve", "approved"}
	no  = []string{"no", "n", "false", "reject", "rejected"}
)

// saidForm converts a text into the answer to a form: a word for yes or no, "cancel", a JSON object with the fields, or the
// text of the only field that has to be given. It returns nil for another text.
func saidForm(q *mark.Question, text, word string) json.RawMessage {
	action := func(word string) json.RawMessage { return json.RawMessage(`{"action":"` + word + `"}`) }
	fields, err := q.Fields()
	if err != nil {
		return nil
	}
	texts := map[string]string{}
	switch {
	case slices.Contains(no, word), word == mark.FormDecline:
		return action(mark.FormDecline)
	case word == mark.FormCancel:
		return action(mark.FormCancel)
	case slices.Contains(yes, word), word == mark.FormAccept:
	case strings.HasPrefix(text, "{"):
		if _, err := (&mark.Answer{Value: json.RawMessage(text)}).Form(); err == nil || !json.Valid([]byte(text)) {
			return nil
		}
		return json.RawMessage(`{"action":"` + mark.FormAccept + `","content":` + text + `}`)
	default:
		required := slices.DeleteFunc(slices.Clone(fields), func(f mark.FormField) bool { return !f.Required })
		switch {
		case len(required) == 1:
			texts[required[0].Name] = text
		case len(fields) == 1:
			texts[fields[0].Name] = text
		default:
			return nil
		}
	}
	answer, err := q.Fill(texts)
	if err != nil {
		return nil
	}
	return answer
}

// AnswerValue converts a text into the value of an answer to a question. It returns a text that does not fit
// the kind of question unchanged, so that [mark.Question.Check] refuses it.
func AnswerValue(q *mark.Question, text string) json.RawMessage {
	short := strings.TrimSpace(text)
	word := strings.ToLower(strings.TrimRight(short, ".!"))
	var value any = text
	switch q.Kind {
	case mark.AskText:
		for _, option := range q.Options {
			if strings.EqualFold(option, short) {
				value = option
			}
		}
		if slices.Contains(q.Options, short) {
			value = short // another one may differ by its capitals only
		}
	case mark.AskApproval, mark.AskConfirmation:
		isYes := slices.Contains(yes, word)
		switch {
		case !isYes && !slices.Contains(no, word):
		case q.Kind == mark.AskApproval:
			value = isYes
		default:
			value = map[string]any{"confirmed": isYes}
		}
	case mark.AskResolution:
		if word != mark.ResolveResult && slices.Contains(q.Options, word) {
			value = mark.Resolution{Action: word}
		}
	case mark.AskForm:
		if form := saidForm(q, short, word); form != nil {
			return form
		}
	}
	if value == any(text) && q.Kind != mark.AskText && json.Valid([]byte(short)) {
		return json.RawMessage(short)
	}
	data, _ := json.Marshal(value) // all of these have JSON
	return data
}
