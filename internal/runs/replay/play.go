// SPDX-License-Identifier: Apache-2.0

// Package replay plays a recorded run again. The answers of models, of commands and of people come from the log of the run, so
// that a play asks no model and starts no process. What it comes to is compared with the record.
//
//	rec, err := replay.Read(run, &code)
//	if err != nil {
//		return err
//	}
//	rep, err := rec.Replay(ctx, replay.Config{Definition: changed})
//	if err == nil && !rep.Same() {
//		rep.WriteText(os.Stdout)
//	}
package replay

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/seal/statekey"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/store"
	"github.com/refrain-dev/refrain/tool"
)

// Config says how to replay.
type Config struct {
	// Definition takes the place of the recorded one; nil means the recorded one.
	Definition *definition.Definition
	// Code is the Go code that definitions can name. None of it runs but the descriptions of its tools.
	Code program.Code
	// Exact makes changed requests differences.
	Exact bool
	// Live has the agents that ask their real models, by name, and Model opens these models.
	Live  map[string]bool
	Model func(ctx context.Context, name string) (model.LLM, error)
}

// ending is what a run has come to.
type ending struct {
	failed            bool
	err               string
	answer            string
	began, state      map[string]any // at the start and at the end
	stops, iterations []loopEnd
	calls             map[string][]string // of tools with their answers, by agent
}

// loopEnd is what a loop, or an iteration of it, has come to.
type loopEnd struct {
	at   session.Address
	text string
}

const app = "replay"

// play runs a definition with the recorded answers.
func (rec *Recording) play(ctx context.Context, cfg *Config, def *definition.Definition) (*player, *ending, error) {
	p := newPlayer(rec, cfg, def)
	svc := session.InMemoryService()
	if err := rec.open(ctx, svc); err != nil {
		return nil, nil, err
	}
	root, err := p.build(ctx, def)
	if err != nil {
		return nil, nil, err
	}
	r, err := runner.New(runner.Config{AppName: app, Agent: root, SessionService: svc, Durable: true})
	if err != nil {
		return nil, nil, err
	}
	message, state := rec.Start(def)
	var failed error
	run := ""
	for ev, err := range r.Run(ctx, app, app, message, def.RunConfig(rec.program.Limits), runner.WithStateDelta(state)) {
		if err != nil {
			failed = err
			continue
		}
		run = ev.InvocationID
		p.hear(ev)
	}
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	got, err := svc.Get(ctx, &session.GetRequest{AppName: app, UserID: app, SessionID: app})
	if err != nil {
		return nil, nil, err
	}
	view := session.ViewOf(got.Session)
	var events []*session.Event
	for ev := range view.Log().All() {
		if ev.InvocationID == run {
			events = append(events, ev)
		}
	}
	if err := view.Err(); err != nil {
		return nil, nil, err
	}
	end, err := endingOf(events, state, statekey.OwnState(view.State()), rec.asks)
	if end != nil && failed != nil {
		end.failed, end.err = true, failed.Error()
	}
	return p, end, err
}

// open makes the session, with the events of its earlier runs.
func (rec *Recording) open(ctx context.Context, svc session.Service) error {
	made := session.CreateRequest{AppName: app, UserID: app, SessionID: app, State: maps.Clone(rec.initial)}
	if len(rec.before) > 0 {
		_, err := store.Start(ctx, svc, &session.StartRequest{CreateRequest: made, Events: rec.before})
		return err
	}
	_, err := svc.Create(ctx, &made)
	return err
}

// build makes the agents of a definition with stand-ins.
func (p *player) build(ctx context.Context, def *definition.Definition) (agent.Agent, error) {
	cfg := p.rec.program.BuildConfig()
	cfg.DefaultModel = cmp.Or(cfg.DefaultModel, "none/none")
	cfg.Getenv = func(string) string { return "replay" }
	cfg.CallbackFailed = func(error) {}
	cfg.Agents = make(map[string]definition.NewAgent)
	cfg.Tools = slices.Clone(p.cfg.Code.Tools)
	for a := range def.Root.All {
		if a.Func != "" {
			cfg.Agents[a.Func] = agent.New // a stand-in replaces it
		}
		if a.LLM == nil {
			continue
		}
		for _, t := range a.LLM.Tools {
			if t.Func == "" || slices.ContainsFunc(cfg.Tools, func(f tool.Tool) bool { return f.Name() == t.Func }) {
				continue
			}
			f, err := stub(t.Func)
			if err != nil {
				return nil, fmt.Errorf("stand-in for function %q: %w", t.Func, err)
			}
			cfg.Tools = append(cfg.Tools, f)
		}
	}
	cfg.Model = func(_ context.Context, name string) (model.LLM, error) {
		return &actor{p, cmp.Or(p.rec.program.Model, name)}, nil
	}
	// A branch that waits for a later one would keep its place, so all run at once.
	cfg.StandIns = definition.StandIns{NoCallbacks: true, NoToolServers: true, AllBranches: true, Agent: p.standIn, LLM: p.prepare, Loop: untimed}
	return def.Build(ctx, cfg)
}

// untimed removes the time limits and the delays of a loop. The steps that were too late are so in the record.
func untimed(_ *definition.Agent, cfg *loopagent.Config) {
	plan := &cfg.Rules
	plan.Timeout, plan.IterationTimeout, plan.DelayBefore, plan.DelayAfter = 0, 0, 0, 0
	if plan.MaxIterations == 0 { // without a limit it pauses after iterations that fail
		plan.MaxIterations = math.MaxInt32
	}
	for i := range plan.Steps {
		step := &plan.Steps[i]
		step.Timeout, step.AdaptiveTimeout, step.DelayBefore, step.DelayAfter = 0, nil, 0, 0
		if step.Retry != nil {
			step.Retry = &loop.Retry{Attempts: step.Retry.Attempts}
		}
	}
}

// endingOf reads from the events of a run what it has come to.
func endingOf(events []*session.Event, began, state map[string]any, asks map[string]bool) (*ending, error) {
	end := &ending{began: began, state: state, calls: make(map[string][]string)}
	delete(state, mark.KeyRun)
	var fold progress.Fold
	for _, ev := range events {
		fold.Add(ev)
		if ev.Mark == nil {
			continue
		}
		switch ev.Mark.Kind {
		case mark.KindIterationFinished:
			var it loop.IterationRecord
			if err := ev.Mark.Decode(&it); err != nil {
				return nil, err
			}
			line := fmt.Sprintf("iteration %d", it.Number)
			if it.Score != nil {
				line += fmt.Sprintf(", score %.6g", *it.Score)
			}
			end.iterations = append(end.iterations, loopEnd{ev.Address, line})
		case mark.KindLoopStopped:
			var s loop.StopRecord
			if err := ev.Mark.Decode(&s); err != nil {
				return nil, err
			}
			line := fmt.Sprintf("%s after %d iterations, best %d, result of %s %d", s.Reason, s.Iterations, s.BestIteration,
				s.Result.Source, s.Result.Iteration)
			end.stops = append(end.stops, loopEnd{ev.Address, line})
		}
	}
	for _, all := range [][]loopEnd{end.stops, end.iterations} { // those of branches come in any order
		slices.SortStableFunc(all, func(a, b loopEnd) int { return cmp.Compare(a.at, b.at) })
	}
	end.answer = fold.Answer()
	end.readCalls(events, asks)
	return end, nil
}

// readCalls collects the calls of tools and their last answers.
func (e *ending) readCalls(events []*session.Event, asks map[string]bool) {
	answers := make(map[string]string)
	for _, ev := range events {
		if ev.Content == nil || ev.Mark != nil || !asks[ev.Author] {
			continue
		}
		for _, p := range ev.Content.Parts {
			if p != nil && p.FunctionResponse != nil {
				answers[p.FunctionResponse.ID] = text(p.FunctionResponse.Response)
			}
		}
	}
	for _, ev := range events {
		if ev.Content == nil || ev.Mark != nil || !asks[ev.Author] {
			continue
		}
		for _, p := range ev.Content.Parts {
			if p != nil && p.FunctionCall != nil {
				c := p.FunctionCall
				e.calls[ev.Author] = append(e.calls[ev.Author], fmt.Sprintf("%s(%s) = %s", c.Name, text(c.Args), answers[c.ID]))
			}
		}
	}
}
