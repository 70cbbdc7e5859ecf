// SPDX-License-Identifier: Apache-2.0

package drive_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session"
)

// G2
func TestErrorIsWrappedOnceWithTheInnermostAddress(t *testing.T) {
	leaf := custom(t, "leaf", func(_ agent.InvocationContext, yield yield) {
		_ = yield(says("hello"), nil) && yield(nil, errBoom) && yield(says("never"), nil)
	})
	events, errs := collect(nest(t, leaf).Run(invocation(t.Context())))
	step := stepError(t, errs, "root/middle/leaf")
	if !errors.Is(step, errBoom) {
		t.Errorf("the agent's own error is lost: %v", step)
	}
	if got, want := step.Error(), `agent "leaf" (root/middle/leaf): boom`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if diff := cmp.Diff([]string{"leaf: hello"}, texts(events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// G2: an orchestrator that adds words of its own to a sub-agent's error.
func TestErrorThatWrapsAStepErrorKeepsItsAddress(t *testing.T) {
	leaf := custom(t, "leaf", func(_ agent.InvocationContext, yield yield) { yield(nil, errBoom) })
	root := custom(t, "root", func(ctx agent.InvocationContext, yield yield) {
		for _, err := range leaf.Run(ctx) {
			yield(nil, fmt.Errorf("second draft: %w", err))
			return
		}
	}, leaf)
	_, errs := collect(root.Run(invocation(t.Context())))
	if len(errs) != 1 || errs[0].Error() != `second draft: agent "leaf" (root/leaf): boom` {
		t.Errorf("got %v", errs)
	}
}

// G5
func TestPanicBecomesAnErrorWithItsAddress(t *testing.T) {
	for _, tt := range []struct {
		name  string
		value any
		text  string
	}{
		{"a text", "oh no", `agent "leaf" (root/middle/leaf): panic: oh no`},
		{"an error", errBoom, `agent "leaf" (root/middle/leaf): panic: boom`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			leaf := custom(t, "leaf", func(_ agent.InvocationContext, yield yield) {
				yield(says("hello"), nil)
				panic(tt.value)
			})
			events, errs := collect(nest(t, leaf).Run(invocation(t.Context())))
			step := stepError(t, errs, "root/middle/leaf")
			caught, ok := errors.AsType[*agent.PanicError](step)
			if !ok {
				t.Fatalf("got %v, want a *PanicError in it", step)
			}
			if caught.Value != tt.value {
				t.Errorf("got value %v, want %v", caught.Value, tt.value)
			}
			if !strings.Contains(string(caught.Stack), "step_test.go") {
				t.Errorf("the stack does not say where:\n%s", caught.Stack)
			}
			if step.Error() != tt.text {
				t.Errorf("got %q, want %q", step.Error(), tt.text)
			}
			if err, isErr := tt.value.(error); isErr && !errors.Is(step, err) {
				t.Errorf("a panic with an error unwraps to it: %v", step)
			}
			if len(events) != 1 {
				t.Errorf("what was said before the panic is kept, got %d events", len(events))
			}
		})
	}
}

// G5: what an orchestrator does between two events of a sub-agent is its own.
func TestPanicBetweenEventsOfASubAgentIsTheParents(t *testing.T) {
	leaf := speaker(t, "leaf", "hello")
	root := custom(t, "root", func(ctx agent.InvocationContext, _ yield) {
		for range leaf.Run(ctx) {
			panic("mine")
		}
	}, leaf)
	_, errs := collect(root.Run(invocation(t.Context())))
	stepError(t, errs, "root")
}

// T19, E2
func TestPanicOfTheConsumerIsNotRecovered(t *testing.T) {
	defer func() {
		if r := recover(); r != "the consumer's" {
			t.Errorf("got %v", r)
		}
	}()
	for range nest(t, speaker(t, "leaf", "hello")).Run(invocation(t.Context())) {
		panic("the consumer's")
	}
	t.Error("the panic was swallowed")
}

// T18, T19: an agent that does not listen is not heard.
func TestNothingPassesAfterTheEnd(t *testing.T) {
	deaf := custom(t, "deaf", func(_ agent.InvocationContext, yield yield) {
		yield(says("one"), nil)
		yield(nil, errBoom)
		yield(says("two"), nil)
		yield(nil, errors.New("again"))
		yield(nil, nil)
	})
	events, errs := collect(deaf.Run(invocation(t.Context())))
	if len(events) != 1 || len(errs) != 1 || !errors.Is(errs[0], errBoom) {
		t.Errorf("got %v, %v; want one event and the first error", texts(events), errs)
	}
	n := 0
	deaf.Run(invocation(t.Context()))(func(*session.Event, error) bool {
		n++
		return false
	})
	if n != 1 {
		t.Errorf("yielded %d pairs to a consumer that left at the first", n)
	}
}

// T20
func TestCanceledContextEndsWithItsCause(t *testing.T) {
	for _, tt := range []struct {
		name string
		run  func(agent.InvocationContext, yield)
	}{
		{"an agent that looks at its context", func(ctx agent.InvocationContext, yield yield) {
			<-ctx.Done()
			yield(nil, ctx.Err())
		}},
		{"an agent that wraps the context's error", func(ctx agent.InvocationContext, yield yield) {
			<-ctx.Done()
			yield(nil, fmt.Errorf("ask model: %w", context.Cause(ctx)))
		}},
		{"an agent whose own error came of it", func(ctx agent.InvocationContext, yield yield) {
			<-ctx.Done()
			yield(nil, errors.New("signal: killed"))
		}},
		{"an agent that ends without a word", func(ctx agent.InvocationContext, _ yield) { <-ctx.Done() }},
		{"an agent that does not look", func(ctx agent.InvocationContext, yield yield) {
			<-ctx.Done()
			for yield(says("go on"), nil) {
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			after := false
			leaf := must(t, agent.Config{
				Name: "leaf", Run: body(func(ctx agent.InvocationContext, yield yield) {
					cancel(errBoom)
					tt.run(ctx, yield)
				}),
				AfterAgentCallbacks: []agent.AfterAgentCallback{func(agent.Context) (*genai.Content, error) {
					after = true
					return nil, nil
				}},
			})
			events, errs := collect(nest(t, leaf).Run(invocation(ctx)))
			if len(errs) != 1 || errs[0] != errBoom {
				t.Errorf("got %v, want only context.Cause", errs)
			}
			if len(events) > 1 {
				t.Errorf("got %d events after the cancellation, want at most the one under way", len(events))
			}
			if after {
				t.Error("an after callback was called")
			}
		})
	}
	t.Run("a panic is the worse news", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		leaf := custom(t, "leaf", func(agent.InvocationContext, yield) {
			cancel()
			panic("oh no")
		})
		_, errs := collect(leaf.Run(invocation(ctx)))
		stepError(t, errs, "leaf")
	})
	t.Run("an agent's own deadline is a failure of its own", func(t *testing.T) {
		leaf := custom(t, "leaf", func(ctx agent.InvocationContext, yield yield) {
			own, cancel := context.WithTimeout(ctx, 0)
			defer cancel()
			yield(nil, own.Err())
		})
		_, errs := collect(leaf.Run(invocation(t.Context())))
		if step := stepError(t, errs, "leaf"); !errors.Is(step, context.DeadlineExceeded) {
			t.Errorf("got %v", step)
		}
	})
}

// F1
func TestDeadlineEndsWithItsCause(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), 0, errBoom)
	defer cancel()
	events, errs := collect(speaker(t, "a", "hello").Run(invocation(ctx)))
	if len(events) != 0 || len(errs) != 1 || errs[0] != errBoom {
		t.Errorf("got %v, %v", events, errs)
	}
}
