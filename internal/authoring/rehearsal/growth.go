// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/stage"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/study"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/session"
)

// A state of this size is too large to let it grow, because it is written, compared and sent repeatedly. It grows by
// this many bytes in each iteration.
const (
	tooLarge = 1 << 20
	growth   = 64 << 10
	// A limit of that size is found to be passed a little later: what is in a state
	// is counted in several ways.
	farTooLarge = tooLarge + 2*growth
)

// stateGrows: an agent's answer is longer in each iteration than in the one before.
func (s *bench) stateGrows(ctx context.Context) ([]Finding, error) {
	kept := func(l *definition.Agent) string {
		if s.keeps(l) != nil {
			return ""
		}
		return "no stand-in in it writes to the state"
	}
	return s.inEachLoop(kept, func(l *definition.Agent, f *Finding) error {
		by := s.keeps(l)
		f.Steps = []string{by.Name}
		t, got, err := s.endless(ctx, l, f, &stage.Scene{StateSize: farTooLarge, Score: s.rising(l),
			Words: func(a *definition.Agent, at study.Place) (string, bool) {
				return study.Speech(a, at) + strings.Repeat(" more", growth/5*at.Loops[l.Name]), a == by
			}})
		if err != nil {
			return err
		}
		largest, at := s.largestState(t, l)
		switch {
		case got.Fatal != nil && got.Fatal.Kind == loop.StateTooLarge && got.Fatal.Step == "":
			f.Detail = got.Ending()
		case largest > farTooLarge || f.Guard == "":
			f.Status, f.Guard = Uncaught, ""
			f.Detail = fmt.Sprintf("in iteration %d the state has %s, and the loop goes on", at, stage.Size(largest))
			f.fix(l.Name, "state_limit", "1MiB", "")
		default:
			f.Detail = fmt.Sprintf("%s; the state has %s", got.Ending(), stage.Size(largest))
		}
		return nil
	})
}

// keeps returns the last stand-in in a loop that writes to the state. It prefers an agent other than the judge,
// because the judge runs several times in each iteration and overwrites its own text.
func (s *bench) keeps(l *definition.Agent) *definition.Agent {
	var last, judge *definition.Agent
	for _, a := range s.Steps(l) {
		switch sc := l.Loop.Score; {
		case !study.Reaches(a) || a.OutputKey == "":
		case sc != nil && sc.Judge != nil && sc.Judge.Step == a.Name:
			judge = a
		default:
			last = a
		}
	}
	return cmp.Or(last, judge)
}

// allowance returns the budget that limits the tokens or cost of a loop's requests, its own or that of an enclosing
// loop; "" if there is none. A budget of calls limits only their number.
func (s *bench) allowance(l *definition.Agent) string {
	for ; l != nil; l = s.LoopAround(l) {
		switch b := l.Loop.Budget; {
		case b == nil:
		case b.Tokens > 0:
			return fmt.Sprintf("budget.tokens: %d", b.Tokens)
		case b.Cost != nil:
			return "budget.cost: " + study.Decimal(*b.Cost)
		}
	}
	return ""
}

// largestState returns the largest state at the end of an iteration, without the changes of the finalizer.
func (s *bench) largestState(t *stage.Take, l *definition.Agent) (bytes int64, iteration int) {
	rec := t.Of(l)
	if rec == nil {
		return 0, 0
	}
	final := s.Plans[l.Name].Finalizer()
	for _, o := range rec.Outcomes {
		if final >= 0 && o.Step == final {
			continue
		}
		if n := session.StateSize(o.State); n > bytes {
			bytes, iteration = n, o.Iteration
		}
	}
	return bytes, iteration
}

// rising returns scores that improve in each iteration, so that no loop stops for a lack of improvement.
func (s *bench) rising(l *definition.Agent) func(study.Place) float64 {
	if l.Loop.Score == nil {
		return nil
	}
	r := s.ScaleOf(l)
	return func(at study.Place) float64 { return r.At(0.4 * float64(at.Loops[l.Name])) }
}

// costsExplode doubles the tokens of the requests in every iteration.
func (s *bench) costsExplode(ctx context.Context) ([]Finding, error) {
	return s.inEachLoop(s.asksModels, func(l *definition.Agent, f *Finding) error {
		t, got, err := s.endless(ctx, l, f, &stage.Scene{Score: s.rising(l),
			Usage: func(at study.Place) *scripted.Usage {
				n := min(max(1, at.Loops[l.Name]), 18)
				return &scripted.Usage{Prompt: stage.PromptTokens << (n - 1), Output: stage.OutputTokens}
			}})
		if err != nil {
			return err
		}
		f.Detail = fmt.Sprintf("%s, with %s used", got.Ending(), brief.Count(tokens(t, l), "token"))
		switch bound := s.allowance(l); {
		case bound != "":
			if f.Guard = bound; got.Stop == nil || got.Stop.Reason != loop.ReasonBudget {
				f.Detail += "; that is within the budget"
			}
		default:
			if f.Guard != "" {
				f.Detail += fmt.Sprintf("; %s ends the loop, but nothing limits the tokens",
					strings.SplitN(f.Guard, ":", 2)[0])
			}
			f.Status, f.Guard = Uncaught, ""
			f.fix(l.Name, "budget.tokens", strconv.FormatInt(s.enough(l), 10), "")
		}
		return nil
	})
}

// enough returns a budget of tokens for a loop: four times its use without faults, and at least 200000.
func (s *bench) enough(l *definition.Agent) int64 {
	const step = 100_000
	return max(2*step, (4*tokens(s.base[l.Name], l)+step-1)/step*step)
}

// tokens are those that a loop has used.
func tokens(t *stage.Take, l *definition.Agent) (used int64) {
	if rec := t.Of(l); rec != nil {
		for _, o := range rec.Outcomes {
			used += o.Usage.InputTokens + o.Usage.OutputTokens
		}
	}
	return used
}
