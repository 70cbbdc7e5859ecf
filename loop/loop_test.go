// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
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
	decided  []loop.Decision
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
	return goOn(t, p, loop.Tally{}, s)
}

// goOn drives a plan from where a tally stands.
func goOn(t *testing.T, p loop.Plan, from loop.Tally, s script) trace {
	t.Helper()
	if err := p.Check(); err != nil {
		t.Fatalf("check: %v", err)
	}
	tr := trace{tally: from}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(from.Active)
	for range tooLong {
		d := p.Next(&tr.tally)
		q, u := p, tr.tally
		if stored := over(t, &q, &u).Next(&u); !cmp.Equal(d, stored) {
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
		tr.ran = append(tr.ran, ran(&p, d))
		o := carryOut(&p, d, s)
		took := o.Finished.Sub(o.Started)
		o.Started = now
		now = now.Add(took)
		o.Finished = now
		tr.decided = append(tr.decided, d)
		tr.outcomes = append(tr.outcomes, o)
		retries := p.Retries(&tr.tally, o)
		p.Add(&tr.tally, o)
		if next := p.Next(&tr.tally); retries != (next.Attempt > max(1, d.Attempt) && next.Action == loop.RunStep && d.Action == loop.RunStep) {
			t.Fatalf("%s: retries: %t, and then comes %+v", tr.ran[len(tr.ran)-1], retries, next)
		}
	}
	t.Fatalf("did not stop: %v", tr.ran[:20])
	return tr
}

// ran names what a decision runs.
func ran(p *loop.Plan, d loop.Decision) string {
	if d.Action == loop.Rollback {
		return fmt.Sprintf("back to %d", d.To)
	}
	if d.Action == loop.BeginLeg {
		return fmt.Sprintf("leg %d from %d", d.Leg, d.To)
	}
	s := fmt.Sprintf("%s@%d", p.Steps[d.Step].Name, d.Iteration)
	if d.Refuse != nil {
		s += " refused"
	}
	return s
}

// carryOut does what a driver does: it rolls back, refuses, waits, and cuts a
// step short. A step takes a second unless the script says otherwise, see
// lasting.
func carryOut(p *loop.Plan, d loop.Decision, s script) loop.Outcome {
	var o loop.Outcome
	if s != nil && d.Refuse == nil {
		o = s(d)
	}
	took := o.Finished.Sub(o.Started)
	if took == 0 {
		took = time.Second
	}
	if o.Step >= 0 {
		o.Iteration, o.Step = d.Iteration, d.Step
	}
	switch {
	case d.Action == loop.Rollback || d.Action == loop.BeginLeg:
		o.RolledBack = o.Failure == nil && o.Canceled == ""
	case d.Refuse != nil:
		o.Failure, took = d.Refuse, 0
	case d.Timeout > 0 && took > d.Timeout:
		took = d.Timeout
		o.Failure = &loop.Failure{Kind: d.TimeoutKind, Message: "out of time"}
	}
	o.Started = time.Unix(0, 0)
	o.Waited, o.Finished = d.Wait, o.Started.Add(d.Wait+took)
	return o
}

// lasting makes an outcome's step take so long.
func lasting(d time.Duration, o loop.Outcome) loop.Outcome {
	o.Started, o.Finished = time.Unix(0, 0), time.Unix(0, 0).Add(d)
	return o
}

// allOfIt compares tallies with what only a plan reads of them.
var allOfIt = cmp.Exporter(func(reflect.Type) bool { return true })

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
		if diff := cmp.Diff(from, to, allOfIt); diff != "" {
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
		if d.Step >= 0 && p.Steps[d.Step].Name == name && d.Iteration == iteration {
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

func num(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }
