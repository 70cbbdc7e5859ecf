// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"fmt"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/study"
	"github.com/refrain-dev/refrain/loop"
)

// slowLimit is the share of the simulated runs that may converge early if a slow improvement is to count as seen.
const slowLimit = 1.0 / 10

// improvesSlowly: every version is better by half of what one answer of the judge is off by, which the loop should not
// take for a stand-still. The rules alone decide, so nothing is played.
func (s *bench) improvesSlowly(context.Context) ([]Finding, error) {
	var all []Finding
	for _, l := range s.Loops {
		f := Finding{Loop: l.Name, Status: Spared}
		switch {
		case l.Loop.Score == nil:
			f.Detail = "nothing is scored"
		case !s.noisy(l) && !compares(l):
			f.Detail = "its score is exact"
		default:
			f.Detail = s.unending(l)
		}
		if f.Detail == "" {
			s.judgeSlow(&f, l)
		}
		all = append(all, f)
	}
	return all, nil
}

// hasty counts the runs of a slow improvement that converge early.
type hasty struct {
	ended int
	first int              // the earliest iteration
	stop  *loop.StopRecord // of the first run that ends early, or else of the first
}

func (h hasty) rare(share float64) bool { return float64(h.ended) <= share*slowLimit*noiseRuns }

func (sim *simulator) hasty() hasty {
	var out hasty
	for i := range noiseRuns {
		stop, _ := sim.play(sim.plan, i, func(int) float64 { return slow })
		if i == 0 {
			out.stop = stop
		}
		if !sim.early(stop) {
			continue
		}
		if out.ended++; out.ended == 1 {
			out.stop = stop
		}
		if out.first == 0 || stop.Iteration < out.first {
			out.first = stop.Iteration
		}
	}
	return out
}

// judgeSlow reports whether a loop takes a slow improvement for none, and what helps.
func (s *bench) judgeSlow(f *Finding, l *definition.Agent) {
	sc := l.Loop.Score
	sim := s.simulate(l, sc.Judge)
	got := sim.hasty()
	f.Stop = got.stop
	f.Detail = fmt.Sprintf("each version is better by %s, half of what an answer of the judge is off by: ",
		withSign(slow*sim.off, sim.relative)[1:])
	if got.ended == 0 {
		f.Detail += fmt.Sprintf("none of %d runs converges early", noiseRuns)
	} else {
		f.Detail += fmt.Sprintf("in %d of %d runs the loop converges early, at the earliest after iteration %d", got.ended, noiseRuns, got.first)
	}
	if got.rare(1) {
		f.Status = Caught
		if f.Guard = fmt.Sprintf("max_iterations: %d", sim.plan.MaxIterations); sc.Judge != nil {
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
		if more.Step = step; s.simulate(l, more).hasty().rare(0.5) { // with other draws it is to hold, too
			f.ask(l, more)
			return
		}
	}
	for patience := max(1, sc.Patience) + 1; patience <= 8; patience++ {
		own := s.simulate(l, sc.Judge)
		if own.plan.Score.Patience = patience; own.hasty().rare(0.5) {
			f.fix(l.Name, "score.patience", study.Decimal(float64(patience)), "")
			return
		}
	}
	f.Advice = fmt.Sprintf("no number of samples is enough: let a program give the score of %s, or leave out what ends it by convergence", l.Name)
}

// moreAnswers lists judges that are asked more often than that of a loop, in the order in which to try them.
func (s *bench) moreAnswers(l *definition.Agent) []*loop.Judge {
	sc, most := l.Loop.Score, uint(1)
	if sc.Judge != nil {
		most = sc.Judge.Most()
	}
	var all []*loop.Judge
	add := func(j loop.Judge) {
		if compares(l) {
			j.Compare = sc.Judge.Compare
		}
		if j.Most() > most && (j.Compare == "" || j.Samples%2 == 0 && j.Max == 0) {
			all = append(all, &j)
		}
	}
	if sc.Target != nil {
		add(loop.Judge{Samples: 3, Max: 12})
		add(loop.Judge{Samples: 3, Max: 24})
		add(loop.Judge{Samples: 5, Max: 32})
	}
	for _, n := range []uint{3, 5, 8, 10, 12, 16, 24, 32} {
		add(loop.Judge{Samples: n})
	}
	return all
}

// ask advises to ask the judge of a loop more often.
func (f *Finding) ask(l *definition.Agent, j *loop.Judge) {
	if _, given := l.FieldPosition("score.judge.samples"); given {
		f.fix(l.Name, "score.judge.samples", j.Range(), "")
		return
	}
	value := fmt.Sprintf("step: %s, samples: %s", j.Step, j.Range())
	if j.Compare != "" {
		value += ", compare: " + string(j.Compare)
	}
	f.fix(l.Name, "score.judge", "{"+value+"}", "")
}
