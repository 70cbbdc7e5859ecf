// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/runs/prompt"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/provider"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// patience is how long an outcome waits for those recorded before it while nothing else happens. Only a changed definition,
// in which those do not come, needs it.
const patience = time.Second

// player takes the place of everything that leaves the process.
type player struct {
	rec  *Recording
	cfg  *Config
	side map[string]bool // parallel agents, by name

	mu       sync.Mutex
	byAgent  map[string][]*item // those to take, in the order of the log; some of the first may be taken already
	byPlace  map[session.Address][]*item
	waiting  []*item // those that are not in the new log, in the order of the record; some of the others may be in it already
	taken    map[*item]bool
	logged   map[*item]bool
	current  map[session.Address]*item // the last one that was taken
	used     map[*genai.FunctionCall]bool
	ended    map[session.Address]bool
	asked    map[string]int // requests and outcomes, by agent
	changed  chan struct{}
	requests []Request
	problems []Difference
	tries    map[session.Address]int // attempts of the request of current
	real     map[string]model.LLM    // by name
}

// Request is a request to a model in a play.
type Request struct {
	Agent   string          `json:"agent"`
	Number  int             `json:"number"` // among those of the agent, from 1
	At      session.Address `json:"at"`
	Request *prompt.Request `json:"-"`
}

func newPlayer(rec *Recording, cfg *Config, def *definition.Definition) *player {
	p := &player{rec: rec, cfg: cfg, side: make(map[string]bool), waiting: rec.items,
		byAgent: make(map[string][]*item), byPlace: make(map[session.Address][]*item), taken: make(map[*item]bool), logged: make(map[*item]bool),
		current: make(map[session.Address]*item), used: make(map[*genai.FunctionCall]bool), ended: make(map[session.Address]bool),
		asked: make(map[string]int), changed: make(chan struct{}), tries: make(map[session.Address]int),
		real: make(map[string]model.LLM)}
	for a := range def.Root.All {
		p.side[a.Name] = a.Type == definition.TypeParallel
	}
	for _, x := range rec.items {
		p.byAgent[x.at.Agent()] = append(p.byAgent[x.at.Agent()], x)
		p.byPlace[x.at] = append(p.byPlace[x.at], x)
	}
	return p
}

// take returns the next recorded item of an agent at an address: the next one of the address or, if the record has none there,
// of the agent. It returns an error if there is none.
func (p *player) take(agent string, at session.Address) (*item, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[agent]++
	p.byPlace[at] = without(p.taken, p.byPlace[at])
	left := p.byPlace[at]
	if len(left) == 0 {
		p.byAgent[agent] = without(p.taken, p.byAgent[agent])
		left = p.byAgent[agent]
	}
	if len(left) == 0 {
		return nil, p.problem(at, "%s %s more often than recorded, which is %d times", agent, p.verb(agent), p.rec.count(agent))
	}
	p.taken[left[0]] = true
	p.current[at] = left[0]
	return left[0], nil
}

// without returns the items after the first ones that are in a set.
func without(set map[*item]bool, items []*item) []*item {
	for len(items) > 0 && set[items[0]] {
		items = items[1:]
	}
	return items
}

func (p *player) verb(agent string) string {
	if p.rec.asks[agent] {
		return "asks"
	}
	return "acts"
}

// problem notes a difference and returns it as an error. p.mu is held.
func (p *player) problem(at session.Address, format string, args ...any) error {
	d := Difference{At: at, Text: fmt.Sprintf(format, args...)}
	p.problems = append(p.problems, d)
	return errors.New(d.Text)
}

// count returns how many answers or outcomes of an agent are recorded.
func (rec *Recording) count(agent string) (n int) {
	for _, x := range rec.items {
		if x.at.Agent() == agent {
			n++
		}
	}
	return n
}

// wait waits until the items that were recorded before x in branches beside it are in the new log.
func (p *player) wait(ctx context.Context, x *item) error {
	for {
		p.mu.Lock()
		blocked, changed := x.cut || p.isBlocked(x), p.changed
		p.mu.Unlock()
		if !blocked {
			return nil
		}
		timer := time.NewTimer(patience)
		select {
		case <-changed:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
			return nil
		}
	}
}

// isBlocked reports whether an item before x in a branch beside it is still to come. p.mu is held.
func (p *player) isBlocked(x *item) bool {
	p.waiting = without(p.logged, p.waiting)
	for _, q := range p.waiting {
		if q == x || q.seq > x.seq {
			return false
		}
		if branch := p.otherBranch(q.at, x.at); branch != "" && !p.logged[q] && !p.ended[branch] {
			return true
		}
	}
	return false
}

// otherBranch returns the address of the branch of a parallel agent that has a, if b is in another branch of it.
func (p *player) otherBranch(a, b session.Address) session.Address {
	here, there := strings.Split(string(a), "/"), strings.Split(string(b), "/")
	i := 0
	for i < min(len(here), len(there)) && here[i] == there[i] {
		i++
	}
	if i == 0 || i >= len(here) || i >= len(there) || !p.side[session.Address(here[i-1]).Agent()] {
		return ""
	}
	last, _, _ := strings.Cut(here[i], "[")
	if other, _, _ := strings.Cut(there[i], "["); other == last {
		return "" // iterations of one branch
	}
	return session.Address(strings.Join(append(here[:i:i], last), "/"))
}

// hear notes an event of the new log.
func (p *player) hear(ev *session.Event) {
	if ev.Address == "" || ev.Partial {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	kind := mark.Kind("")
	if ev.Mark != nil {
		kind = ev.Mark.Kind
	}
	switch x := p.current[ev.Address]; {
	case kind == mark.KindStepStarted:
		delete(p.ended, ev.Address)
	case kind == mark.KindStepFinished:
		p.ended[ev.Address] = true
		if x != nil {
			p.logged[x] = true
		}
		delete(p.current, ev.Address)
	case kind == "" && x != nil && !x.outcome && drive.Answers(ev):
		p.logged[x] = true
	default:
		return
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

// failed is the error of a request that failed and was repeated.
func failed(x *item, n int) error {
	err := &model.APIError{Provider: "recorded", Message: "the recorded request failed", Retryable: true}
	if n < len(x.causes) {
		err.Status, err.Code = x.causes[n].Status, x.causes[n].Code
	}
	return err
}

// actor plays every model of one name.
type actor struct {
	*player
	name string
}

// Name returns the model's own name, because prices go by name.
func (a *actor) Name() string { return provider.OwnName(a.name) }

// Provider says that it asks nobody.
func (a *actor) Provider() string { return "scripted" }

// GenerateContent answers from the record.
func (a *actor) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		inv, ok := ctx.(agent.InvocationContext)
		if !ok {
			yield(nil, errors.New("the request names no agent"))
			return
		}
		name, at := inv.Agent().Name(), drive.At(inv).Address()
		x, again, err := a.next(name, at, req)
		if err == nil {
			err = a.wait(ctx, x)
		}
		if err == nil && a.cfg.Live[name] {
			real, err := a.open(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			real.GenerateContent(ctx, req, stream)(yield)
			return
		}
		switch {
		case err != nil:
		case again < x.fails:
			err = failed(x, again)
		case x.err != nil:
			err = x.err
		}
		if err != nil {
			yield(nil, err)
			return
		}
		for _, ev := range x.answers {
			if !yield(answerOf(ev), nil) {
				return
			}
		}
	}
}

// next returns the item that answers a request, and how many times the request has failed.
func (a *actor) next(name string, at session.Address, req *model.LLMRequest) (x *item, again int, err error) {
	a.mu.Lock()
	x, again = a.current[at], a.tries[at]
	if x != nil && again > 0 && again <= x.fails {
		a.step(at, x, again)
		a.mu.Unlock()
		return x, again, nil
	}
	a.mu.Unlock()
	asked, err := prompt.Take(req)
	if err != nil {
		return nil, 0, err
	}
	if x, err = a.take(name, at); err != nil {
		return nil, 0, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, Request{Agent: name, Number: a.asked[name], At: at, Request: asked})
	a.step(at, x, 0)
	return x, 0, nil
}

// step counts an attempt. p.mu is held.
func (a *actor) step(at session.Address, x *item, again int) {
	if a.tries[at] = again + 1; again >= x.fails || a.cfg.Live[x.at.Agent()] {
		delete(a.tries, at)
	}
}

// open returns the real model.
func (a *actor) open(ctx context.Context) (model.LLM, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.real[a.name] == nil {
		m, err := a.cfg.Model(context.WithoutCancel(ctx), a.name)
		if err != nil {
			return nil, err
		}
		a.real[a.name] = m
	}
	return a.real[a.name], nil
}

// answerOf returns the response of a model that an event of the log has.
func answerOf(ev *session.Event) *model.LLMResponse {
	out := ev.LLMResponse
	if c := out.Content; c != nil {
		out.Content = &genai.Content{Role: c.Role, Parts: slices.Clone(c.Parts)}
	}
	out.CustomMetadata = maps.Clone(out.CustomMetadata)
	maps.DeleteFunc(out.CustomMetadata, func(key string, _ any) bool { return strings.HasPrefix(key, "refrain:") })
	return &out
}

// standIn takes the place of an agent that acts outside; it returns nil for any other agent.
func (p *player) standIn(a *definition.Agent) (agent.Agent, error) {
	if !acts(a) {
		return nil, nil
	}
	return agent.New(agent.Config{Name: a.Name, Description: a.Description,
		Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				x, err := p.take(a.Name, drive.At(ctx).Address())
				if err == nil {
					err = p.wait(ctx, x)
				}
				if err != nil {
					yield(nil, err)
					return
				}
				for _, ev := range x.answers {
					if !yield(outcomeOf(ev), nil) {
						return
					}
				}
				if x.err != nil {
					yield(nil, x.err)
				}
			}
		}})
}

// outcomeOf copies what an event says and does.
func outcomeOf(ev *session.Event) *session.Event {
	out := &session.Event{LLMResponse: ev.LLMResponse, Author: ev.Author, Actions: ev.Actions, LongRunningToolIDs: ev.LongRunningToolIDs}
	out.Actions.StateDelta = maps.Clone(ev.Actions.StateDelta)
	delete(out.Actions.StateDelta, mark.KeyRun)
	askToLeave(&out.Actions, &ev.Actions)
	return out
}

// prepare makes an agent that asks a model use recorded answers of tools, and wait for nothing.
func (p *player) prepare(a *definition.Agent, cfg *llmagent.Config) {
	cfg.RequestRetry.Backoff, cfg.RequestRetry.MaxBackoff = 1, 1
	cfg.BeforeToolCallbacks = append(cfg.BeforeToolCallbacks, p.answer)
	sets := len(cfg.Toolsets) > 0
	cfg.Toolsets = nil
	for _, t := range a.LLM.Tools {
		sets = sets || t.MCP != nil
	}
	if !sets {
		return
	}
	for _, x := range p.rec.items { // those of the server that are known
		for _, c := range x.calls() {
			known := slices.ContainsFunc(cfg.Tools, func(t tool.Tool) bool { return t.Name() == c.Name })
			if x.at.Agent() == a.Name && !known && !ends(c.Name) {
				if t, err := stub(c.Name); err == nil {
					cfg.Tools = append(cfg.Tools, t)
				}
			}
		}
	}
}

// stub returns a tool that stands for one whose description is not known here.
func stub(name string) (tool.Tool, error) {
	return functiontool.New(functiontool.Config{Name: name, Description: "Stands in for " + name + "."},
		func(tool.Context, struct{}) (map[string]any, error) { return map[string]any{}, nil })
}

// answer gives the recorded answer of a tool.
func (p *player) answer(ctx agent.Context, t tool.Tool, args map[string]any) (map[string]any, error) {
	if ends(t.Name()) {
		return nil, nil
	}
	at := drive.At(ctx).Address()
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.current[at]
	var call *genai.FunctionCall
	var ending bool
	if x != nil {
		for _, c := range x.calls() {
			ending = ending || ends(c.Name)
			// Calls with the same arguments run at once, in any order: the ID tells them apart.
			if id := ctx.FunctionCallID(); c.Name == t.Name() && !p.used[c] && text(c.Args) == text(args) && (call == nil || c.ID == id) {
				call = c
			}
		}
	}
	result, ok := x.result(call)
	if !ok {
		return nil, p.problem(at, "%s calls %s(%s), which the record does not have", at.Agent(), t.Name(), text(args))
	}
	first := !slices.ContainsFunc(x.calls(), func(c *genai.FunctionCall) bool { return p.used[c] })
	p.used[call] = true
	if first {
		for _, ev := range x.tools {
			apply(ctx.Actions(), &ev.Actions, !ending)
		}
	}
	return result, nil
}

// result returns the last answer of a call.
func (x *item) result(call *genai.FunctionCall) (found map[string]any, ok bool) {
	if call == nil {
		return nil, false
	}
	for _, ev := range x.tools {
		if ev.Content == nil {
			continue
		}
		for _, part := range ev.Content.Parts {
			if part != nil && part.FunctionResponse != nil && part.FunctionResponse.ID == call.ID {
				found, ok = part.FunctionResponse.Response, true
			}
		}
	}
	return found, ok
}

// apply adds what recorded tools have done to the actions of a call.
func apply(to, from *session.EventActions, leaves bool) {
	for key, v := range from.StateDelta {
		if to.StateDelta == nil {
			to.StateDelta = make(map[string]any)
		}
		to.StateDelta[key] = v
	}
	if to.ArtifactDelta == nil {
		to.ArtifactDelta = maps.Clone(from.ArtifactDelta)
	} else {
		maps.Copy(to.ArtifactDelta, from.ArtifactDelta)
	}
	if leaves {
		to.SkipSummarization = to.SkipSummarization || from.SkipSummarization
		askToLeave(to, from)
	}
}

// askToLeave asks to leave the loop as recorded actions do. Whether the loop allows it is decided again.
func askToLeave(to, from *session.EventActions) {
	x := from.Exit
	to.Escalate = to.Escalate || from.Escalate || x != nil && x.Refused != ""
	if x != nil {
		to.Exit = &session.Exit{Reason: x.Reason, Score: x.Score, Status: x.Status, Scope: x.Scope, Plain: x.Plain}
	}
}

func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil || string(data) == "null" {
		return "{}"
	}
	return string(data)
}
