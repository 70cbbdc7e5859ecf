// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/stage"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
)

// neverExits injects an agent that never ends its loop, conditions that never hold, and a score that stays below its
// target.
func (s *bench) neverExits(ctx context.Context) ([]Finding, error) {
	waits := func(l *definition.Agent) string {
		if len(s.Goals[l.Name].Ways) > 0 {
			return ""
		}
		return "only its limits end it: it has no condition, target or exit"
	}
	return s.inEachLoop(waits, func(l *definition.Agent, f *Finding) error {
		_, got, err := s.endless(ctx, l, f, new(stage.Scene))
		if err != nil {
			return err
		}
		f.Detail = got.Ending()
		if got.Stop != nil && got.Stop.Reason == loop.ReasonError {
			f.Detail += ": " + got.Stop.Detail
		}
		if f.Guard == "" {
			f.Status, f.Detail = Uncaught, fmt.Sprintf("after %s the loop is still running",
				brief.Count(got.Iterations, "iteration"))
			f.fix(l.Name, "max_iterations", "10", "")
		}
		return nil
	})
}

// exitNotPermitted: an agent that may not end the loop asks to.
func (s *bench) exitNotPermitted(ctx context.Context) ([]Finding, error) {
	var all []Finding
	for _, l := range s.Loops {
		var asks []*definition.Agent
		named := false
		for _, a := range s.Steps(l) {
			switch {
			case s.named(a, l):
				named = true
			case a.Type == definition.TypeLLM || a.Type == definition.TypeA2A:
				asks = append(asks, a)
			}
		}
		if len(asks) == 0 || len(asks) == 1 && !named && s.MayExit(asks[0]) {
			all = append(all, Finding{Loop: l.Name, Status: Spared,
				Detail: "no agent without permission can ask to leave"})
			continue
		}
		if f, bad := s.unfit(l); bad {
			all = append(all, f)
			continue
		}
		var found []Finding
		for _, a := range asks {
			f, err := s.asksToLeave(ctx, l, a)
			if err != nil {
				return nil, err
			}
			found = append(found, f)
		}
		all = append(all, group(found)...)
	}
	return all, nil
}

// named reports whether the file says, for an agent or an enclosing one of the same loop, whether it may end the
// loop.
func (s *bench) named(a, l *definition.Agent) bool {
	for ; a != l; a = s.Parent[a] {
		if _, given := a.FieldPosition("can_exit_loop"); given && a.CanExitLoop || a.ExitWhen != "" {
			return true
		}
		if a.LLM != nil && slices.ContainsFunc(a.LLM.Tools, func(t definition.Tool) bool { return t.Exit != "" }) {
			return true
		}
	}
	return false
}

func (s *bench) asksToLeave(ctx context.Context, l, a *definition.Agent) (Finding, error) {
	f := Finding{Loop: l.Name, Steps: []string{a.Name}, Status: Spared}
	t, err := s.Run(ctx, &stage.Scene{Target: l, Escalate: a.Name, Iterations: maxIterations})
	if err != nil {
		return f, err
	}
	got := s.Walk(l, s.Plans[l.Name], t).Run()
	switch stop := got.Stop; {
	case stop == nil:
		f.Status, f.Detail = Unknown, "with stand-ins the loop does not get that far"
	case stop.By == a.Name && stop.Reason == loop.ReasonEscalated:
		f.Status, f.Stop = Uncaught, stop
		f.Detail = fmt.Sprintf("it ends the loop in iteration %d: the file does not say who may, so every agent that "+
			"asks a model may", stop.Iteration)
		who := s.decides(l)
		f.fix(who.Name, "can_exit_loop", "true", ", or on the agent that decides")
	case stop.Refusals > 0:
		f.Status, f.Stop, f.Guard = Caught, stop, "can_exit_loop"
		f.Detail = "refused, and noted in the stop record; the loop goes on"
	default:
		f.Status, f.Detail = Unknown, "with stand-ins that does not happen"
	}
	return f, nil
}

// decides returns the agent that probably ends a loop if the file does not say: one whose instructions mention it, or
// else the last agent that asks a model.
func (s *bench) decides(l *definition.Agent) *definition.Agent {
	var last *definition.Agent
	for _, a := range s.Steps(l) {
		if a.LLM == nil {
			continue
		}
		if last = a; strings.Contains(strings.ToLower(strings.ReplaceAll(a.LLM.Instructions, "_", "")), "exitloop") {
			break
		}
	}
	return last
}

// group merges findings that differ only in the agent.
func group(all []Finding) []Finding {
	var out []Finding
	for _, f := range all {
		i := slices.IndexFunc(out, func(o Finding) bool {
			return o.Status == f.Status && o.Loop == f.Loop && o.Guard == f.Guard && o.Detail == f.Detail &&
				(o.Advice == "") == (f.Advice == "")
		})
		if i < 0 {
			out = append(out, f)
			continue
		}
		out[i].Steps = append(out[i].Steps, f.Steps...)
		if f.Advice != out[i].Advice {
			out[i].Advice += "; " + f.Advice
			out[i].Add = append(out[i].Add, f.Add...)
		}
	}
	return out
}
