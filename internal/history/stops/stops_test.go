// SPDX-License-Identifier: Apache-2.0

package stops_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/history/stops"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

func event(t *testing.T, at session.Address, iteration int, kind mark.Kind, data any) *session.Event {
	t.Helper()
	m, err := mark.New(kind, data)
	if err != nil {
		t.Fatal(err)
	}
	return &session.Event{Address: at, Iteration: iteration, Mark: m}
}

// A loop that has lost a race decides nothing about the run, in whatever order the loops and the race end. Loops inside a
// loop never do.
func TestStops(t *testing.T) {
	stop := func(at session.Address, reason loop.StopReason) *session.Event {
		return event(t, at, 0, mark.KindLoopStopped, loop.StopRecord{Loop: at.Agent(), Reason: reason, Iteration: 4})
	}
	decided := func(at session.Address, winner string, goesOn bool) *session.Event {
		return event(t, at, 0, mark.KindRaceDecided, mark.RaceDecided{Winner: winner, Continues: goesOn, Standings: []mark.Standing{
			{Loop: "good", Stop: "target_reached", Iterations: 1, Score: new(9.5)}, {Loop: "bad", Stop: "max_iterations", Iterations: 3}}})
	}
	good, bad := stop("r/good", loop.ReasonTarget), stop("r/bad", loop.ReasonMaxIterations)
	inner := event(t, "after[1]/inner", 1, mark.KindLoopStopped, loop.StopRecord{Loop: "inner", Reason: loop.ReasonTimeout})
	for name, tt := range map[string]struct {
		log  []*session.Event
		want string
	}{
		"no race":                     {[]*session.Event{good, bad}, "good target_reached 4, bad max_iterations 4"},
		"the winner ends first":       {[]*session.Event{good, bad, decided("r", "good", false)}, "good target_reached 4"},
		"the winner ends last":        {[]*session.Event{bad, good, decided("r", "good", false)}, "good target_reached 4"},
		"the winner goes on":          {[]*session.Event{decided("r", "good", true), bad, good}, "good target_reached 4"},
		"the loser ends last":         {[]*session.Event{decided("r", "good", true), good, bad}, "good target_reached 4"},
		"the winner has not ended":    {[]*session.Event{decided("r", "good", true), bad}, ""},
		"events after the first stop": {[]*session.Event{bad, decided("r", "good", false)}, "good target_reached 1"},
		"decided again":               {[]*session.Event{decided("r", "bad", true), good, bad, decided("r", "good", false)}, "good target_reached 4"},
		"a race a second time": {[]*session.Event{bad, good, decided("r", "good", false), stop("r/bad#2", loop.ReasonBudget)},
			"good target_reached 4"},
		"in a sequence": {[]*session.Event{stop("s/before", loop.ReasonConverged), stop("s/r/bad", loop.ReasonTimeout), stop("s/r/good", loop.ReasonTarget),
			decided("s/r", "good", false), stop("s/r_bad", loop.ReasonBudget)}, "before converged 4, good target_reached 4, r_bad budget 4"},
		"inside a loop": {[]*session.Event{inner, event(t, "after[1]/r", 1, mark.KindRaceDecided, mark.RaceDecided{Winner: "good"}),
			stop("after", loop.ReasonCondition)}, "after condition 4"},
	} {
		var f stops.Fold
		for _, ev := range tt.log {
			f.Add(ev)
		}
		var got []string
		for _, rec := range f.All() {
			got = append(got, fmt.Sprint(rec.Loop, " ", rec.Reason, " ", rec.Iteration))
		}
		if s := strings.Join(got, ", "); s != tt.want {
			t.Errorf("%s: %q, want %q", name, s, tt.want)
		}
		if last := f.Last(); (last == nil) != (tt.want == "") || last != nil && !strings.HasSuffix(tt.want, fmt.Sprint(last.Reason, " ", last.Iteration)) {
			t.Errorf("%s: the last is %v", name, last)
		}
	}
}
