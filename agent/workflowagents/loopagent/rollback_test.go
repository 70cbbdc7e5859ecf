// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// rolls has a worse iteration undone.
func rolls(rec **loop.StopRecord) func(*loopagent.Config) {
	return func(c *loopagent.Config) {
		scored(rec, loop.Score{})(c)
		c.Rules.OnRegression = loop.RollbackOnWorse
	}
}

// writer changes all kinds of keys in each iteration: one is set, one is added,
// one is removed, one is an object that is changed in place.
func writer(t testing.TB, scores ...float64) agent.Agent {
	n := 0
	return does(t, "writer", func(ctx agent.InvocationContext, say say) error {
		score := scores[min(n, len(scores)-1)]
		n++
		object := map[string]any{}
		if v, err := ctx.Session().State().Get("object"); err == nil {
			object = v.(map[string]any)
		}
		inner, _ := object["inner"].(map[string]any)
		if inner == nil {
			inner = map[string]any{}
			object["inner"] = inner
		}
		inner["iteration"] = n
		object[fmt.Sprint("only in ", n)] = []any{n}
		ev := words(fmt.Sprintf("draft %d", n))
		ev.Actions.StateDelta = map[string]any{
			"score": score, "draft": fmt.Sprintf("draft %d", n), fmt.Sprint("added in ", n): true, fmt.Sprint("added in ", n-1): nil,
			"object": object, "iteration:note": n, "temp:note": n, "app:n": n, "user:n": n,
		}
		say(ev)
		return nil
	})
}

// states keeps what the state is after each iteration, and when the loop stops.
func states(into map[int]map[string]any) func(*loopagent.Config) {
	keep := func(n int, ctx agent.InvocationContext) {
		m := maps.Collect(ctx.Session().State().All())
		if o, ok := m["object"].(map[string]any); ok {
			m["object"] = fmt.Sprint(o) // the object itself is changed in place
		}
		delete(m, "app:n")
		delete(m, "user:n")
		into[n] = m
	}
	return func(c *loopagent.Config) {
		c.AfterIteration = append(c.AfterIteration, func(ctx agent.Context, it loop.IterationRecord) error {
			keep(it.Number, ctx)
			return nil
		})
		stop := c.OnStop
		c.OnStop = func(ctx agent.InvocationContext, rec *loop.StopRecord) {
			keep(0, ctx)
			stop(ctx, rec)
		}
	}
}

// O9, D20, LOOP 18: with rollback the loop hands back the state of its best
// iteration, exactly; with keep_best the state runs on, and the result is the
// same.
func TestRegression(t *testing.T) {
	for _, durable := range []bool{false, true} {
		for _, how := range []loop.Regression{loop.RollbackOnWorse, loop.KeepBest} {
			t.Run(string(how), func(t *testing.T) {
				var rec *loop.StopRecord
				seen := map[int]map[string]any{}
				s := newStage(t, loopOf(t, "l", 5, func(c *loopagent.Config) {
					rolls(&rec)(c)
					states(seen)(c)
					c.Rules.OnRegression, c.OutputKey = how, "result"
				}, writer(t, 5, 7, 6, 8, 4)), durable)
				evs, err := s.send(t, t.Context(), "go")
				if err != nil {
					t.Fatal(err)
				}
				want := seen[4]
				if how == loop.KeepBest {
					want = seen[5]
				}
				check(t, "state", seen[0], want)
				check(t, "best", rec.BestIteration, 4)
				check(t, "result", rec.Result, loop.Result{Source: loop.FromBest, Iteration: 4})
				check(t, "output", s.state(t, "result"), any("draft 4"))
				check(t, "last words", evs[len(evs)-1-indexOfText(evs)].Text(), "draft 4")
				rejected, undone := 0, 0
				if how == loop.RollbackOnWorse {
					rejected, undone = 2, 2
				}
				check(t, "rejections", rec.Rejections, rejected)
				check(t, "rollbacks", rec.Rollbacks, undone)
				// Keys that other sessions share run on.
				check(t, "app key", s.state(t, "app:n"), any(5.0))
				check(t, "user key", s.state(t, "user:n"), any(5.0))
				if stored := s.state(t, "object"); how == loop.RollbackOnWorse {
					// What iteration 3 and 5 have put into the object is gone from it.
					check(t, "stored object", stored, any(map[string]any{
						"inner": map[string]any{"iteration": 4.0}, "only in 1": []any{1.0}, "only in 2": []any{2.0}, "only in 4": []any{4.0},
					}))
				}
			})
		}
	}
}

// Two worse iterations running are undone to the same state, which the first of
// them has been given to work on.
func TestRollbackTwiceToTheSameState(t *testing.T) {
	var rec *loop.StopRecord
	seen := map[int]map[string]any{}
	mustPlay(t, loopOf(t, "l", 4, func(c *loopagent.Config) {
		rolls(&rec)(c)
		states(seen)(c)
	}, writer(t, 5, 7, 6, 4)))
	check(t, "state", seen[0], seen[2])
	check(t, "rollbacks", rec.Rollbacks, 2)
}

// indexOfText is how many events without words are at the end.
func indexOfText(evs []*session.Event) int {
	n := 0
	for n < len(evs) && evs[len(evs)-1-n].Text() == "" {
		n++
	}
	return n
}

// LOOP 18, 26: the next iteration is told why, and what it was.
func TestRejectedIterationInTheNext(t *testing.T) {
	var rec *loop.StopRecord
	root := loopOf(t, "l", 5, rolls(&rec), looks(t, "critic", "draft", "rejected.reason", "rejected.draft"), writer(t, 5, 7, 6, 8))
	got := mustPlay(t, root)
	check(t, "events", got, []string{
		"critic: ", "writer: draft 1",
		"critic: draft=draft 1", "writer: draft 2",
		"critic: draft=draft 2", "writer: draft 3",
		"l: ",
		"critic: draft=draft 2 rejected.reason=score 6 is worse than 7, the best so far (iteration 2) rejected.draft=draft 3", "writer: draft 4",
		"critic: draft=draft 4", "writer: draft 5", // no worse, and no better
		"l: draft 4",
	})
}

// O10, LOOP 19: so is one that the quality gate has kept out; without rollback the
// state is what it made of it.
func TestQualityGate(t *testing.T) {
	for _, how := range []loop.Regression{loop.KeepBest, loop.RollbackOnWorse} {
		var rec *loop.StopRecord
		root := loopOf(t, "l", 3, func(c *loopagent.Config) {
			rolls(&rec)(c)
			c.Rules.OnRegression, c.Rules.QualityGate = how, new(6.0)
		}, looks(t, "critic", "draft", "rejected.reason", "rejected.draft"), writer(t, 5, 6, 5.5))
		got := mustPlay(t, root)
		second := "critic: draft=draft 1 rejected.reason=score 5 does not pass the quality gate of 6 rejected.draft=draft 1"
		if how == loop.RollbackOnWorse { // back to what was there before the loop
			second = "critic: rejected.reason=score 5 does not pass the quality gate of 6 rejected.draft=draft 1"
			got = append(got[:2:2], got[3:]...)
		}
		check(t, string(how)+" second critic", got[2], second)
		check(t, "third critic", got[4], "critic: draft=draft 2")
		check(t, "result", rec.Result, loop.Result{Source: loop.FromBest, Iteration: 2})
		check(t, "rejections", rec.Rejections, 2)
	}
}

// LOOP 18: an iteration that a failure has cut short is undone as well.
func TestFailedIterationIsUndone(t *testing.T) {
	var rec *loop.StopRecord
	n := 0
	root := loopOf(t, "l", 3, func(c *loopagent.Config) {
		rolls(&rec)(c)
		c.Rules.OnError = loop.NextIteration
	}, looks(t, "look", "draft", "rejected.reason", "rejected.draft"), writer(t, 5, 9, 6), does(t, "check", func(agent.InvocationContext, say) error {
		if n++; n == 2 {
			return errBroken
		}
		return nil
	}))
	got := mustPlay(t, root)
	check(t, "after the failure", got[5], "look: draft=draft 1 rejected.reason=a failure cut the iteration short rejected.draft=draft 2")
	check(t, "rollbacks", rec.Rollbacks, 1)
}

// In a durable run a mark says what was undone.
func TestMarkOfARollback(t *testing.T) {
	var rec *loop.StopRecord
	s := newStage(t, loopOf(t, "l", 3, rolls(&rec), drafts(t, "w", "score", 5, 7, 6)), true)
	if _, err := s.send(t, t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	var got []mark.RolledBack
	for _, ev := range s.log(t) {
		if ev.Mark == nil || ev.Mark.Kind != mark.KindRolledBack {
			continue
		}
		var back mark.RolledBack
		if err := ev.Mark.Decode(&back); err != nil {
			t.Fatal(err)
		}
		got = append(got, back)
		check(t, "delta", ev.Actions.StateDelta, map[string]any{"score": 7.0})
		check(t, "address", ev.Address, session.Address("l"))
	}
	check(t, "marks", got, []mark.RolledBack{{Iteration: 3, To: 2, Reason: "score 6 is worse than 7, the best so far (iteration 2)"}})
}

// LOOP 17, 18: at the limit the state is restored before the finalizer sees it.
func TestRollbackComesBeforeTheFinalizer(t *testing.T) {
	var rec *loop.StopRecord
	root := loopOf(t, "l", 3, func(c *loopagent.Config) {
		rolls(&rec)(c)
		finalizeWith(c, "final")
	}, writer(t, 5, 7, 6), looks(t, "final", "draft", "score", "best.score"))
	got := mustPlay(t, root)
	check(t, "events", got[len(got)-2:], []string{"l: ", "final: draft=draft 2 score=7 best.score=7"})
	check(t, "reason", rec.Reason, loop.ReasonMaxIterations)
}

// An iteration that a limit has stopped in the middle is undone too, also if the
// one before it was.
func TestRollbackOfAnIterationThatALimitCut(t *testing.T) {
	for _, scores := range [][]float64{{5, 7, 6}, {7, 6}, {}} {
		for _, durable := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var rec *loop.StopRecord
				n := 0
				s := newStage(t, loopOf(t, "l", 0, func(c *loopagent.Config) {
					rolls(&rec)(c)
					finalizeWith(c, "final")
					c.Rules.Timeout = loop.Duration(time.Minute)
				}, does(t, "w", func(ctx agent.InvocationContext, say say) error {
					say(sets("", "draft", fmt.Sprint("draft ", n+1)))
					if n++; n <= len(scores) {
						say(sets("", "score", scores[n-1]))
						return nil
					}
					<-ctx.Done()
					return ctx.Err()
				}), looks(t, "final", "draft", "rejected.reason", "rejected.draft")), durable)
				evs, err := s.send(t, t.Context(), "go")
				if err != nil {
					t.Fatal(err)
				}
				draft := ""
				switch len(scores) {
				case 3:
					draft = "draft=draft 2 "
				case 2:
					draft = "draft=draft 1 "
				}
				var last string
				for _, ev := range evs {
					if ev.Author == "final" && ev.Mark == nil {
						last = ev.Text()
					}
				}
				check(t, "final", last, fmt.Sprintf("%srejected.reason=a limit cut the iteration short rejected.draft=draft %d", draft, len(scores)+1))
				check(t, "reason", rec.Reason, loop.ReasonTimeout)
			})
		}
	}
}

// T20: a run that is canceled on the way to a rollback ends with its cause, and
// one that is canceled by the event itself too.
func TestCancelDuringARollback(t *testing.T) {
	for _, durable := range []bool{false, true} {
		for _, when := range []string{"callback", "event"} {
			var rec *loop.StopRecord
			ctx, cancel := context.WithCancelCause(t.Context())
			s := newStage(t, loopOf(t, "l", 5, func(c *loopagent.Config) {
				rolls(&rec)(c)
				if when == "callback" {
					c.AfterIteration = []loopagent.AfterIterationCallback{func(_ agent.Context, it loop.IterationRecord) error {
						if it.Rejected != "" {
							cancel(errEnough)
						}
						return nil
					}}
				}
			}, drafts(t, "w", "score", 5, 7, 6)), durable)
			var err error
			for ev, e := range s.Run(ctx, "ana", "s1", nil, agent.RunConfig{}) {
				if err = e; e == nil && when == "event" && ev.Author == "l" && ev.Actions.StateDelta != nil {
					cancel(errEnough)
				}
			}
			if err != errEnough {
				t.Errorf("%s: error %v", when, err)
			}
			if rec == nil || rec.Reason != loop.ReasonCanceled {
				t.Errorf("%s: stopped by %+v", when, rec)
			}
			balanced(t, s.log(t))
		}
	}
}

// A loop beside other branches leaves what they have changed.
func TestRollbackBesideOtherBranches(t *testing.T) {
	var rec *loop.StopRecord
	meet := make(chan bool)
	n := 0
	root := parallel(t, "par", loopOf(t, "l", 3, func(c *loopagent.Config) {
		rolls(&rec)(c)
		c.BeforeIteration = []loopagent.BeforeIterationCallback{func(ctx agent.Context, n int) error { return ctx.State().Set("called", n) }}
	}, does(t, "w", func(_ agent.InvocationContext, say say) error {
		n++
		if n == 3 {
			meet <- true
			<-meet
		}
		ev := sets("", "score", []float64{5, 7, 6}[n-1])
		ev.Actions.StateDelta["mine"] = n
		say(ev)
		return nil
	})), does(t, "other", func(_ agent.InvocationContext, say say) error {
		<-meet
		say(sets("", "theirs", 1))
		meet <- true
		return nil
	}))
	s := newStage(t, root, false)
	if _, err := s.send(t, t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	check(t, "its own", s.state(t, "mine"), any(2.0))
	check(t, "its callback's", s.state(t, "called"), any(2.0))
	check(t, "theirs", s.state(t, "theirs"), any(1.0))
	check(t, "rollbacks", rec.Rollbacks, 1)
}

// An inner loop's rollback leaves the iteration: keys of the outer one.
func TestRollbackOfAnInnerLoop(t *testing.T) {
	var rec *loop.StopRecord
	root := repeat(t, "outer", 2,
		turns(t, "note", sets("", "iteration:note", "outer 1"), sets("", "iteration:note", "outer 2")),
		loopOf(t, "inner", 2, rolls(&rec), drafts(t, "w", "score", 7, 6, 7, 6)),
		looks(t, "look", "iteration:note", "score"))
	got := mustPlay(t, root)
	var looked []string
	for _, line := range got {
		if line[:4] == "look" {
			looked = append(looked, line)
		}
	}
	check(t, "looks", looked, []string{"look: iteration:note=outer 1 score=7", "look: iteration:note=outer 2 score=7"})
}

// C10, LOOP 26: with KeepStates prev. is what the iteration before has made, the
// rejected one included, and best. what the best has.
func TestKeepStatesWithRollback(t *testing.T) {
	var rec *loop.StopRecord
	root := loopOf(t, "l", 4, func(c *loopagent.Config) {
		rolls(&rec)(c)
		c.KeepStates = true
	}, looks(t, "look", "draft", "prev.draft", "best.draft"), writer(t, 5, 7, 6, 8))
	got := mustPlay(t, root)
	check(t, "fourth", got[7], "look: draft=draft 2 prev.draft=draft 3 best.draft=draft 2")
}

// AfterIteration is told that an iteration is not accepted, and why.
func TestAfterIterationSeesTheRejection(t *testing.T) {
	var rec *loop.StopRecord
	var got []string
	mustPlay(t, loopOf(t, "l", 3, func(c *loopagent.Config) {
		rolls(&rec)(c)
		c.AfterIteration = []loopagent.AfterIterationCallback{func(_ agent.Context, it loop.IterationRecord) error {
			got = append(got, it.Rejected)
			return nil
		}}
	}, drafts(t, "w", "score", 7, 6, 8)))
	if diff := cmp.Diff([]string{"", "score 6 is worse than 7, the best so far (iteration 1)", ""}, got); diff != "" {
		t.Errorf("rejections (-want +got):\n%s", diff)
	}
}

// A key that belongs to the result gets the value of the iteration that is handed back, and the others run on.
func TestHandBackTakesAKeyFromTheResult(t *testing.T) {
	undone := func(c *loopagent.Config) { c.Rules.OnRegression, c.Rules.QualityGate = loop.RollbackOnWorse, new(9.0) }
	for _, tt := range []struct {
		name string
		more func(*loopagent.Config)
		fin  func() agent.Agent
		want any
	}{
		{"best", func(*loopagent.Config) {}, nil, "draft 4"},
		{"none, because every iteration was undone", undone, nil, nil},
		{"last, without a score", func(c *loopagent.Config) { c.Rules.Score = nil }, nil, "draft 5"},
		{"target", func(c *loopagent.Config) { c.Rules.Score.Target = new(7.0) }, nil, "draft 2"},
		{"the best that met the condition", func(c *loopagent.Config) {
			c.Rules.StopWhen = &loop.Condition{Expr: "iteration >= 3"}
		}, nil, "draft 3"},
		{"the finalizer has words alone", func(c *loopagent.Config) { finalizeWith(c, "final") }, func() agent.Agent { return says(t, "final", "the end") }, "draft 4"},
		{"the finalizer writes the key", func(c *loopagent.Config) { finalizeWith(c, "final") },
			func() agent.Agent { return turns(t, "final", sets("bye", "draft", "the end")) }, "the end"},
		{"the finalizer reads the key", func(c *loopagent.Config) { finalizeWith(c, "final") }, func() agent.Agent { return appends(t, nil) }, "draft 4, the end"},
		{"the finalizer reads it after the target", func(c *loopagent.Config) { finalizeWith(c, "final"); c.Rules.Score.Target = new(7.0) },
			func() agent.Agent { return appends(t, nil) }, "draft 2, the end"},
		{"the finalizer reads it after the condition", func(c *loopagent.Config) {
			finalizeWith(c, "final")
			c.Rules.StopWhen = &loop.Condition{Expr: "iteration >= 3"}
		}, func() agent.Agent { return appends(t, nil) }, "draft 3, the end"},
		{"the finalizer reads the last, without a score", func(c *loopagent.Config) { finalizeWith(c, "final"); c.Rules.Score = nil },
			func() agent.Agent { return appends(t, nil) }, "draft 5, the end"},
		{"the finalizer fails after it wrote the key", func(c *loopagent.Config) { finalizeWith(c, "final") },
			func() agent.Agent { return appends(t, errors.New("no ink")) }, "draft 4"},
	} {
		for _, durable := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				var rec *loop.StopRecord
				steps := []agent.Agent{writer(t, 5, 7, 6, 8, 4)}
				if tt.fin != nil {
					steps = append(steps, tt.fin())
				}
				s := newStage(t, loopOf(t, "l", 5, func(c *loopagent.Config) {
					scored(&rec, loop.Score{})(c)
					c.HandBack = []string{"draft", "none"}
					tt.more(c)
				}, steps...), durable)
				if _, err := s.send(t, t.Context(), "go"); err != nil {
					t.Fatal(err)
				}
				check(t, "key", s.state(t, "draft"), tt.want)
				if tt.want != nil {
					check(t, "other key", s.state(t, fmt.Sprint("added in ", rec.Iterations)), any(true))
				}
			})
		}
	}
}

// appends is a finalizer that adds to the draft.
func appends(t testing.TB, err error) agent.Agent {
	return does(t, "final", func(ctx agent.InvocationContext, say say) error {
		draft, _ := ctx.Session().State().Get("draft")
		say(sets("bye", "draft", fmt.Sprint(draft, ", the end")))
		return err
	})
}
