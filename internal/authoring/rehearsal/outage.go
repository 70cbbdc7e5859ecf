// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/stage"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/study"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// down is the failure of an overloaded or unreachable provider.
var down = &scripted.Failure{Status: 503, Code: "unavailable", Message: "the provider is down, says the rehearsal"}

// asking returns the agents of a loop that send requests, which can be refused.
func (s *bench) asking(l *definition.Agent) []*definition.Agent {
	var all []*definition.Agent
	for _, a := range s.Leaves(l) {
		if a.Type == definition.TypeLLM {
			all = append(all, a)
		}
	}
	return all
}

// providerHiccup: one request of an agent fails, and the next would not.
func (s *bench) providerHiccup(ctx context.Context) ([]Finding, error) {
	asking := s.asking(s.Def.Root)
	if len(asking) == 0 {
		return []Finding{{Status: Spared, Detail: "no agent asks a model"}}, nil
	}
	var found []Finding
	for _, a := range asking {
		f, err := s.hiccup(ctx, a)
		if err != nil {
			return nil, err
		}
		found = append(found, f)
	}
	return group(found), nil
}

func (s *bench) hiccup(ctx context.Context, a *definition.Agent) (Finding, error) {
	l := s.LoopAround(a)
	f := Finding{Steps: []string{a.Name}, Status: Caught}
	if l != nil {
		f.Loop = l.Name
		if bad, is := s.unfit(l); is {
			bad.Steps = f.Steps
			return bad, nil
		}
	}
	var mu sync.Mutex
	failed := false
	t, err := s.Run(ctx, &stage.Scene{Target: l, Iterations: maxIterations,
		Fail: func(by *definition.Agent, _ study.Place) *scripted.Failure {
			mu.Lock()
			defer mu.Unlock()
			if by != a || failed {
				return nil
			}
			failed = true
			return down
		}})
	if err != nil {
		return f, err
	}
	stepFailed := slices.ContainsFunc(t.Log, func(ev *session.Event) bool {
		var fin mark.StepFinished
		return ev.Mark != nil && ev.Mark.Kind == mark.KindStepFinished && ev.Mark.Decode(&fin) == nil &&
			strings.Contains(fin.Error, down.Message)
	})
	step := a
	if l != nil {
		step = s.StepIn(a, l)
	}
	switch n, given := a.LLM.RequestRetry.Attempts, ""; {
	case !failed:
		f.Status, f.Detail = Spared, "it is not asked"
	case !stepFailed && t.Err == nil:
		if n == 0 {
			n, given = 3, " (the default)"
		}
		f.Guard, f.Detail = fmt.Sprintf("request_retry: %d%s", n, given), "the request is sent again"
	case t.Err == nil && step.Step != nil && step.Step.Retry != nil:
		f.Guard, f.Detail = fmt.Sprintf("retry: %d", step.Step.Retry.Attempts), "the step is run again"
	case t.Err == nil:
		f.Guard, f.Detail = "on_error", "the run goes on without the step's answer"
	default:
		f.Status, f.Detail = Uncaught, "one failed request fails the run; a second try would have succeeded"
		f.fix(a.Name, "request_retry", "3", "")
	}
	return f, nil
}

// providerDown: from the second iteration on every request to a model fails.
func (s *bench) providerDown(ctx context.Context) ([]Finding, error) {
	return s.inEachLoop(s.asksModels, func(l *definition.Agent, f *Finding) error {
		from := 2
		if l.Loop.MaxIterations == 1 {
			from = 1
		}
		_, got, err := s.endless(ctx, l, f, &stage.Scene{
			Fail: func(_ *definition.Agent, at study.Place) *scripted.Failure {
				if at.Loops[l.Name] >= from {
					return down
				}
				return nil
			}})
		if err != nil {
			return err
		}
		f.Detail = fmt.Sprintf("%s failed; %s", brief.Count(got.Failed, "step"), got.Ending())
		if f.Guard == "" {
			f.Status, f.Detail = Uncaught, fmt.Sprintf("after %s and %s that failed, the loop is still running",
				brief.Count(got.Iterations, "iteration"), brief.Count(got.Failed, "step"))
			f.fix(l.Name, "max_consecutive_failures", "3", "")
		} else if got.Failed > 5 && l.Loop.MaxConsecutiveFailures == 0 {
			f.fix(l.Name, "max_consecutive_failures", "3", " ends it sooner")
		}
		return nil
	})
}
