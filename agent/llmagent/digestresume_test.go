// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// asked are requests as bytes, by the turn that they are for: the name of the
// agent and the iterations that it is in, which its instruction tells. What
// branches have said is sorted.
type asked struct {
	mu  sync.Mutex
	all map[string][]string
}

func newAsked() *asked { return &asked{all: make(map[string][]string)} }

// step is an agent whose model answers a turn always the same.
func (a *asked) step(t *testing.T, name, key string, seen llmagent.ContextConfig, answer func(turn string) string) agent.Agent {
	m := fake(func(_ context.Context, req *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
		turn, _, _ := strings.Cut(req.Config.SystemInstruction.Parts[0].Text, "\n")
		contents := slices.Clone(req.Contents)
		if strings.HasPrefix(turn, "judge") { // branches speak in any order
			slices.SortFunc(contents, func(a, b *genai.Content) int { return strings.Compare(words(a), words(b)) })
		}
		data, err := json.MarshalIndent(contents, "", " ")
		if err != nil {
			t.Error(err)
		}
		a.mu.Lock()
		a.all[turn] = append(a.all[turn], string(data))
		a.mu.Unlock()
		yield(response(answer(turn)), nil)
	})
	turn := func(ctx agent.ReadonlyContext) (string, error) {
		var at strings.Builder
		at.WriteString(name)
		for l := drive.At(ctx.(agent.InvocationContext)).Loop(); l != nil; l = l.Outer {
			fmt.Fprintf(&at, " %d", l.Iteration)
		}
		return at.String(), nil
	}
	return newAgent(t, llmagent.Config{Name: name, Model: m, OutputKey: key, Context: seen, InstructionProvider: turn})
}

// tree is a loop with a nested one, branches, a step that writes numbers and a
// judge whose third verdict is worse.
func (a *asked) tree(t *testing.T) agent.Agent {
	last := llmagent.ContextConfig{Policy: llmagent.ContextDigest, Last: 2}
	say := func(turn string) string { return "what " + turn + " says" }
	counter, err := agent.New(agent.Config{Name: "counter", Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			ev := &session.Event{}
			type point struct{ Y, X int }
			ev.Actions.StateDelta = map[string]any{"n": drive.At(ctx).Loop().Iteration, "at": point{2, 1}, "list": []int{1}, "temp:x": 1}
			yield(ev, nil)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	around := func(name string, cfg loopagent.Config, steps ...agent.Agent) agent.Agent {
		cfg.AgentConfig = agent.Config{Name: name, SubAgents: steps}
		l, err := loopagent.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	par, err := parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "par", SubAgents: []agent.Agent{
		a.step(t, "one", "one", digests, say), around("two", loopagent.Config{MaxIterations: 2}, a.step(t, "dancer", "", last, say)),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	judge := a.step(t, "judge", "verdict", last, func(turn string) string {
		return map[string]string{"judge 1": "5", "judge 2": "7", "judge 3": "6", "judge 4": "8"}[turn]
	})
	return around("refine", loopagent.Config{MaxIterations: 4, Rules: loop.Plan{OnRegression: loop.RollbackOnWorse, Score: &loop.Score{Key: "verdict"}}},
		around("polish", loopagent.Config{MaxIterations: 2}, a.step(t, "editor", "doc", digests, say)), par, counter, judge)
}

var errCut = errors.New("cut off")

// cutOff fails from an event on.
type cutOff struct {
	session.Service
	left int
}

func (c *cutOff) AppendEvent(ctx context.Context, s session.Session, ev *session.Event) error {
	if c.left--; c.left < 0 {
		return errCut
	}
	return c.Service.AppendEvent(ctx, s, ev)
}

// play runs the tree, up to an event if cut is more than 0, and returns its ID.
func play(t *testing.T, svc session.Service, root agent.Agent, cut int) (id string, events int) {
	t.Helper()
	if cut > 0 {
		svc = &cutOff{svc, cut}
	}
	r, err := runner.New(runner.Config{AppName: "app", Agent: root, SessionService: svc, AutoCreateSession: true, Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	for ev, err := range r.Run(t.Context(), "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
		if err != nil && !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		if ev != nil && !ev.Partial {
			id, events = ev.InvocationID, events+1
		}
	}
	return id, events
}

// LOOP 28, 30: a run that was cut off anywhere, and is taken up from a store, asks
// its models byte for byte what the run would have asked.
func TestDigestIsTheSameWhenResumed(t *testing.T) {
	whole := newAsked()
	_, events := play(t, session.InMemoryService(), whole.tree(t), 0)
	digests := 0
	for _, requests := range whole.all {
		if strings.Contains(requests[0], "This is a digest") {
			digests++
		}
	}
	if len(whole.all) != 4*(2+1+2+1) || digests < 15 {
		t.Fatalf("%d turns, %d with a digest", len(whole.all), digests)
	}
	stride := longtest.N(61, 17)
	for cut := 3; cut < events; cut += stride {
		svc, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), sqlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		parts := newAsked()
		id, _ := play(t, svc, parts.tree(t), cut)
		r, err := runner.New(runner.Config{AppName: "app", Agent: parts.tree(t), SessionService: svc, Durable: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range r.Resume(t.Context(), "ana", "s1", id, agent.RunConfig{}) {
			if err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
		}
		for turn, want := range whole.all {
			if len(parts.all[turn]) == 0 {
				t.Errorf("cut at %d: %s was not asked", cut, turn)
			}
			for _, got := range parts.all[turn] {
				if diff := cmp.Diff(want[0], got); diff != "" {
					t.Fatalf("cut at %d: %s is asked something else: %s", cut, turn, diff)
				}
			}
		}
		if err := svc.Close(); err != nil {
			t.Error(err)
		}
	}
}
