// SPDX-License-Identifier: Apache-2.0

// Package stage runs a definition with stand-ins. A scene says what they do. A take is what the run
// recorded. A walk applies the rules of a loop to a take, with made-up times instead of real ones.
//
//	t, err := s.Run(ctx, &stage.Scene{Target: l, Never: true})
//	got := s.Walk(l, s.Plans[l.Name], t).Run()
package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/study"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/progress/backtest"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/provider"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// Stage runs scenes.
type Stage struct {
	*study.Cast
	State    map[string]any // that runs begin with
	Input    string         // what the user asks
	StepTime time.Duration
	Script   []scripted.Answer
	Agent    func(*definition.Agent) (agent.Agent, bool) // in place of a stand-in; may be nil
}

// errEnough ends a run that has shown enough.
var errEnough = errors.New("the rehearsal has seen enough")

// Take is what a run recorded.
type Take struct {
	Log    []*session.Event
	Loops  []*backtest.Recording
	State  map[string]any
	Answer string
	Err    error
	Cut    bool // it was cut off
	run    string
}

// open builds the agents of a scene. The run calls enough when it can end.
func (s *Stage) open(ctx context.Context, sc *Scene, enough func()) (agent.Agent, error) {
	p := &play{Cast: s.Cast, Scene: sc, script: s.Script}
	functions, err := s.functions()
	if err != nil {
		return nil, err
	}
	return s.Def.Build(ctx, definition.BuildConfig{
		DefaultModel: defaultModel, Tools: functions,
		Model:  func(_ context.Context, name string) (model.LLM, error) { return &actor{p, provider.OwnName(name)}, nil },
		Getenv: func(string) string { return "stand-in" }, Agents: s.goAgents(),
		StandIns: definition.StandIns{
			NoCallbacks: true, NoToolServers: true,
			Agent: func(a *definition.Agent) (agent.Agent, error) {
				if s.Agent != nil {
					if own, ok := s.Agent(a); ok {
						return own, nil
					}
				}
				return p.standIn(a)
			},
			LLM:  func(a *definition.Agent, cfg *llmagent.Config) { p.prepareLLM(a, cfg) },
			Loop: func(a *definition.Agent, cfg *loopagent.Config) { p.prepareLoop(a, cfg, enough) },
		},
	})
}

// prepareLLM removes the waits of an agent that asks a model.
func (p *play) prepareLLM(a *definition.Agent, cfg *llmagent.Config) {
	cfg.RequestRetry.Backoff, cfg.RequestRetry.MaxBackoff = 1, 1
	p.writeSides(a, cfg)
	if p.Escalate == a.Name {
		cfg.AfterAgentCallbacks = append(cfg.AfterAgentCallbacks,
			func(ctx agent.CallbackContext) (*genai.Content, error) {
				ctx.Actions().Escalate = true
				return nil, nil
			})
	}
}

// prepareLoop removes the time limits and the waits of a loop: a walk applies them afterwards.
func (p *play) prepareLoop(a *definition.Agent, cfg *loopagent.Config, enough func()) {
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
		if step.Circuit != nil {
			c := *step.Circuit
			c.Cooldown = 1
			step.Circuit = &c
		}
	}
	if p.Circles != nil && p.Target == a {
		plan.NoProgress = p.Circles
	}
	if p.Never && p.Target == a {
		cfg.Rules = *study.Silenced(plan)
	}
	if p.Target != nil && p.Target != a && p.Iterations == 0 {
		return
	}
	cfg.AfterIteration = append(slices.Clone(cfg.AfterIteration),
		func(ctx agent.Context, it loop.IterationRecord) error {
			most := p.Iterations
			if p.Target != nil && p.Target != a {
				most *= 5 // a loop beside the target only has to end
			}
			tooMany := most > 0 && it.Number >= most
			if tooMany || p.StateSize > 0 && p.Target == a && session.StateSize(maps.Collect(ctx.State().All())) > p.StateSize {
				enough()
			}
			return nil
		})
}

// Run plays a scene until it ends or has shown enough.
func (s *Stage) Run(ctx context.Context, sc *Scene) (*Take, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	store, r, err := s.runner(ctx, sc, nil, func() { cancel(errEnough) })
	if err != nil {
		return nil, err
	}
	t := &Take{}
	size := int64(0)
	for ev, err := range r.Run(ctx, app, app, s.message(), s.runConfig()) {
		if err != nil {
			t.Err = err
			continue
		}
		t.run = ev.InvocationID
		if size += eventSize + int64(len(ev.Text())) + session.StateSize(ev.Actions.StateDelta); sc.LogSize > 0 && size > sc.LogSize {
			cancel(errEnough)
		}
	}
	if errors.Is(t.Err, errEnough) {
		t.Err, t.Cut = nil, true
	} else if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return t, t.read(store)
}

// runner returns a runner of the agents of a scene, and a store with a session that has the events of log.
func (s *Stage) runner(ctx context.Context, sc *Scene, log []*session.Event, enough func()) (session.Service, *runner.Runner, error) {
	store := session.InMemoryService()
	made, err := store.Create(ctx, &session.CreateRequest{AppName: app, UserID: app, SessionID: app, State: maps.Clone(s.State)})
	if err != nil {
		return nil, nil, err
	}
	for _, ev := range log {
		kept, err := storedEvent(ev)
		if err != nil {
			return nil, nil, err
		}
		if err := store.AppendEvent(ctx, made.Session, kept); err != nil {
			return nil, nil, err
		}
	}
	root, err := s.open(ctx, sc, enough)
	if err != nil {
		return nil, nil, err
	}
	r, err := runner.New(runner.Config{AppName: app, Agent: root, SessionService: store, Durable: true})
	return store, r, err
}

const app = "rehearsal"

// eventSize is about what an event takes, in bytes, besides what it says and writes.
const eventSize = 512

func (s *Stage) message() *genai.Content {
	return genai.NewContentFromText(s.Input, genai.RoleUser)
}

func (s *Stage) runConfig() agent.RunConfig {
	prices := budget.Prices{provider.OwnName(defaultModel): {Input: 1, Output: 1}}
	maps.Copy(prices, s.Def.Prices)
	cfg := s.Def.RunConfig(definition.Limits{})
	cfg.Prices = prices
	return cfg
}

// read fills the take from the store of its run.
func (t *Take) read(store session.Service) error {
	got, err := store.Get(context.Background(), &session.GetRequest{AppName: app, UserID: app, SessionID: app})
	if err != nil {
		return err
	}
	view := session.ViewOf(got.Session)
	t.Log = slices.Collect(view.Log().All())
	t.State = maps.Collect(view.State().All())
	if t.Loops, err = backtest.Recordings(t.Log); err != nil {
		return err
	}
	var fold progress.Fold
	for _, ev := range session.Current(t.Log) {
		fold.Add(ev)
	}
	t.Answer = fold.Answer()
	return nil
}

// Of returns the first run of a loop; nil if the loop did not start.
func (t *Take) Of(l *definition.Agent) *backtest.Recording {
	for _, r := range t.Loops {
		if r.Loop.Agent() == l.Name {
			return r
		}
	}
	return nil
}

// functions returns stand-ins for the Go functions that the definition names.
func (s *Stage) functions() ([]tool.Tool, error) {
	var all []tool.Tool
	made := make(map[string]bool)
	for a := range s.Def.Root.All {
		if a.LLM == nil {
			continue
		}
		for _, t := range a.LLM.Tools {
			if t.Func == "" || made[t.Func] {
				continue
			}
			made[t.Func] = true
			f, err := functiontool.New(functiontool.Config{Name: t.Func,
				Description: "Stands in for the function " + t.Func + "."},
				func(tool.Context, struct{}) (map[string]any, error) { return map[string]any{"stand_in": true}, nil })
			if err != nil {
				return nil, fmt.Errorf("stand-in for function %q: %w", t.Func, err)
			}
			all = append(all, f)
		}
	}
	return all, nil
}

// goAgents returns agents for the Go agents that the definition names. They never run: stand-ins
// replace them.
func (s *Stage) goAgents() map[string]definition.NewAgent {
	all := make(map[string]definition.NewAgent)
	for a := range s.Def.Root.All {
		if a.Func != "" {
			all[a.Func] = agent.New
		}
	}
	return all
}

// Resume continues a take after its first k events, with agents that are built anew, as another
// process does.
func (s *Stage) Resume(ctx context.Context, sc *Scene, whole *Take, k int) (*Take, error) {
	store, r, err := s.runner(ctx, sc, whole.Log[:k], func() {})
	if err != nil {
		return nil, err
	}
	t := &Take{run: whole.run}
	for _, err := range r.Resume(ctx, app, app, whole.run, s.runConfig()) {
		if err != nil {
			t.Err = err
		}
	}
	if errors.Is(t.Err, runner.ErrFinished) {
		t.Err = whole.Err // nothing was left to do
	}
	return t, t.read(store)
}

// storedEvent returns an event as a database would return it.
func storedEvent(ev *session.Event) (*session.Event, error) {
	data, err := json.Marshal(ev)
	if err != nil {
		return nil, err
	}
	out := new(session.Event)
	return out, json.Unmarshal(data, out)
}
