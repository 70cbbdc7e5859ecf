// SPDX-License-Identifier: Apache-2.0

package agenttest_test

import (
	"errors"
	"iter"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/agenttest"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
)

type yield = func(*session.Event, error) bool

func says(text string) *session.Event {
	ev := &session.Event{}
	ev.Content = genai.NewContentFromText(text, genai.RoleModel)
	return ev
}

func custom(t *testing.T, body func(agent.InvocationContext, yield)) agent.Agent {
	a, err := agent.New(agent.Config{Name: "hello", Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) { body(ctx, yield) }
	}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// E1, E3: an agent that somebody writes with agent.New is a good one.
func TestCustomAgent(t *testing.T) {
	agenttest.TestAgent(t, func(t *testing.T) agent.Agent {
		return custom(t, func(_ agent.InvocationContext, yield yield) {
			for _, word := range []string{"a", "b", "c"} {
				if !yield(says(word), nil) {
					return
				}
			}
		})
	})
}

// A12: so is one that somebody else wrote from nothing.
func TestStrangersAgent(t *testing.T) {
	agenttest.TestAgent(t, func(*testing.T) agent.Agent { return stranger{words: []string{"a", "b"}} })
}

// stranger is an agent that knows nothing of package agent's Base, and a value
// that cannot be compared.
type stranger struct{ words []string }

func (s stranger) Name() string                         { return "stranger" }
func (s stranger) Description() string                  { return "" }
func (s stranger) SubAgents() []agent.Agent             { return nil }
func (s stranger) FindAgent(name string) agent.Agent    { return agent.Find(s, name) }
func (s stranger) FindSubAgent(name string) agent.Agent { return agent.FindSub(s, name) }
func (s stranger) Run(agent.InvocationContext) iter.Seq2[*session.Event, error] {
	return func(yield func(*session.Event, error) bool) {
		for _, word := range s.words {
			if !yield(says(word), nil) {
				return
			}
		}
	}
}

// An agent that tells something only once says so.
func TestExceptions(t *testing.T) {
	agenttest.TestAgent(t, func(t *testing.T) agent.Agent {
		var told atomic.Bool
		return custom(t, func(_ agent.InvocationContext, yield yield) {
			if yield(says("hello"), nil) && !told.Swap(true) {
				yield(says("by the way"), nil)
			}
		})
	}, agenttest.RangeAgain, agenttest.Independent, agenttest.Canceled, agenttest.Stops)
}

// defects are mistakes that agents make, with the rule that finds each.
var defects = map[string]struct {
	foundBy agenttest.Rule
	agent   func(*testing.T) agent.Agent
}{
	"it fails": {agenttest.Stamped, func(t *testing.T) agent.Agent {
		return custom(t, func(_ agent.InvocationContext, yield yield) { yield(nil, errors.New("boom")) })
	}},
	"it says nothing": {agenttest.Stamped, func(t *testing.T) agent.Agent {
		return custom(t, func(agent.InvocationContext, yield) {})
	}},
	"it yields nothing in a pair": {agenttest.RangeAgain, func(t *testing.T) agent.Agent {
		return custom(t, func(_ agent.InvocationContext, yield yield) { yield(nil, nil) })
	}},
	"it leaves a goroutine": {agenttest.Stops, func(t *testing.T) agent.Agent {
		return custom(t, func(_ agent.InvocationContext, yield yield) {
			go time.Sleep(time.Hour)
			yield(says("hello"), nil)
		})
	}},
	"it counts its runs": {agenttest.RangeAgain, func(t *testing.T) agent.Agent {
		var runs atomic.Int64
		return custom(t, func(_ agent.InvocationContext, yield yield) {
			for range runs.Add(1) {
				if !yield(says("hello"), nil) {
					return
				}
			}
		})
	}},
	"it changes its traits":              {agenttest.SameTraits, func(*testing.T) agent.Agent { return &fickle{} }},
	"it starts before it is ranged over": {agenttest.Lazy, func(*testing.T) agent.Agent { return eager{} }},
	"it hides its sub-agents":            {agenttest.Names, func(*testing.T) agent.Agent { return hiding{} }},
	"it mixes up its invocations": {agenttest.Independent, func(t *testing.T) agent.Agent {
		var id atomic.Value
		return custom(t, func(ctx agent.InvocationContext, yield yield) {
			id.CompareAndSwap(nil, ctx.InvocationID())
			ev := says("hello")
			ev.InvocationID = id.Load().(string)
			yield(ev, nil)
		})
	}},
}

// fickle waits after its first run, which it did not say.
type fickle struct {
	stranger
	ran atomic.Bool
}

func (f *fickle) Traits(bool) drive.Traits { return drive.Traits{CanIdle: f.ran.Load()} }

func (f *fickle) Run(agent.InvocationContext) iter.Seq2[*session.Event, error] {
	return func(yield func(*session.Event, error) bool) {
		f.ran.Store(true)
		yield(says("hello"), nil)
	}
}

type eager struct{ stranger }

func (e eager) Run(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
	ctx.Session().(*session.View).Apply(says("already"))
	return e.stranger.Run(ctx)
}

type hiding struct{ stranger }

func (h hiding) SubAgents() []agent.Agent { return []agent.Agent{other{}} }

type other struct{ stranger }

func (other) Name() string { return "other" }

const defectVar = "AGENTTEST_DEFECT"

// TestDefective is run by TestSuiteFindsDefects in a process of its own.
func TestDefective(t *testing.T) {
	d, ok := defects[os.Getenv(defectVar)]
	if !ok {
		t.Skip("only for TestSuiteFindsDefects")
	}
	agenttest.TestAgent(t, d.agent)
}

// A suite that passes everything proves nothing.
func TestSuiteFindsDefects(t *testing.T) {
	for name, d := range defects {
		t.Run(name, func(t *testing.T) {
			rule := strings.ReplaceAll(string(d.foundBy), " ", "_")
			t.Parallel() // it waits for a process
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDefective$/^"+rule+"$")
			cmd.Env = append(os.Environ(), defectVar+"="+name, "GORACE=atexit_sleep_ms=0")
			out, err := cmd.CombinedOutput()
			if _, failed := errors.AsType[*exec.ExitError](err); !failed {
				t.Fatalf("the suite passed (%v):\n%s", err, out)
			}
			if !strings.Contains(string(out), "--- FAIL: TestDefective/"+rule) || strings.Contains(string(out), "panic:") {
				t.Errorf("want rule %q to fail without a panic, got:\n%s", d.foundBy, out)
			}
		})
	}
}
