// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/refrain-dev/refrain/loop"
)

// course is one course of a family. Changes and answers have a stream of chance each, so that all rules see the same
// changes as long as they keep the same versions.
type course struct {
	*family
	versions        []version // by iteration, from 1
	now             version   // what the next one is made from
	chance, answers *rand.Rand
	calls           int
	pairs           *comparison     // nil: absolute marks
	begin           func(*loop.Leg) // nil: the loop has no legs
	made            bool            // now is made already
}

func (f *family) course(seed uint64) *course {
	return &course{family: f, versions: make([]version, 1, 16), now: f.start,
		chance: rand.New(rand.NewPCG(seed, 1)), answers: rand.New(rand.NewPCG(seed, 2))}
}

// make makes the version of the next iteration, which it returns.
func (c *course) make() int {
	i := len(c.versions)
	if i > 1 && !c.made {
		c.now = c.next(c.now, i, c.chance)
	}
	c.made = false
	c.versions = append(c.versions, c.now)
	return i
}

// ask returns one answer about the version of an iteration.
func (c *course) ask(i int) float64 {
	c.calls++
	q := c.versions[i].quality
	switch {
	case c.exact:
		return q
	case c.answer == nil:
		return q + c.answers.NormFloat64()
	}
	return c.answer(q, len(c.versions)-1, c.answers)
}

// score is one answer about the version of an iteration, or one comparison of it.
func (c *course) score(i int, t *loop.Tally, swapped bool) float64 {
	if c.pairs != nil {
		return c.compare(i, t, swapped)
	}
	return c.ask(i)
}

// gain is the true gain of an iteration over the first.
func (c *course) gain(i int) float64 {
	g := c.versions[i].quality - c.versions[1].quality
	if c.lower {
		return -g
	}
	return g
}

// setting is what an author writes.
type setting struct {
	samples  uint
	delta    float64 // min_delta
	patience uint
	limit    uint // max_iterations
	rollback bool
	free     bool    // without convergence
	price    float64 // gain of not_worth, in deviations of an answer; 0: none
	target   float64
	most     uint // samples: samples..most
}

// ending is what a run came to.
type ending struct {
	iterations, calls int
	early             bool // it converged before the limit
	target            bool
	iteration         int // handed back
	detail            string
}

// percentOf is min_delta_percent of a family, whose courses start at 100; 1 if min_delta is not given.
func (s *setting) percentOf(f *family) float64 {
	if s.delta == 0 {
		return 1
	}
	return s.delta * f.deviation()
}

// plan is the plan of a setting by a version of the rules.
func (s *setting) plan(f *family, rules uint) *loop.Plan {
	p := &loop.Plan{
		Version: rules, Steps: []loop.Step{{Name: "writer"}, {Name: "judge"}}, MaxIterations: s.limit,
		Score: &loop.Score{Key: "score", LowerIsBetter: f.lower},
	}
	if !f.exact {
		p.Score.Judge = &loop.Judge{Step: "judge", Samples: s.samples}
		if rules > 0 { // before there were only fixed numbers
			p.Score.Judge.Max = s.most
		}
	}
	if s.price != 0 {
		p.NotWorth = &loop.NotWorth{Gain: s.price * f.deviation()}
	}
	if rules == current {
		p.Version = p.Current()
	}
	if s.rollback {
		p.OnRegression = loop.RollbackOnWorse
	}
	if s.target != 0 {
		p.Score.Target = &s.target
	}
	switch {
	case s.free:
	case f.percent:
		p.Score.MinDeltaPercent, p.Score.Patience = new(s.percentOf(f)), s.patience
	default:
		p.Score.MinDelta, p.Score.Patience = &s.delta, s.patience
	}
	return p
}

// play drives a plan. The judge judges what the state holds, whatever iteration made it.
func (c *course) play(p *loop.Plan) ending {
	var t loop.Tally
	state, at := map[string]any{}, 0
	for {
		d := p.Next(&t)
		o := loop.Outcome{Iteration: d.Iteration, Step: d.Step, State: state, Wrote: []string{}}
		switch {
		case d.Action == loop.Stop:
			r, last := d.Stop, len(c.versions)-1
			return ending{last, c.calls, r.Reason == loop.ReasonConverged && uint(last) < p.MaxIterations,
				r.Reason == loop.ReasonTarget, r.Result.Iteration, r.Detail}
		case d.Action == loop.Rollback:
			at, c.now, o.RolledBack = d.To, c.versions[d.To], true
		case d.Action == loop.BeginLeg:
			at, c.now, o.RolledBack, o.Leg = d.To, c.versions[d.To], true, d.Leg
			c.begin(p.Leg(d.Leg))
		case d.Step == 0:
			at = c.make()
			o.Fingerprint = fmt.Sprint("version ", at)
		default:
			state["score"] = c.score(at, &t, d.Sample%2 == 0)
			o.Wrote = []string{"score"}
		}
		p.Add(&t, o)
	}
}
