// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// witness counts what tools do to the world outside, by their call IDs.
type witness struct {
	mu   sync.Mutex
	ids  map[string][]string // by tool
	hang bool                // tools do their work and then wait for their context
	busy sync.WaitGroup      // tools that have not come to that yet
}

func (w *witness) tool(t testing.TB, name string, effect agent.Effect, hangs bool) tool.Tool {
	t.Helper()
	made, err := functiontool.New(functiontool.Config{Name: name, Description: "Does " + name + ".", Effect: effect},
		func(ctx tool.Context, _ struct{}) (map[string]any, error) {
			w.mu.Lock()
			w.ids[name] = append(w.ids[name], drive.At(ctx).ToolCallID(ctx.FunctionCallID()))
			hang := w.hang
			w.mu.Unlock()
			if hang {
				w.busy.Done()
			}
			if hang && hangs {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			return map[string]any{"done": name}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// LOOP 30: a call that is cut off has no answer. One that must not be made twice is in
// doubt, one that may be is made again under its ID, and what was answered stays so:
// whether the run is canceled, paused at once, or killed.
func TestCallThatIsCutOffHasNoAnswer(t *testing.T) {
	errNow := errors.New("paused by ana")
	for _, tt := range []struct {
		name  string
		calls []string // pay must not be made twice; look answers at once
		want  []string // said after the model has called
	}{
		{"one in doubt", []string{"pay"}, []string{"asks", "buyer: answer pay map[result:paid 5]"}},
		{"one that is made again", []string{"send"}, []string{"buyer: answer send map[done:send]"}},
		{"several", []string{"pay", "look", "send"}, []string{
			"buyer: answer look map[done:look]", "asks", "buyer: answer pay map[result:paid 5] | answer send map[done:send]",
		}},
		{"some", []string{"look", "send"}, []string{"buyer: answer look map[done:look]", "buyer: answer send map[done:send]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := &witness{ids: make(map[string][]string)}
			var rec *recorder
			d := newDurable(t, func() agent.Agent {
				rec = record(script(t, calls(tt.calls...), scripted.Answer{Text: "thanks"}))
				return newLoop(t, loopagent.Config{MaxIterations: 1}, newAgent(t, llmagent.Config{Name: "buyer", Model: rec, Tools: []tool.Tool{
					w.tool(t, "pay", agent.AtMostOnce, true), w.tool(t, "look", agent.Pure, false), w.tool(t, "send", agent.Idempotent, true),
				}}))
			})
			ctx, cancel := context.WithCancelCause(t.Context())
			w.hang = true
			w.busy.Add(len(tt.calls))
			go func() {
				w.busy.Wait()
				cancel(errNow)
			}()
			if err := d.runUnder(ctx, nil); !errors.Is(err, errNow) {
				t.Fatalf("got error %v", err)
			}
			w.hang = false
			if slices.Contains(tt.calls, "pay") {
				waits := d.run(nil)
				if n := len(w.ids["pay"]); n != 1 {
					t.Fatalf("paid %d times", n)
				}
				d.answer(waits, mark.Resolution{Action: mark.ResolveResult, Result: "paid 5"})
			}
			if err := d.run(nil); err != nil {
				t.Fatal(err)
			}
			var got []string
			for ev := range d.session().Events().All() {
				switch {
				case ev.Author != "buyer" || ev.Mark != nil && ev.Mark.Kind != mark.KindAsked:
				case ev.Mark != nil:
					got = append(got, "asks")
				default:
					got = append(got, "buyer: "+words(ev.Content))
				}
			}
			if len(got) < 2 {
				t.Fatalf("got %q", got)
			}
			if diff := cmp.Diff(append(tt.want, "buyer: thanks"), got[1:]); diff != "" {
				t.Error(diff)
			}
			for name, ids := range w.ids {
				want := 1
				if name == "send" {
					want = 2
				}
				if len(ids) != want || len(slices.Compact(ids)) != 1 {
					t.Errorf("%s was called with the IDs %q, want one ID %d times", name, ids, want)
				}
			}
			answers := 0
			for _, c := range rec.requests[len(rec.requests)-1].Contents {
				for _, p := range c.Parts {
					if p.FunctionResponse != nil {
						answers++
					}
				}
			}
			if answers != len(tt.calls) {
				t.Errorf("the model sees %d answers to %d calls", answers, len(tt.calls))
			}
		})
	}
}

// LOOP 32: a call in doubt that a person has made again can be cut off again, and is
// in doubt again.
func TestCallInDoubtIsCutOffAgain(t *testing.T) {
	w := &witness{ids: make(map[string][]string)}
	d := newDurable(t, func() agent.Agent {
		return newAgent(t, llmagent.Config{Name: "buyer", Model: script(t, calls("look", "pay"), scripted.Answer{Text: "thanks"}), Tools: []tool.Tool{
			w.tool(t, "pay", agent.AtMostOnce, true), w.tool(t, "look", agent.Pure, false),
		}})
	})
	cut := func(calls int) {
		t.Helper()
		ctx, cancel := context.WithCancelCause(t.Context())
		w.hang = true
		w.busy.Add(calls)
		go func() {
			w.busy.Wait()
			cancel(errLost)
		}()
		if err := d.runUnder(ctx, nil); !errors.Is(err, errLost) {
			t.Fatalf("got error %v", err)
		}
		w.hang = false
	}
	cut(2)
	for range 2 {
		d.answer(d.run(nil), mark.Resolution{Action: mark.ResolveRetry})
		cut(1)
	}
	d.answer(d.run(nil), mark.Resolution{Action: mark.ResolveResult, Result: "paid"})
	if err := d.run(nil); err != nil {
		t.Fatal(err)
	}
	ids := w.ids["pay"]
	if len(ids) != 3 || len(slices.Compact(ids)) != 1 || len(w.ids["look"]) != 1 {
		t.Errorf("the calls have the IDs %v", w.ids)
	}
	said := d.said()
	if got := said[len(said)-2]; got != "buyer: answer pay map[result:paid]" {
		t.Errorf("got %q", said)
	}
}
