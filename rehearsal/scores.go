// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/loop"
)

// onward is a way to end that no stand-in brings about: a loop whose score alone is
// to decide.
var onward = way{name: "onward", reason: loop.ReasonMaxIterations}

// scoresRegress: it gets better, and from the third iteration on worse and worse.
func (s *bench) scoresRegress(ctx context.Context) ([]Finding, error) {
	return s.inEachLoop(s.scoredIn(3), func(l *definition.Agent, f *Finding) error {
		r := s.scaleOf(l)
		var heard hearing
		t, err := s.run(ctx, &scene{target: l, way: onward, iterations: maxIterations, hearing: &heard, words: spokenBy, score: func(at place) float64 {
			n := at.loops[l.Name]
			if n <= 2 {
				return r.at(0.3 * float64(n))
			}
			return r.at(0.6 - 0.15*float64(min(n, 8)-2))
		}})
		if err == nil {
			s.judgeRegress(f, l, t, &heard)
		}
		return err
	})
}

// scoredIn says why a fault of scores cannot happen in a loop, which takes so many
// iterations.
func (s *bench) scoredIn(iterations uint) func(*definition.Agent) string {
	return func(l *definition.Agent) string {
		switch most := l.Loop.MaxIterations; {
		case l.Loop.Score == nil:
			return "nothing is scored"
		case len(s.goals[l.Name].scorers) == 0:
			return "its score is computed, and by no stand-in"
		case most > 0 && most < iterations:
			return "it has too few iterations for that"
		}
		return ""
	}
}

// spokenBy has agents say which iteration it is, whatever a script has.
func spokenBy(a *definition.Agent, at place) (string, bool) { return speech(a, at), true }

func (s *bench) judgeRegress(f *Finding, l *definition.Agent, t *take, heard *hearing) {
	got := s.walk(l, s.plans[l.Name], t).run()
	if f.Stop = got.stop; got.stop == nil || got.stop.BestScore == nil {
		f.Status, f.Detail = Unknown, "no iteration gets a score with stand-ins"
		return
	}
	best := got.stop.BestIteration
	f.Guard = "the best is handed back (on_regression: keep_best)"
	if l.Loop.OnRegression == loop.RollbackOnWorse {
		f.Guard = "on_regression: rollback"
	}
	f.Status = Caught
	f.Detail = fmt.Sprintf("iteration %d is the best; %s", best, got.ending())
	if got.stop.Result.Source != loop.FromFinalizer {
		return
	}
	fin := s.finalizer(l)
	of := s.heardOf(heard, l, fin, t.answer)
	last := 0
	for _, n := range of {
		last = max(last, n)
	}
	switch {
	case len(of) == 0:
		f.Status, f.Guard = Spared, ""
		f.Detail = fmt.Sprintf("%s, the finalizer, repeats nothing of what stand-ins say: whether it uses the best cannot be seen", fin.Name)
	case slices.Contains(of, best):
		if l.Loop.OnRegression != loop.RollbackOnWorse {
			f.Guard = "the finalizer reads best.*"
		}
	default:
		f.Status, f.Guard = Uncaught, ""
		f.Detail = fmt.Sprintf("iteration %d is the best, and %s, the finalizer, words the result from iteration %d", best, fin.Name, last)
		f.fix(l.Name, "on_regression", "rollback", fmt.Sprintf(", or let %s read {{best.KEY}} in place of {{KEY}}", fin.Name))
	}
}

func (s *bench) finalizer(l *definition.Agent) *definition.Agent {
	for _, sub := range l.SubAgents {
		if sub.OutputKey == definition.LoopOutput {
			return sub
		}
	}
	return nil
}

// oscillation: two results in turns.
func (s *bench) oscillation(ctx context.Context) ([]Finding, error) {
	plays := func(l *definition.Agent) string {
		if s.playsIn(l) {
			return ""
		}
		return "its steps are computed, and none of them is a stand-in"
	}
	return s.inEachLoop(plays, func(l *definition.Agent, f *Finding) error {
		sc := &scene{target: l, never: true, iterations: maxIterations, words: func(a *definition.Agent, at place) (string, bool) {
			n, in := at.loops[l.Name]
			if !in {
				return "", false
			}
			return fmt.Sprintf("Words of %s, %s.", a.Name, []string{"one way", "the other way"}[n%2]), true
		}}
		if l.Loop.Score != nil {
			r := s.scaleOf(l)
			sc.score = func(at place) float64 { return r.at(0.3 + 0.2*float64(at.loops[l.Name]%2)) }
		}
		t, err := s.run(ctx, sc)
		if err != nil {
			return err
		}
		got := s.walk(l, s.quiet[l.Name], t).run()
		f.Stop, f.Detail = got.stop, got.ending()
		if f.Status, f.Guard = Caught, got.by(l); f.Guard == "" {
			f.Status, f.Detail = Uncaught, fmt.Sprintf("after %s it still goes round", plural(got.iterations, "iteration"))
		}
		// What only asks programs and servers waits for something: the same answer
		// again is no circle.
		if l.Loop.NoProgress == nil && len(s.asking(l)) > 0 && (f.Status == Uncaught || got.iterations > 4) {
			if err := s.stopCircles(ctx, f, l, sc, got.iterations); err != nil {
				return err
			}
		}
		if f.Status == Uncaught && f.Advice == "" {
			f.fix(l.Name, "max_iterations", "10", "")
		}
		return nil
	})
}

// stopCircles advises no_progress if it ends what goes round in circles sooner: of
// all that an iteration leaves, or of the keys that its stand-ins write.
func (s *bench) stopCircles(ctx context.Context, f *Finding, l *definition.Agent, sc *scene, before int) error {
	var keys []string
	for _, a := range s.steps(l) {
		if reaches(a) && a.OutputKey != "" && !slices.Contains(keys, a.OutputKey) {
			keys = append(keys, a.OutputKey)
		}
	}
	tries := []loop.NoProgress{{}}
	if keys != nil {
		tries = append(tries, loop.NoProgress{Keys: keys})
	}
	for _, guard := range tries {
		again := &scene{target: sc.target, never: true, iterations: sc.iterations, words: sc.words, score: sc.score, circles: &guard}
		t, err := s.run(ctx, again)
		if err != nil {
			return err
		}
		plan := *s.quiet[l.Name]
		plan.NoProgress = &guard
		got := s.walk(l, &plan, t).run()
		if got.stop == nil || got.stop.Reason != loop.ReasonNoProgress || f.Status == Caught && got.iterations >= before {
			continue
		}
		field, value := "no_progress", "true"
		if guard.Keys != nil {
			field, value = "no_progress.keys", "["+strings.Join(guard.Keys, ", ")+"]"
		}
		f.fix(l.Name, field, value, fmt.Sprintf(" ends that after %s", plural(got.iterations, "iteration")))
		return nil
	}
	return nil
}

// playsIn reports whether a step of a loop is a stand-in.
func (s *bench) playsIn(l *definition.Agent) bool {
	return slices.ContainsFunc(s.steps(l), reaches)
}
