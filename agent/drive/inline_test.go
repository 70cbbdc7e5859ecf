// SPDX-License-Identifier: Apache-2.0

package drive_test

import (
	"context"
	"errors"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
)

// inline is an agent whose code is known, or says so.
type inline struct {
	*drive.Base
	says bool
}

func (b *inline) Traits(bool) drive.Traits { return drive.Traits{Inline: b.says} }

func newInline(t *testing.T, cfg agent.Config, says bool, run drive.Body) agent.Agent {
	t.Helper()
	b := &inline{says: says}
	var err error
	if b.Base, err = drive.NewBase(cfg, b, run); err != nil {
		t.Fatal(err)
	}
	return b
}

// embeds has a Run of its own: what the agent in it says of itself does not hold.
type embeds struct{ agent.Agent }

func (embeds) Traits(bool) drive.Traits { return drive.Traits{Inline: true} }

// goroutine is the name of the one that calls it, as "goroutine 7 ".
func goroutine() string {
	name, _, _ := strings.Cut(string(debug.Stack()), "[")
	return name
}

// A step of an agent whose code is known needs no goroutine of its own, though it has a grace.
func TestInlineStepRunsWhereItsCallerDoes(t *testing.T) {
	here, caller := false, goroutine()
	run := func(_ agent.InvocationContext, yield func(*session.Event, error) bool) {
		here = goroutine() == caller
		yield(says("one"), nil)
	}
	callback := func(agent.Context) (*genai.Content, error) { return nil, nil }
	for name, tt := range map[string]struct {
		agent agent.Agent
		here  bool
	}{
		"inline":          {newInline(t, agent.Config{Name: "a"}, true, run), true},
		"not inline":      {newInline(t, agent.Config{Name: "a"}, false, run), false},
		"says nothing":    {custom(t, "a", run), false},
		"one that embeds": {embeds{newInline(t, agent.Config{Name: "a"}, true, run)}, false},
		"before callback": {newInline(t, agent.Config{Name: "a",
			BeforeAgentCallbacks: []agent.BeforeAgentCallback{callback}}, true, run), false},
		"after callback": {newInline(t, agent.Config{Name: "a",
			AfterAgentCallbacks: []agent.AfterAgentCallback{callback}}, true, run), false},
	} {
		events := 0
		res := watch(t.Context(), tt.agent, func(*session.Event) bool { events++; return true })
		if res.Err != nil || res.LastOutput == nil || events != 1 || here != tt.here {
			t.Errorf("%s: in the goroutine of the caller: %v, %d events, %+v", name, here, events, res)
		}
	}
}

// It ends as any other step does.
func TestInlineStepEndsAsOthersDo(t *testing.T) {
	run := func(_ agent.InvocationContext, yield func(*session.Event, error) bool) { yield(says("one"), nil) }
	for _, is := range []bool{true, false} {
		a := newInline(t, agent.Config{Name: "a"}, is, run)
		if res := watch(t.Context(), a, func(*session.Event) bool { return false }); !res.ConsumerLeft || res.Err != nil {
			t.Errorf("inline %v, the consumer leaves: %+v", is, res)
		}
		func() {
			defer func() {
				if v := recover(); v != "crash" {
					t.Errorf("inline %v: recovered %v", is, v)
				}
			}()
			watch(t.Context(), a, func(*session.Event) bool { panic("crash") })
			t.Errorf("inline %v: a panic of the consumer is lost", is)
		}()
		panics := newInline(t, agent.Config{Name: "a"}, is,
			func(agent.InvocationContext, func(*session.Event, error) bool) { panic("boom") })
		var err *agent.PanicError
		if res := watch(t.Context(), panics, func(*session.Event) bool { return true }); !errors.As(res.Err, &err) {
			t.Errorf("inline %v, a panic: %+v", is, res)
		}
		synctest.Test(t, func(t *testing.T) { // what it says after its time has no effect
			late := errors.New("late")
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, late)
			defer cancel()
			slow := newInline(t, agent.Config{Name: "a"}, is,
				func(_ agent.InvocationContext, yield func(*session.Event, error) bool) {
					time.Sleep(2 * time.Second)
					yield(says("late"), nil)
				})
			inv := drive.NewInvocation(t.Context(), drive.Invocation{ID: "e-1", Session: session.NewView(session.ViewConfig{})})
			step := drive.NewStep(inv, drive.StepConfig{Agent: slow, Grace: 3 * time.Second})
			res := step.RunAs(&drive.StepRun{Context: ctx, TimeoutErr: late, AbandonErr: errors.New("abandoned")},
				func(*session.Event) bool { t.Errorf("inline %v: it is heard", is); return true })
			if res.Err != late || res.Abandoned {
				t.Errorf("inline %v, late: %+v", is, res)
			}
		})
	}
}
