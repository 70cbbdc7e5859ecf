// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"fmt"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/stage"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/study"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session/mark"
)

// stepHung makes an agent hang whenever it runs, in a loop that only its limits end. The rules of the loop decide
// what follows.
func (s *bench) stepHung(ctx context.Context) ([]Finding, error) {
	endless := make(map[*definition.Agent]*stage.Take)
	for _, l := range s.Loops {
		t, err := s.Run(ctx, &stage.Scene{Target: l, Never: true, Iterations: maxIterations})
		if err != nil {
			return nil, err
		}
		endless[l] = t
	}
	var found []Finding
	for _, a := range s.Leaves(s.Def.Root) {
		if study.Reaches(a) {
			found = append(found, s.hung(a, endless[s.LoopAround(a)]))
		}
	}
	if len(found) == 0 {
		return []Finding{{Status: Spared, Detail: "no step asks a model, runs a program or waits for a person"}}, nil
	}
	return group(found), nil
}

func (s *bench) hung(a *definition.Agent, t *stage.Take) Finding {
	f := Finding{Steps: []string{a.Name}, Status: Caught}
	own, ownName := ownTimeout(a)
	l := s.LoopAround(a)
	if a.Human != nil {
		if l != nil {
			f.Loop = l.Name
		}
		if f.Guard = fmt.Sprintf("deadline of %s: %s", a.Name, brief.Clock(a.Human.Deadline)); a.Human.Deadline == 0 {
			f.Status, f.Guard = Uncaught, ""
			f.deadline(a)
		}
		f.Detail = "no answer comes: the run waits, which costs nothing"
		return f
	}
	if l == nil {
		if own > 0 {
			f.Guard, f.Detail = ownName, "cut off; it is in no loop, so the run fails"
			return f
		}
		f.Status, f.Detail = Uncaught, "it is in no loop, and nothing limits its time"
		f.Advice = fmt.Sprintf("put %s alone into a loop of its own: type: loop, max_iterations: 1, sub_agents: [%s, "+
			"with can_exit_loop: false]", a.Name, a.Name)
		if a.Command != nil {
			f.fix(a.Name, "timeout", "2m", "")
		}
		return f
	}
	f.Loop = l.Name
	w := s.Walk(l, s.Quiet[l.Name], t)
	index, cut := s.StepIndex(a, l), ""
	w.Hang = func(d loop.Decision) (time.Duration, bool) {
		if d.Step != index {
			return 0, false
		}
		if cut == "" {
			cut = ownName
			if d.Timeout > 0 && (own == 0 || d.Timeout <= own) {
				cut = stage.LimitName(l, s.StepIn(a, l), d.TimeoutKind, d.Timeout)
			}
		}
		return own, true
	}
	got := w.Run()
	f.Stop = got.Stop
	_, fails := s.unfit(l)
	switch {
	case got.Hangs == 0:
		f.Status, f.Detail = Spared, "the loop ends before this step runs"
	case got.Hung:
		f.Status = Uncaught
		f.Detail = "neither the step, the iteration nor the loop has a time limit"
		if f.fix(l.Name, "iteration_timeout", "5m", ", or a timeout on the step"); s.Finalizes(a, l) &&
			!l.Loop.FinalizeEach {
			f.Detail = "neither the finalizer nor the loop has a time limit" // and it is in no iteration
			f.fix(l.Name, "timeout", "30m", "")
		}
	case got.Guard != "" && cut == "":
		f.Guard, f.Detail = got.Guard, fmt.Sprintf("an outer loop cuts it off after %s", brief.Clock(got.Elapsed))
	case got.Stop == nil:
		f.Guard, f.Detail = cut, fmt.Sprintf("cut off %s; then an outer loop has no time left, after %s",
			times(got.Hangs), brief.Clock(got.Elapsed))
	case fails:
		f.Guard, f.Detail = cut, "cut off; what follows is not known, because the loop fails with stand-ins"
	default:
		f.Guard, f.Detail = cut, fmt.Sprintf("cut off %s; the loop ends: %s", times(got.Hangs), got.Ending())
	}
	return f
}

// deadline suggests a deadline for a person's answer, and a default.
func (f *Finding) deadline(a *definition.Agent) {
	f.fix(a.Name, "deadline", "24h", "")
	if a.Human.Default != nil {
		return
	}
	answer := study.Encode("nobody has answered")
	switch h := a.Human; {
	case h.Ask == mark.AskApproval:
		answer = "false"
	case h.Ask == mark.AskEdit:
		f.Advice += ", and default: the values then"
		return
	case len(h.Options) > 0:
		answer = study.Encode(h.Options[0])
	}
	f.Add = append(f.Add, Fix{Agent: a.Name, Field: "default", Value: answer})
	f.Advice = fmt.Sprintf("deadline: 24h and default: %s on %s", answer, a.Name)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// defaultRequestTime is the default timeout of taskagent.
const defaultRequestTime = 30 * time.Second

// ownTimeout returns the agent's own timeout, whatever its loop says; 0 means no limit.
func ownTimeout(a *definition.Agent) (d time.Duration, name string) {
	switch {
	case a.Command != nil:
		d = a.Command.Timeout
	case a.HTTP != nil:
		if s := a.Step; s != nil && (s.Timeout > 0 || s.AdaptiveTimeout != nil) {
			return 0, "" // the step's is the shorter one
		}
		if d = a.HTTP.Timeout; d == 0 {
			return defaultRequestTime, fmt.Sprintf("timeout of %s: %s (the default)", a.Name,
				brief.Clock(defaultRequestTime))
		}
	}
	if d == 0 {
		return 0, ""
	}
	return d, fmt.Sprintf("timeout of %s: %s", a.Name, brief.Clock(d))
}
