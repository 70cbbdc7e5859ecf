// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"fmt"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// LOOP 15: a loop that goes round in circles ends; a changed result is progress.
func TestNoProgress(t *testing.T) {
	say := func(texts ...string) func(t *testing.T) agent.Agent {
		return func(t *testing.T) agent.Agent {
			var evs []*session.Event
			for _, text := range texts {
				evs = append(evs, words(text))
			}
			return turns(t, "w", evs...)
		}
	}
	set := func(text string, values ...any) func(t *testing.T) agent.Agent {
		return func(t *testing.T) agent.Agent {
			var evs []*session.Event
			for _, v := range values {
				evs = append(evs, sets(text, "key", v))
			}
			return turns(t, "w", evs...)
		}
	}
	for _, tt := range []struct {
		name   string
		rule   loop.NoProgress
		w      func(t *testing.T) agent.Agent
		ran    int // iterations, of at most eight
		detail string
	}{
		{"the same three times", loop.NoProgress{}, say("a", "b", "b", "b", "b"), 4, "the same result 3 times running"},
		{"white space does not matter", loop.NoProgress{}, say("b c", " b  c", "b\nc ", "d"), 3, "the same result 3 times running"},
		{"one word is not two", loop.NoProgress{Repeats: 2}, say("b c", "bc", "b c", "d", "e", "f", "g", "h"), 8, ""},
		{"twice", loop.NoProgress{Repeats: 2}, say("a", "b", "b"), 3, "the same result 2 times running"},
		{"in turns", loop.NoProgress{}, say("x", "a", "b", "a", "b", "c"), 5, "two results take turns, 2 times running"},
		{"in turns for longer", loop.NoProgress{Swings: 3}, say("a", "b", "a", "b", "a", "b", "c"), 6, "two results take turns, 3 times running"},
		{"the state changes", loop.NoProgress{}, set("the same", 1, 2, 3, 4, 5, 6, 7, 8), 8, ""},
		{"the state is set to the same", loop.NoProgress{}, set("the same", 1, 1, 1, 1), 3, "the same result 3 times running"},
		{"objects that are the same", loop.NoProgress{}, set("x", map[string]any{"a": 1, "b": 2}, map[string]any{"b": 2, "a": 1}, map[string]any{"a": 1, "b": 2}), 3, "the same result 3 times running"},
		{"only a key, which stays", loop.NoProgress{Keys: []string{"other"}}, say("a", "b", "c", "d", "e"), 3, "the same result 3 times running"},
		{"only a key, which changes", loop.NoProgress{Keys: []string{"key"}}, set("the same", 1, 2, 3, 4, 5, 6, 7, 8), 8, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var rec *loop.StopRecord
			mustPlay(t, loopOf(t, "l", 8, func(c *loopagent.Config) {
				into(&rec)(c)
				c.Rules.NoProgress = &tt.rule
			}, tt.w(t), says(t, "log", "as always")))
			check(t, "iterations", rec.Iterations, tt.ran)
			if tt.detail != "" {
				check(t, "reason", rec.Reason, loop.ReasonNoProgress)
				check(t, "detail", rec.Detail, tt.detail)
			} else {
				check(t, "reason", rec.Reason, loop.ReasonMaxIterations)
			}
		})
	}
}

// Pieces of a stream, marks, and the addresses and times of events do not count;
// nor does it matter whether an iteration's events come from a cache, from an
// inner loop, or were said at the second attempt.
func TestWhatIsNoProgress(t *testing.T) {
	for name, w := range map[string]func(t *testing.T) agent.Agent{
		"pieces": func(t *testing.T) agent.Agent {
			n := 0
			return does(t, "w", func(_ agent.InvocationContext, say say) error {
				n++
				piece := words(fmt.Sprint("piece ", n))
				piece.Partial = true
				say(piece)
				say(words("whole"))
				return nil
			})
		},
		"inner loop": func(t *testing.T) agent.Agent { return repeat(t, "w", 2, says(t, "a", "x")) },
		"second attempt": func(t *testing.T) agent.Agent {
			n := 0
			return does(t, "w", func(_ agent.InvocationContext, say say) error {
				n++
				if n%2 == 1 {
					say(sets(fmt.Sprint(n), "half", n))
					return errBroken
				}
				say(words("x"))
				return nil
			})
		},
	} {
		for _, durable := range []bool{false, true} {
			var rec *loop.StopRecord
			s := newStage(t, loopOf(t, "l", 9, func(c *loopagent.Config) {
				again(&rec, "w", 2)(c)
				c.Rules.NoProgress = &loop.NoProgress{}
			}, w(t)), durable)
			if _, err := s.send(t, t.Context(), "go"); err != nil {
				t.Fatal(err)
			}
			check(t, name, rec.Reason, loop.ReasonNoProgress)
			check(t, name, rec.Iterations, 3)
		}
	}
}

// LOOP 15: an iteration that failed, or was cut short, says nothing about
// progress.
func TestFailedIterationIsNoCircle(t *testing.T) {
	for _, policy := range []loop.ErrorPolicy{loop.NextIteration, loop.SkipStep} {
		var rec *loop.StopRecord
		mustPlay(t, loopOf(t, "l", 6, func(c *loopagent.Config) {
			into(&rec)(c)
			c.Rules.OnError, c.Rules.NoProgress = policy, &loop.NoProgress{Repeats: 2}
		}, fails(t, "w", errBroken, errBroken, errBroken, errBroken, errBroken), says(t, "log", "x")))
		check(t, "reason", rec.Reason, loop.ReasonMaxIterations)
	}
}

// A saved file is progress: what is in it is not known.
func TestSavedFileIsProgress(t *testing.T) {
	var rec *loop.StopRecord
	mustPlay(t, loopOf(t, "l", 5, func(c *loopagent.Config) {
		into(&rec)(c)
		c.Rules.NoProgress = &loop.NoProgress{}
	}, does(t, "w", func(_ agent.InvocationContext, say say) error {
		ev := words("saved")
		ev.Actions.ArtifactDelta = map[string]int64{"report.txt": 1}
		say(ev)
		return nil
	})))
	check(t, "reason", rec.Reason, loop.ReasonMaxIterations)
}

// reporter is an agent whose values are compared without the number of the call.
type reporter struct{ agent.Agent }

func (r *reporter) Compared(_ *session.Event, v any) any {
	fields, _ := v.(map[string]any)
	return fields["said"]
}

// Values are compared as the agent that sets them says, here without the number of the call.
func TestNoProgressOfReports(t *testing.T) {
	say := func(texts ...string) agent.Agent {
		var evs []*session.Event
		for i, text := range texts {
			evs = append(evs, sets("the same", "key", map[string]any{"call": i, "said": text}))
		}
		return &reporter{turns(t, "w", evs...)}
	}
	for _, tt := range []struct {
		w   agent.Agent
		ran int
	}{{say("a", "b", "b", "b", "b"), 4}, {say("a", "b", "c", "d", "e"), 5}} {
		var rec *loop.StopRecord
		mustPlay(t, loopOf(t, "l", 5, func(c *loopagent.Config) {
			into(&rec)(c)
			c.Rules.NoProgress = new(loop.NoProgress)
		}, tt.w))
		check(t, "iterations", rec.Iterations, tt.ran)
	}
}
