// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/study"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
)

// openIterations is the number of iterations of a simulated loop without max_iterations.
const openIterations = 20

// Simulation says what the stop rules of a loop with a noisy judge do to six courses of its score, in simulated runs. The
// rules are those about the course: score.min_delta, min_delta_percent and patience, not_worth, on_regression, the
// samples of the judge and max_iterations. The target and the other conditions are left out.
type Simulation struct {
	Loop string `json:"loop"`
	// Runs is the number of simulated runs of each course, Iterations that of the iterations of a full run.
	Runs       int `json:"runs"`
	Iterations int `json:"iterations"`
	// Samples is the number of answers about each version; Exact says that the loop takes its score for exact,
	// because it has no score.judge.
	Samples int  `json:"samples"`
	Exact   bool `json:"exact,omitzero"`
	// Error is the standard deviation of one answer, in points of the score or, if Relative, as a share of it. Compares says
	// that an answer compares two versions, from -2 to 2.
	Error    float64 `json:"error"`
	Relative bool    `json:"relative,omitzero"`
	Compares bool    `json:"compares,omitzero"`
	// Note says why there are no courses: no rule ends the loop when nothing is gained.
	Note    string            `json:"note,omitzero"`
	Courses []SimulatedCourse `json:"courses,omitzero"`
}

// SimulatedCourse is one of the six courses.
type SimulatedCourse struct {
	// Name is steady, slow, late plateau, staircase, flat or declining. Versions says how the versions follow one another.
	Name     string `json:"name"`
	Versions string `json:"versions"`
	// StoppedEarly is the share of the runs that converge before the last iteration, Iterations the mean number of iterations.
	StoppedEarly float64 `json:"stopped_early"`
	Iterations   float64 `json:"iterations"`
	// HandedBack is the true gain of the version that is handed back over the first, as a share of what a run of all
	// iterations gains; nil if nothing can be gained. Gain is the same in the unit of Simulation.Error.
	HandedBack *float64 `json:"handed_back,omitzero"`
	Gain       float64  `json:"gain"`
}

// simulator plays a loop in which only the score matters, and whose judge is off by chance.
type simulator struct {
	plan     *loop.Plan
	off      float64 // standard deviation of one answer; a share of the score if relative
	relative bool
	level    float64       // the first score, if relative
	work     time.Duration // what an iteration takes besides the judge
	ask      time.Duration // what the judge takes
	seed     uint64
}

// errorsOfDelta is how large the judge's error is at least, in the least gain that counts: half of it is then twice
// that gain, which no rule should take for nothing.
const errorsOfDelta = 4

// unending says why no rule about the course ends a loop; "" if one can.
func (s *bench) unending(l *definition.Agent) string {
	sc, w := l.Loop.Score, s.Plans[l.Name].NotWorth
	switch {
	case sc.MinDelta != nil, sc.MinDeltaPercent != nil, s.price(l) != nil:
		return ""
	case w != nil:
		return fmt.Sprintf("stand-ins do not know what not_worth per %s needs", w.Per)
	}
	return "no score.min_delta or not_worth ends it if nothing is gained"
}

// noisy reports whether the score of a loop comes from answers that are off by chance: those of a model, or those of a
// program that the file calls a judge.
func (s *bench) noisy(l *definition.Agent) bool {
	sc, g := l.Loop.Score, s.Goals[l.Name]
	return sc != nil && (sc.Judge != nil || g.Judged) && len(g.Scorers) > 0 && !compares(l)
}

// compares reports whether the judge of a loop compares versions.
func compares(l *definition.Agent) bool {
	sc := l.Loop.Score
	return sc != nil && sc.Judge != nil && sc.Judge.Compare != ""
}

// price is the not_worth of a loop as far as a simulation knows it: not per token or cost.
func (s *bench) price(l *definition.Agent) *loop.NotWorth {
	if w := s.Plans[l.Name].NotWorth; w != nil && (w.Per == "" || w.Per == loop.PerIteration || w.Per == loop.PerMinute) {
		return w
	}
	return nil
}

// simulate returns a simulator of a loop with a noisy judge.
func (s *bench) simulate(l *definition.Agent, judge *loop.Judge) *simulator {
	sc, plan := l.Loop.Score, s.Plans[l.Name]
	sim := &simulator{seed: s.cfg.Seed, ask: s.StepTime, relative: sc.MinDeltaPercent != nil}
	for _, a := range s.Steps(l) {
		if study.Reaches(a) && a != s.Goals[l.Name].Scorers[0] {
			sim.work += s.StepTime
		}
	}
	sim.plan = &loop.Plan{
		Steps: []loop.Step{{Name: "work"}, {Name: "judge"}}, OnRegression: plan.OnRegression, NotWorth: s.price(l),
		MaxIterations: cmp.Or(plan.MaxIterations, openIterations),
		Score: &loop.Score{Key: "score", MinDelta: sc.MinDelta, MinDeltaPercent: sc.MinDeltaPercent, Patience: sc.Patience,
			LowerIsBetter: sc.LowerIsBetter, Baseline: sc.Baseline, Scorers: []string{"judge"}},
	}
	if judge != nil {
		sim.plan.Score.Judge = &loop.Judge{Step: "judge", Samples: judge.Samples, Bound: judge.Bound, Compare: judge.Compare}
	}
	sim.plan.Version = sim.plan.Current()
	n, delta := s.noiseOf(l), 0.0
	if sc.MinDelta != nil {
		delta = *sc.MinDelta
	}
	if w := sim.plan.NotWorth; w != nil && w.Per == loop.PerMinute {
		delta = max(delta, w.Gain*(sim.work+time.Duration(sim.samples())*sim.ask).Minutes())
	} else if w != nil {
		delta = max(delta, w.Gain)
	}
	sim.off = max(n.off/math.Sqrt(3), errorsOfDelta*delta) // as far off as the noisy judge
	switch {
	case compares(l):
		sim.off = max(1, errorsOfDelta*delta)
	case sim.relative:
		sim.level = max(math.Abs(n.truth), n.off)
		sim.off = errorsOfDelta * cmp.Or(max(*sc.MinDeltaPercent/100, delta/sim.level), 0.01)
	}
	return sim
}

func (sim *simulator) samples() uint {
	if j := sim.plan.Score.Judge; j != nil {
		return max(1, j.Samples)
	}
	return 1
}

// score is the true score of a version. worth is by how much it is better than the first, in errors of the judge.
func (sim *simulator) score(worth float64) float64 {
	if sim.plan.Score.LowerIsBetter {
		worth = -worth
	}
	if sim.relative {
		return sim.level * math.Exp(worth*sim.off)
	}
	return worth * sim.off
}

// play plays one run. change is the change of an iteration in errors of the judge; an iteration begins with the version
// that the rules have left. gain is that of the version that is handed back.
func (sim *simulator) play(p *loop.Plan, run int, change func(iteration int) float64) (stop *loop.StopRecord, gain float64) {
	dice := rand.New(rand.NewPCG(sim.seed, uint64(2000+run)))
	first := 1
	if p.Score.Baseline {
		first = 0
	}
	worth, at := []float64{0}, 0
	state, begun := map[string]any{}, time.Time{}.Add(time.Hour)
	var t loop.Tally
	for {
		d := p.Next(&t)
		o := loop.Outcome{Iteration: d.Iteration, Step: d.Step, State: state, Wrote: []string{}, Started: begun}
		switch {
		case d.Action == loop.Stop:
			return d.Stop, worth[d.Stop.Result.Iteration] - worth[first]
		case d.Action == loop.Rollback:
			at, o.RolledBack = d.To, true
		case d.Step == 0:
			next := worth[at]
			if d.Iteration > first {
				next += change(d.Iteration)
			}
			worth, at, begun = append(worth, next), d.Iteration, begun.Add(sim.work)
			o.Fingerprint = fmt.Sprint(at)
		default:
			state["score"] = sim.answer(worth[at], worth[t.Rival.Iteration], d.Sample%2 == 0, dice)
			o.Wrote, begun = []string{"score"}, begun.Add(sim.ask)
		}
		o.Finished = begun
		p.Add(&t, o)
	}
}

// answer is what the judge says about a version. If it compares, other is that of the version with which it does, which stands in the first
// place if the two are swapped.
func (sim *simulator) answer(worth, other float64, swapped bool, dice *rand.Rand) float64 {
	truth, off := sim.score(worth), sim.off*dice.NormFloat64()
	switch {
	case sim.plan.Score.Judge != nil && sim.plan.Score.Judge.Compare != "":
		truth -= sim.score(other)
		if swapped {
			truth = -truth
		}
		return min(2, max(-2, math.Round(truth+off)))
	case sim.relative:
		off *= truth
	}
	return study.Tidy(truth + off)
}

// full is the plan of a run of all iterations.
func (sim *simulator) full() *loop.Plan {
	p, sc := *sim.plan, *sim.plan.Score
	sc.MinDelta, sc.MinDeltaPercent, p.NotWorth = nil, nil, nil
	p.Score = &sc
	return &p
}

// early reports whether a run has converged before its last iteration.
func (sim *simulator) early(stop *loop.StopRecord) bool {
	return stop.Reason == loop.ReasonConverged && uint(stop.Iteration) < sim.plan.MaxIterations
}

// shape is one of the six courses: by how many errors of the judge an iteration changes the version.
type shape struct {
	name     string
	versions func(*simulator) string
	change   func(iteration int) float64
}

// slow is the gain of an iteration that improves slowly, in errors of the judge.
const slow = 0.5

// shapes returns the six courses of a loop with that many iterations.
func shapes(iterations int) []shape {
	top := max(2, iterations/3)
	each := func(name string, by float64) shape {
		return shape{name, func(s *simulator) string { return s.amount(by) + " each" }, func(int) float64 { return by }}
	}
	return []shape{
		each("steady", 1), each("slow", slow),
		{"late plateau", func(s *simulator) string {
			return fmt.Sprintf("%s each to iteration %d, then the same", s.amount(1), top)
		}, func(i int) float64 {
			if i > top {
				return 0
			}
			return 1
		}},
		{"staircase", func(s *simulator) string { return s.amount(1.5) + " every fourth" }, func(i int) float64 {
			if i%4 != 2 {
				return 0
			}
			return 1.5
		}},
		{"flat", func(*simulator) string { return "all the same" }, func(int) float64 { return 0 }},
		each("declining", -slow),
	}
}

// simulations plays the six courses for each loop with a noisy judge.
func (s *bench) simulations() []Simulation {
	var all []Simulation
	for _, l := range s.Loops {
		if !s.noisy(l) && !compares(l) {
			continue
		}
		sim := s.simulate(l, l.Loop.Score.Judge)
		c := Simulation{Loop: l.Name, Runs: noiseRuns, Iterations: int(sim.plan.MaxIterations), Samples: int(sim.samples()),
			Exact: l.Loop.Score.Judge == nil, Error: brief.Digits(sim.off, 3), Relative: sim.relative, Compares: compares(l),
			Note: s.unending(l)}
		if c.Note == "" {
			for _, sh := range shapes(c.Iterations) {
				c.Courses = append(c.Courses, sim.course(sh))
			}
		}
		all = append(all, c)
	}
	return all
}

// course is what many runs of a course come to.
func (sim *simulator) course(sh shape) SimulatedCourse {
	c, whole, best := SimulatedCourse{Name: sh.name, Versions: sh.versions(sim)}, sim.full(), 0.0
	for i := range noiseRuns {
		stop, gain := sim.play(sim.plan, i, sh.change)
		if sim.early(stop) {
			c.StoppedEarly += 1. / noiseRuns
		}
		c.Iterations += float64(stop.Iteration) / noiseRuns
		c.Gain += gain * sim.off / noiseRuns
		_, most := sim.play(whole, i, sh.change)
		best += most * sim.off / noiseRuns
	}
	if best > 0 {
		c.HandedBack = new(brief.Digits(c.Gain/best, 3))
	}
	c.StoppedEarly, c.Iterations, c.Gain = brief.Digits(c.StoppedEarly, 3), brief.Digits(c.Iterations, 3), brief.Digits(c.Gain, 3)
	return c
}

// amount writes a difference that is given in errors of the judge.
func (sim *simulator) amount(errors float64) string {
	if sim.plan.Score.LowerIsBetter {
		errors = -errors
	}
	return withSign(errors*sim.off, sim.relative)
}

func withSign(f float64, relative bool) string {
	sign, unit := "+", ""
	if f < 0 {
		sign = "-"
	}
	if relative {
		f, unit = f*100, "%"
	}
	return sign + study.Decimal(brief.Digits(math.Abs(f), 2)) + unit
}

// Format writes the courses of a loop for people.
func (c *Simulation) Format(w io.Writer) error {
	if c.Note != "" {
		_, err := fmt.Fprintf(w, "  %s: %s\n", c.Loop, c.Note)
		return err
	}
	judge := fmt.Sprintf("samples: %d", c.Samples)
	if c.Exact {
		judge = "no score.judge"
	}
	b := &strings.Builder{}
	answer := "an answer of the judge"
	if c.Compares {
		answer = "a comparison"
	}
	fmt.Fprintf(b, "  %s, up to %d iterations, %s, if %s is off by ± %s\n", c.Loop, c.Iterations, judge, answer,
		withSign(c.Error, c.Relative)[1:])
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "    course\tversions\tstopped early\titerations\thands back, of a full run")
	for _, row := range c.Courses {
		fmt.Fprintf(t, "    %s\t%s\t%.0f%%\t%.1f\t%s\n", row.Name, row.Versions, 100*row.StoppedEarly, row.Iterations, c.result(row))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// result says what a loop hands back of a course.
func (c *Simulation) result(row SimulatedCourse) string {
	switch {
	case row.HandedBack != nil:
		return fmt.Sprintf("%.0f%%", 100**row.HandedBack)
	case row.Gain < 0:
		return "nothing to gain; " + withSign(row.Gain, c.Relative)[1:] + " worse than the first"
	}
	return "nothing to gain"
}
