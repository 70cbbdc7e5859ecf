// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/loop"
)

// script says what a step of an iteration leaves behind; the zero value is a
// step that simply succeeds.
type script func(d loop.Decision) loop.Outcome

// trace is a run: what was run, and what came of it.
type trace struct {
	ran      []string // name@iteration
	ended    []loop.IterationRecord
	outcomes []loop.Outcome
	stop     *loop.StopRecord
	final    *loop.StopRecord // as told with the decision to finalize
	tally    loop.Tally
}

const tooLong = 500

// run drives a plan until it stops. Before each decision the tally and the
// plan go through JSON, and Next is asked twice: nothing may change by it.
func run(t *testing.T, p loop.Plan, s script) trace {
	t.Helper()
	if err := p.Check(); err != nil {
		t.Fatalf("check: %v", err)
	}
	var (
		tr  trace
		now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	)
	for range tooLong {
		d := p.Next(&tr.tally, now)
		q, u := p, tr.tally
		if stored := over(t, &q, &u).Next(&u, now.Add(time.Hour)); !cmp.Equal(d, stored) {
			t.Fatalf("after storing (-live +stored):\n%s", cmp.Diff(d, stored))
		}
		if d.Ended.Number != 0 {
			tr.ended = append(tr.ended, d.Ended)
		}
		if d.Action == loop.Stop {
			tr.stop = d.Stop
			return tr
		}
		if d.Action == loop.Finalize {
			tr.final = d.Stop
		}
		tr.ran = append(tr.ran, fmt.Sprintf("%s@%d", p.Steps[d.Step].Name, d.Iteration))
		var o loop.Outcome
		if s != nil {
			o = s(d)
		}
		if o.Step >= 0 {
			o.Iteration, o.Step = d.Iteration, d.Step
		}
		o.Started, now = now, now.Add(time.Second)
		o.Finished = now
		tr.outcomes = append(tr.outcomes, o)
		p.Add(&tr.tally, o)
	}
	t.Fatalf("did not stop: %v", tr.ran[:20])
	return tr
}

// over sends plan and tally through JSON.
func over(t *testing.T, p *loop.Plan, u *loop.Tally) *loop.Plan {
	t.Helper()
	var q loop.Plan
	var v loop.Tally
	for from, to := range map[any]any{p: &q, u: &v} {
		b, err := json.Marshal(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, to); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(from, to); diff != "" {
			t.Fatalf("%s came back changed:\n%s", b, diff)
		}
	}
	*u = v
	return &q
}

func steps(names ...string) []loop.Step {
	var out []loop.Step
	for _, n := range names {
		out = append(out, loop.Step{Name: n, Finalizer: n == "final"})
	}
	return out
}

// at gives an outcome at one step of one iteration, and otherwise the rest.
func at(p loop.Plan, name string, iteration int, o loop.Outcome, rest script) script {
	return func(d loop.Decision) loop.Outcome {
		if p.Steps[d.Step].Name == name && d.Iteration == iteration {
			if o.State == nil && rest != nil {
				o.State = rest(d).State
			}
			return o
		}
		if rest == nil {
			return loop.Outcome{}
		}
		return rest(d)
	}
}

// scored gives the iterations these scores, the last one for ever.
func scored(scores ...any) script {
	return func(d loop.Decision) loop.Outcome {
		return loop.Outcome{State: map[string]any{"score": scores[min(d.Iteration, len(scores))-1]}}
	}
}

func failure(kind string) loop.Outcome {
	return loop.Outcome{Failure: &loop.Failure{Kind: kind, Message: "broken"}}
}
