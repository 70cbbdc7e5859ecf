// SPDX-License-Identifier: Apache-2.0

package backtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Recording is one run of a loop, read from the log: its plan and the outcome of each step.
// [loop.Plan.Backtest] replays it under another plan.
type Recording struct {
	// Loop is the loop's address, InvocationID the run that it belongs to.
	Loop         session.Address
	InvocationID string
	Plan         *loop.Plan
	Outcomes     []loop.Outcome
	// Stop is why the loop stopped; nil if it has not.
	Stop *loop.StopRecord

	today *loop.Plan // from which trials start, in place of Plan; see [ByToday]
}

// Recordings returns the loops in a log, in the order in which they began. events is the whole log
// of one session, oldest first, written by a durable run. For a run that was resumed, repeated
// steps replace the first ones; for a loop that continued with other limits, the last limits count.
func Recordings(events []*session.Event) ([]*Recording, error) {
	var (
		all  []*Recording
		open = make(map[string]*writing) // by invocation and address
		view = session.NewView(session.ViewConfig{State: make(map[string]any), StateOnly: true})
	)
	key := func(ev *session.Event, at session.Address) string { return ev.InvocationID + " " + string(at) }
	current := session.Current(events)
	for i, ev := range current {
		view.Apply(ev)
		for _, r := range open {
			r.write(ev)
		}
		if ev.Mark == nil {
			continue
		}
		fail := func(err error) error {
			return fmt.Errorf("event %d, %s of %s: %w", ev.Seq, ev.Mark.Kind, ev.Address, err)
		}
		switch ev.Mark.Kind {
		case mark.KindLoopStarted:
			r := &Recording{Loop: ev.Address, InvocationID: ev.InvocationID, Plan: new(loop.Plan)}
			if err := ev.Mark.Decode(r.Plan); err != nil {
				return nil, fail(err)
			}
			open[key(ev, ev.Address)] = begin(r, view.State(), current[:i])
			all = append(all, r)
		case mark.KindLoopContinued:
			if r := open[key(ev, ev.Address)]; r != nil {
				r.Plan = new(loop.Plan)
				if err := ev.Mark.Decode(r.Plan); err != nil {
					return nil, fail(err)
				}
			}
		case mark.KindStepFinished:
			r := open[key(ev, ev.Address.Parent())]
			var fin mark.StepFinished
			if err := ev.Mark.Decode(&fin); err != nil {
				return nil, fail(err)
			}
			if r == nil || fin.Outcome == nil {
				continue // no loop's step
			}
			var o loop.Outcome
			if err := json.Unmarshal(fin.Outcome, &o); err != nil {
				return nil, fail(err)
			}
			kept := o.State // what the log alone does not tell
			o.State = maps.Collect(view.StateAt(ev.Address[:strings.LastIndexByte(string(ev.Address), '/')]).All())
			maps.Copy(o.State, kept)
			maps.DeleteFunc(o.State, func(_ string, v any) bool { return v == nil })
			r.complete(&o)
			r.Outcomes = append(r.Outcomes, o)
		case mark.KindIterationFinished:
			if r := open[key(ev, ev.Address)]; r != nil && len(r.Outcomes) > 0 {
				r.end(ev)
				view.EndIteration(session.Address(fmt.Sprintf("%s[%d]", ev.Address, r.Outcomes[len(r.Outcomes)-1].Iteration)))
			}
		case mark.KindRolledBack:
			var back mark.RolledBack
			if err := ev.Mark.Decode(&back); err != nil {
				return nil, fail(err)
			}
			if r := open[key(ev, ev.Address)]; r != nil {
				r.Outcomes = append(r.Outcomes, loop.Outcome{Iteration: back.Iteration, Step: -1, RolledBack: true})
				r.restore(back.To)
			}
		case mark.KindLegStarted:
			var leg mark.LegStarted
			if err := ev.Mark.Decode(&leg); err != nil {
				return nil, fail(err)
			}
			if r := open[key(ev, ev.Address)]; r != nil {
				r.Outcomes = append(r.Outcomes, loop.Outcome{Iteration: leg.Iteration, Step: -1, RolledBack: true, Leg: leg.Leg})
				r.restore(leg.To)
			}
		case mark.KindLoopStopped:
			r := open[key(ev, ev.Address)]
			if r == nil {
				continue
			}
			r.Stop = new(loop.StopRecord)
			if err := ev.Mark.Decode(r.Stop); err != nil {
				return nil, fail(err)
			}
			if r.Stop.Reason == loop.ReasonCanceled && !slices.ContainsFunc(r.Outcomes,
				func(o loop.Outcome) bool { return o.Canceled != "" }) {
				r.Outcomes = append(r.Outcomes, loop.Outcome{Iteration: r.Stop.Iteration, Step: -1,
					Canceled: r.Stop.Detail})
			}
			delete(open, key(ev, ev.Address))
		}
	}
	return all, nil
}
