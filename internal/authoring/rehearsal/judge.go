// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/stage"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/study"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/loop"
)

// noiseRuns is the number of simulated runs of a loop with a random judge. The rules simulate them, so that they take
// little time.
const noiseRuns = 200

// luckLimit is the share of these runs that may end by luck if the fault is to count as caught. Which version luck
// chooses as the best does not matter, because all are worth the same.
const luckLimit = 1.0 / 20

// noisyJudge: the work stays the same, and the judge is in two minds about it. What
// it says each time is drawn anew, whatever it has said before.
func (s *bench) noisyJudge(ctx context.Context) ([]Finding, error) {
	judged := func(l *definition.Agent) string {
		switch sc := l.Loop.Score; {
		case compares(l):
			return "its judge compares versions, which is not simulated"
		case sc == nil, !s.noisy(l) && sc.Judge == nil:
			return "no model gives a score"
		case !s.noisy(l):
			return "its score does not depend on a stand-in"
		case !s.Goals[l.Name].Judged && sc.Target == nil && sc.DimensionTarget == nil && !byScore(l):
			return "no target that a program's score could reach by luck"
		}
		return ""
	}
	return s.inEachLoop(judged, func(l *definition.Agent, f *Finding) error {
		n := s.noiseOf(l)
		// What is played stays below the target: the rules go on from it.
		t, err := s.Run(ctx, &stage.Scene{Target: l, Way: onward, Iterations: maxIterations,
			Score: func(at study.Place) float64 {
				dice := rand.New(rand.NewPCG(s.cfg.Seed, uint64(at.Loops[l.Name])<<8|uint64(at.Sample)))
				return study.Tidy(n.truth - n.sense*n.off*dice.Float64())
			}})
		if err != nil {
			return err
		}
		if rec := t.Of(l); rec == nil || len(rec.Outcomes) == 0 || s.Walk(l, s.Plans[l.Name], t).Run().Unscored() {
			f.Status, f.Detail = Unknown, "no iteration gets a score with stand-ins"
			return nil
		}
		s.judgeNoise(f, l, t, n)
		return nil
	})
}

// noise is the error of a judge about work that stays the same.
type noise struct {
	truth, off, sense float64
	seed              uint64
}

func (s *bench) noiseOf(l *definition.Agent) noise {
	r := s.ScaleOf(l)
	if sc := l.Loop.Score; sc.Target == nil && sc.DimensionTarget == nil {
		for _, src := range study.ExpressionsOf(l.Loop.StopWhen) {
			if m := awaitsScore().FindStringSubmatch(src); m != nil {
				if x, err := strconv.ParseFloat(m[1], 64); err == nil {
					r.Goal = x
				}
			}
		}
	}
	dice := rand.New(rand.NewPCG(s.cfg.Seed, 29))
	off := math.Round(r.Span*(20+5*dice.Float64())) / 100
	if off == 0 {
		off = study.Tidy(r.Span / 5) // of a small scale
	}
	return noise{truth: r.Goal - r.Sense*off/2, off: off, sense: r.Sense, seed: s.cfg.Seed} // just not good enough
}

// luck counts the effects of chance in noiseRuns runs.
type luck struct {
	ended    int              // runs that it has ended
	unscored int              // runs without a score
	first    int              // the earliest iteration in which it has ended one
	stop     *loop.StopRecord // of the first run that luck has ended, or else of the first
	guard    string           // what has ended the others, in the first of them
}

// rare reports whether luck is within the limits, or within a share of them.
func (l luck) rare(share float64) bool {
	return l.unscored*2 < noiseRuns && float64(l.ended) <= share*luckLimit*noiseRuns
}

// Conditions that read the score, and that compare it with a number.
var (
	readsScore  = lazyregexp.New(`(^|[^.\w])scores?\b`)
	awaitsScore = lazyregexp.New(`(?:^|[^.\w])score\s*[<>]=?\s*(-?[0-9]+(?:\.[0-9]+)?)`)
)

// byScore reports whether a condition that reads the score ends a loop.
func byScore(l *definition.Agent) bool {
	return slices.ContainsFunc(study.ExpressionsOf(l.Loop.StopWhen), readsScore().MatchString)
}

// toss plays a loop often, with a judge by the rules that are given.
func (s *bench) toss(l *definition.Agent, t *stage.Take, n noise, judge *loop.Judge) luck {
	plan, sc := *s.Plans[l.Name], *l.Loop.Score
	sc.Key, sc.Label, sc.Field, sc.Expr, sc.Judge = stage.NoiseKey, "", "", "", judge
	plan.Score = &sc
	plan.Version = plan.Current()
	dims := sc.Dimensions
	if dims == nil && sc.DimensionTarget != nil {
		dims = []string{"all"}
	}
	var out luck
	step := s.StepIndex(s.Goals[l.Name].Scorers[0], l)
	for i := range noiseRuns {
		dice := rand.New(rand.NewPCG(n.seed, uint64(1000+i)))
		w := s.Walk(l, &plan, t)
		w.Most = maxIterations
		w.Judging = &stage.Judging{Step: step, Dims: dims, Draw: func() float64 {
			return n.truth + n.off*(2*dice.Float64()-1)
		}}
		got := w.Run()
		stop := got.Stop
		lucky := false
		switch {
		case stop != nil && (stop.Reason == loop.ReasonTarget || byScore(l) && stop.Reason == loop.ReasonCondition):
			out.ended++
			if lucky = true; out.ended == 1 {
				out.stop = stop
			}
			if out.first == 0 || stop.Iteration < out.first {
				out.first = stop.Iteration
			}
		case w.Tally.Best == nil:
			out.unscored++
		}
		if i == 0 {
			out.stop = stop
		}
		if !lucky && out.guard == "" {
			out.guard = got.By(l)
		}
	}
	return out
}

// judgeNoise reports whether a loop takes noise for progress, and what helps.
func (s *bench) judgeNoise(f *Finding, l *definition.Agent, t *stage.Take, n noise) {
	sc := l.Loop.Score
	got := s.toss(l, t, n, sc.Judge)
	f.Stop = got.stop
	f.Detail = fmt.Sprintf("each version is worth %s, and the judge is off by up to %s: %s",
		study.Decimal(math.Round(n.truth*100)/100), study.Decimal(n.off), got)
	if got.rare(1) {
		f.Status, f.Guard = Caught, got.guard
		if sc.Judge != nil && sc.Judge.Most() > 1 {
			f.Guard = "score.judge.samples: " + sc.Judge.Range()
		}
		return
	}
	f.Status = Uncaught
	step := s.StepIn(s.Goals[l.Name].Scorers[0], l).Name
	if sc.Judge != nil {
		step = sc.Judge.Step
	}
	for _, more := range s.moreAnswers(l) {
		if more.Step = step; s.toss(l, t, n, more).rare(0.25) { // with other draws it is to hold, too
			f.ask(l, more)
			return
		}
	}
	f.Advice = fmt.Sprintf("no number of samples is enough within the limits of %s: let a computed check or a person "+
		"end the loop", l.Name)
}

// String describes the effects of chance for a report.
func (l luck) String() string {
	if l.unscored*2 >= noiseRuns {
		return fmt.Sprintf("in %d of %d runs no score arrives in time", l.unscored, noiseRuns)
	}
	if l.ended > 0 {
		return fmt.Sprintf("in %d of %d runs the loop reaches its target by luck, at the earliest in iteration %d",
			l.ended, noiseRuns, l.first)
	}
	return fmt.Sprintf("none of %d runs reaches a target by luck", noiseRuns)
}

// judgeInWords injects a judge that describes the work and gives no number.
func (s *bench) judgeInWords(ctx context.Context) ([]Finding, error) {
	judged := func(l *definition.Agent) string {
		switch {
		case l.Loop.Score == nil:
			return "nothing is scored"
		case len(s.judges(l)) == 0:
			return "no model gives its score"
		}
		return ""
	}
	return s.inEachLoop(judged, func(l *definition.Agent, f *Finding) error {
		judges := s.judges(l)
		t, err := s.Run(ctx, &stage.Scene{Target: l, Way: onward, Iterations: maxIterations,
			Said: func(a *definition.Agent, at study.Place, out study.Line) study.Line {
				if !slices.Contains(judges, a) {
					return out
				}
				return study.Line{Words: verdict(at), Value: verdict(at)}
			}})
		if err == nil {
			s.judgeWords(f, l, judges, t)
		}
		return err
	})
}

// verdict returns a judge's text without a number, different each time.
func verdict(at study.Place) string {
	n := at.Iteration() + 3*at.Sample
	better := []string{"clearer", "shorter", "warmer", "calmer", "bolder", "plainer", "livelier"}
	worse := []string{"thin", "long", "loud", "dull", "vague"}
	return fmt.Sprintf("It is %s than before, and still too %s.", better[n%len(better)], worse[n%len(worse)])
}

func (s *bench) judgeWords(f *Finding, l *definition.Agent, judges []*definition.Agent, t *stage.Take) {
	got := s.Walk(l, s.Plans[l.Name], t).Run()
	f.Stop, f.Status, f.Guard = got.Stop, Caught, got.By(l)
	f.Detail = "no iteration is scored; " + got.Ending()
	unpinned := ""
	for _, a := range judges {
		f.Steps = append(f.Steps, a.Name)
		if a.LLM == nil || a.LLM.OutputSchema == nil {
			unpinned = a.Name
		}
	}
	switch {
	case got.Stop != nil && got.Stop.BestScore != nil:
		f.Detail = "the score does not need its answer; " + got.Ending()
	case unpinned == "" && got.Stop != nil && got.Stop.Reason == loop.ReasonError:
		f.Guard = "output_schema of " + strings.Join(f.Steps, ", ")
		f.Detail = "the schema refuses words; " + got.Ending()
	case f.Guard == "":
		f.Status, f.Detail = Uncaught, fmt.Sprintf("after %s without a score the loop is still running",
			brief.Count(got.Iterations, "iteration"))
		f.fix(l.Name, "max_iterations", "10", "")
		if unpinned != "" {
			f.Advice += "; an output_schema for " + unpinned + " makes it answer with a number"
		}
	}
}

// judges returns the agents that ask a model and write the score of a loop.
func (s *bench) judges(l *definition.Agent) []*definition.Agent {
	var all []*definition.Agent
	for _, a := range s.Goals[l.Name].Scorers {
		if a.Type == definition.TypeLLM || a.Type == definition.TypeA2A {
			all = append(all, a)
		}
	}
	return all
}
