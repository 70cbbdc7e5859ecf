// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// A run that ends each process which drives it is taken up three times, and then paused; a person resumes it.
func TestRunThatEndsItsProcessesIsPaused(t *testing.T) { synctest.Test(t, pausesPoison) }

func pausesPoison(t *testing.T) {
	for _, talks := range []bool{false, true} { // the step yields something before its process ends
		store := session.InMemoryService()
		dying := &mortal{service: store.(service)}
		root := loop(t, "l", 2, newWorld().step(t, "before"), custom(t, "poison", func(_ agent.InvocationContext, yield yield) {
			if talks {
				ev := &session.Event{}
				ev.Content = genai.NewContentFromText("I begin.", genai.RoleModel)
				yield(ev, nil)
			}
			dying.dead.Store(true)
			yield(&session.Event{}, nil)
		}))
		dead := func(c *supervisor.Config) { c.Dead = func(string) bool { return true } }
		next := func() *supervisor.Supervisor {
			dying = &mortal{service: store.(service)}
			return process(t, dying, root, dead)
		}
		sup := next()
		run := start(t, sup)
		wait(t, run)
		taken, why := 0, error(nil)
		for ; why == nil && taken < 10; taken++ {
			if err := sup.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			sup = next()
			var runs []*supervisor.Run
			if runs, why = sup.Recover(t.Context()); len(runs) == 1 {
				wait(t, runs[0])
			} else if why == nil {
				t.Fatalf("continued %v", runs)
			}
		}
		if taken != 4 || !strings.Contains(why.Error(), "3 processes in a row ended") || !strings.Contains(why.Error(), "l[1]/poison") {
			t.Errorf("talks: %v: at look %d: %v", talks, taken, why)
		}
		now := session.RunOf(view(t, store, run.ID()))
		if now.Status != mark.RunIsPaused || now.HandOver {
			t.Errorf("talks: %v: the run is %+v", talks, now)
		}
		if runs, err := sup.Recover(t.Context()); err != nil || len(runs) > 0 {
			t.Errorf("talks: %v: then %v, %v", talks, runs, err)
		}
		if err := sup.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		// What ended the processes is gone: the run completes, in spite of one more death.
		good := newWorld()
		sup = process(t, store, loop(t, "l", 2, good.step(t, "before"), good.step(t, "poison")), dead)
		completed(t, resume(t, sup, run.ID()))
	}
}

// Processes that end while a run gets on are no reason to pause it.
func TestRunThatGetsOnIsTakenUpAgain(t *testing.T) { synctest.Test(t, takesUpAgain) }

func takesUpAgain(t *testing.T) {
	store := session.InMemoryService()
	dying := &mortal{service: store.(service)}
	steps := 0
	root := loop(t, "l", 10, custom(t, "step", func(_ agent.InvocationContext, yield yield) {
		if steps++; steps%2 == 0 {
			dying.dead.Store(true)
		}
	}))
	dead := func(c *supervisor.Config) { c.Dead = func(string) bool { return true } }
	sup := process(t, dying, root, dead)
	run := start(t, sup)
	wait(t, run)
	for range 20 {
		if err := sup.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		dying = &mortal{service: store.(service)}
		sup = process(t, dying, root, dead)
		runs, err := sup.Recover(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runs {
			wait(t, r)
		}
		if session.RunOf(view(t, store, run.ID())).Status == mark.RunCompleted {
			return
		}
	}
	t.Errorf("the run is %v", session.RunOf(view(t, store, run.ID())))
}
