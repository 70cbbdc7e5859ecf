// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/loop"
)

// onward is a way to end that no stand-in brings about: a loop whose score alone is
// to decide.
var onward = way{name: "onward", reason: loop.ReasonMaxIterations}

// noisyJudge: the work stays the same, and the judge is in two minds about it.
func (s *stage) noisyJudge(ctx context.Context) ([]Finding, error) {
	var all []Finding
	for _, l := range s.loops {
		f := Finding{Loop: l.Name, Status: Spared}
		g, sc := s.goals[l.Name], l.Loop.Score
		if sc == nil || !g.judged {
			f.Detail = "no model gives a score"
			all = append(all, f)
			continue
		}
		if f, bad := s.unfit(l); bad {
			all = append(all, f)
			continue
		}
		r := scaleOf(sc)
		dice := rand.New(rand.NewPCG(s.cfg.Seed, 29))
		off := math.Round(r.span*(20+5*dice.Float64())) / 100
		truth := r.goal - r.sense*off/2 // just not good enough
		t, err := s.run(ctx, &scene{target: l, way: onward, iterations: maxIterations, score: func(at place) float64 {
			if (at.loops[l.Name]+at.sample)%2 == 0 {
				return tidy(truth - r.sense*off)
			}
			return tidy(truth + r.sense*off)
		}})
		if err != nil {
			return nil, err
		}
		got := s.walk(l, s.plans[l.Name], t).run()
		if f.Stop = got.stop; got.stop == nil || got.stop.BestScore == nil {
			f.Status, f.Detail = Unknown, "no iteration gets a score with stand-ins"
			all = append(all, f)
			continue
		}
		s.judgeNoise(&f, l, got.stop, truth, off)
		all = append(all, f)
	}
	return all, nil
}

// judgeNoise says whether a loop has taken noise for progress.
func (s *stage) judgeNoise(f *Finding, l *definition.Agent, stop *loop.StopRecord, truth, off float64) {
	what := fmt.Sprintf("each version is worth %s, and the judge says up to %s more or less", decimal(math.Round(truth*100)/100), decimal(off))
	samples := 1
	if j := l.Loop.Score.Judge; j != nil {
		samples = int(max(1, j.Samples))
	}
	switch {
	case stop.Reason == loop.ReasonTarget:
		f.Status, f.Detail = Uncaught, fmt.Sprintf("%s: iteration %d reaches the target by luck", what, stop.Iteration)
	case stop.BestIteration > 1:
		f.Status, f.Detail = Uncaught, fmt.Sprintf("%s: iteration %d is taken for the best", what, stop.BestIteration)
	default:
		f.Status, f.Guard = Caught, fmt.Sprintf("score.judge.samples: %d", samples)
		f.Detail = what + "; that is measured, and taken for no progress"
		return
	}
	step := s.stepIn(s.goals[l.Name].scorers[0], l).Name
	f.Advice = fmt.Sprintf("score: {judge: {step: %s, samples: %d}} on %s", step, max(3, samples+2), l.Name)
}

// scoresRegress: it gets better, and from the third iteration on worse and worse.
func (s *stage) scoresRegress(ctx context.Context) ([]Finding, error) {
	var all []Finding
	for _, l := range s.loops {
		f := Finding{Loop: l.Name, Status: Spared}
		g, sc := s.goals[l.Name], l.Loop.Score
		switch {
		case sc == nil:
			f.Detail = "nothing is scored"
		case len(g.scorers) == 0:
			f.Detail = "its score is computed, and by no stand-in"
		case l.Loop.MaxIterations == 1, l.Loop.MaxIterations == 2:
			f.Detail = "it has too few iterations for that"
		default:
			if bad, is := s.unfit(l); is {
				f = bad
				break
			}
			r := scaleOf(sc)
			var heard hearing
			t, err := s.run(ctx, &scene{target: l, way: onward, iterations: maxIterations, hearing: &heard, words: spokenBy, score: func(at place) float64 {
				n := at.loops[l.Name]
				if n <= 2 {
					return r.at(0.3 * float64(n))
				}
				return r.at(0.6 - 0.15*float64(min(n, 8)-2))
			}})
			if err != nil {
				return nil, err
			}
			s.judgeRegress(&f, l, t, &heard)
		}
		all = append(all, f)
	}
	return all, nil
}

// spokenBy has agents say which iteration it is, whatever a script has.
func spokenBy(a *definition.Agent, at place) (string, bool) { return speech(a, at), true }

func (s *stage) judgeRegress(f *Finding, l *definition.Agent, t *take, heard *hearing) {
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
	of := heard.iterations(fin.Name, t.answer)
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
		f.Advice = fmt.Sprintf("on_regression: rollback on %s, or let %s read {{best.KEY}} in place of {{KEY}}", l.Name, fin.Name)
	}
}

func (s *stage) finalizer(l *definition.Agent) *definition.Agent {
	for _, sub := range l.SubAgents {
		if sub.OutputKey == definition.LoopOutput {
			return sub
		}
	}
	return nil
}

// oscillation: two results in turns.
func (s *stage) oscillation(ctx context.Context) ([]Finding, error) {
	var all []Finding
	for _, l := range s.loops {
		f := Finding{Loop: l.Name, Status: Spared}
		if !s.playsIn(l) {
			f.Detail = "its steps are computed, and none of them is a stand-in"
			all = append(all, f)
			continue
		}
		if f, bad := s.unfit(l); bad {
			all = append(all, f)
			continue
		}
		sc := &scene{target: l, never: true, iterations: maxIterations, words: func(a *definition.Agent, at place) (string, bool) {
			n, in := at.loops[l.Name]
			if !in {
				return "", false
			}
			return fmt.Sprintf("Words of %s, %s.", a.Name, []string{"one way", "the other way"}[n%2]), true
		}}
		if l.Loop.Score != nil {
			r := scaleOf(l.Loop.Score)
			sc.score = func(at place) float64 { return r.at(0.3 + 0.2*float64(at.loops[l.Name]%2)) }
		}
		t, err := s.run(ctx, sc)
		if err != nil {
			return nil, err
		}
		got := s.walk(l, s.quiet[l.Name], t).run()
		f.Stop, f.Detail = got.stop, got.ending()
		if f.Status, f.Guard = Caught, got.by(l); f.Guard == "" {
			f.Status, f.Detail = Uncaught, fmt.Sprintf("after %s it still goes round", plural(got.iterations, "iteration"))
		}
		if l.Loop.NoProgress == nil && (f.Status == Uncaught || got.iterations > 4) {
			f.Advice = fmt.Sprintf("no_progress: true on %s ends that after 4 iterations", l.Name)
		}
		all = append(all, f)
	}
	return all, nil
}

// playsIn reports whether a step of a loop is a stand-in.
func (s *stage) playsIn(l *definition.Agent) bool {
	return slices.ContainsFunc(s.steps(l), reaches)
}
