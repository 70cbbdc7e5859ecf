// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/loop"
)

func forecast(s loop.Score, limit uint, scores ...float64) loop.Forecast {
	s.Key = "score"
	p := loop.Plan{Score: &s, MaxIterations: limit}
	return p.Forecast(&loop.Tally{Scores: scores, Iteration: len(scores), Complete: len(scores)})
}

// M5: how many more iterations it takes.
func TestForecast(t *testing.T) {
	five := loop.Score{MinDeltaPercent: new(5.0)}
	target := loop.Score{Target: new(8.0)}
	for name, c := range map[string]struct {
		got         loop.Forecast
		until       loop.StopReason
		want        int // iterations; Low and High are around it
		trend       loop.Trend
		gain, final float64
		note        string
	}{
		"the seed's, after three":  {forecast(five, 0, 5.2, 6.8, 7.4), loop.ReasonConverged, 1, loop.Improving, 0.225, 7.625, ""},
		"the seed's, after two":    {forecast(five, 0, 5.2, 6.8), "", 0, "", 0, 0, "not predictable yet: 2 scores, three are needed"},
		"none":                     {forecast(five, 0), "", 0, "", 0, 0, "not predictable yet: 0 scores, three are needed"},
		"a line to a target":       {forecast(target, 0, 1, 2, 3), loop.ReasonTarget, 5, loop.Improving, 1, 8, ""},
		"a line to the limit":      {forecast(target, 6, 1, 2, 3), loop.ReasonMaxIterations, 3, loop.Improving, 1, 6, ""},
		"a line to nowhere":        {forecast(loop.Score{}, 0, 1, 2, 3), "", 0, loop.Improving, 1, 103, "nothing is expected to end the loop within 100 iterations"},
		"halves to a target":       {forecast(target, 0, 1, 5, 7), loop.ReasonTarget, 1, loop.Improving, 1, 8, ""},
		"never there":              {forecast(loop.Score{Target: new(9.5)}, 20, 1, 5, 7, 8, 8.5), loop.ReasonMaxIterations, 15, loop.Improving, 0.25, 8.999985, ""},
		"never there, no limit":    {forecast(loop.Score{Target: new(9.5)}, 0, 1, 5, 7, 8, 8.5), "", 0, loop.Improving, 0.25, 9, "nothing is expected to end the loop within 100 iterations"},
		"lower is better":          {forecast(loop.Score{Target: new(0.5), LowerIsBetter: true}, 0, 16, 8, 4), loop.ReasonTarget, 3, loop.Improving, 2, 0.5, ""},
		"a plateau":                {forecast(five, 0, 7, 7, 7), loop.ReasonConverged, 1, loop.Plateau, 0, 7, ""},
		"a plateau with patience":  {forecast(loop.Score{MinDelta: new(0.1), Patience: 4}, 0, 5, 7, 7, 7), loop.ReasonConverged, 2, loop.Plateau, 0, 0, ""},
		"getting worse":            {forecast(five, 0, 9, 8, 7), loop.ReasonConverged, 1, loop.Regressing, -1, 6, ""},
		"up and down":              {forecast(five, 0, 5, 7, 5, 7, 5), "", 0, loop.Oscillating, 0, 0, "not predictable: the scores follow no course"},
		"dimensions are a mystery": {forecast(loop.Score{Target: new(8.0), DimensionTarget: new(7.0)}, 9, 5, 6, 7), loop.ReasonMaxIterations, 6, loop.Improving, 1, 13, ""},
		"at the limit":             {forecast(target, 3, 1, 2, 3), loop.ReasonMaxIterations, 0, loop.Improving, 1, 3, ""},
	} {
		f := c.got
		if f.Until != c.until || f.Iterations != c.want || f.Trend != c.trend || f.Note != c.note {
			t.Errorf("%s: %+v", name, f)
		}
		if f.Predictable != (f.Note == "" || c.gain != 0) || f.Low > f.Iterations || f.High < f.Iterations {
			t.Errorf("%s: %+v", name, f)
		}
		if name != "a plateau with patience" && (math.Abs(f.Gain-c.gain) > 1e-5 || math.Abs(f.Final-c.final) > 1e-5) {
			t.Errorf("%s: gain %v, final %v: want %v, %v", name, f.Gain, f.Final, c.gain, c.final)
		}
	}
}

// A score levels off only where the data say so: a line does not, whatever its slope, and three points, noise or a curve that is
// nearly a line say nothing.
func TestForecastLevel(t *testing.T) {
	var line, steep, slow []float64
	for i := range 12 {
		line = append(line, 6.02+0.02*float64(i))
		steep = append(steep, float64(i))
		slow = append(slow, 9-3*math.Pow(0.97, float64(i))+0.05*float64(i%2))
	}
	for name, c := range map[string]struct {
		scores []float64
		lower  bool
		want   float64 // NaN: none
	}{
		"a line":             {line, false, math.NaN()},
		"a steep line":       {steep, false, math.NaN()},
		"nearly a line":      {slow, false, math.NaN()},
		"three points":       {[]float64{4, 6, 7}, false, math.NaN()},
		"a line, with noise": {[]float64{6.02, 6.05, 6.06, 6.07, 6.11, 6.12, 6.13, 6.17}, false, math.NaN()},
		"halves":             {[]float64{4, 6, 7, 7.5}, false, 8},
		"halves, downwards":  {[]float64{16, 8, 4, 2}, true, 0},
		"a plateau":          {[]float64{1, 3, 4, 4.5, 4.55, 4.56, 4.57, 4.58}, false, 4.6},
	} {
		got := math.NaN()
		if f := forecast(loop.Score{LowerIsBetter: c.lower}, 0, c.scores...); f.Level != nil {
			got = *f.Level
		}
		if math.IsNaN(got) != math.IsNaN(c.want) || math.Abs(got-c.want) > 0.1 {
			t.Errorf("%s: levels off at %v, want %v", name, got, c.want)
		}
	}
}

// After a rollback the next iteration starts from the best: only gains over it
// are a course.
func TestForecastOfARollback(t *testing.T) {
	p := loop.Plan{Score: &loop.Score{Key: "score", Target: new(7.0)}}
	u := &loop.Tally{Scores: []float64{3, 5, 4, 6.5, 5}, Iteration: 5}
	if f := p.Forecast(u); f.Predictable {
		t.Errorf("%+v", f)
	}
	p.OnRegression = loop.RollbackOnWorse
	if f := p.Forecast(u); !f.Predictable || f.Until != loop.ReasonTarget || f.Low > 3 || f.Trend != loop.Oscillating {
		t.Errorf("%+v", f)
	}
}

func TestForecastSaysWhatAnIterationUses(t *testing.T) {
	p := loop.Plan{Steps: steps("a", "final"), MaxIterations: 4, Score: &loop.Score{Key: "score"}}
	use := func(cost *float64) script {
		return func(d loop.Decision) loop.Outcome {
			o := loop.Outcome{State: map[string]any{"score": d.Iteration}, Usage: loop.Usage{Calls: 1, InputTokens: 70, OutputTokens: 30, Cost: cost}}
			if d.Action == loop.Finalize { // is none of an iteration's
				o.Usage.InputTokens = 1e6
				return lasting(time.Hour, o)
			}
			return lasting(3*time.Second, o)
		}
	}
	tr := run(t, p, use(new(0.5)))
	f := p.Forecast(&tr.tally)
	if f.Time != 3*time.Second || f.Tokens != 100 || f.Cost == nil || *f.Cost != 0.5 {
		t.Errorf("%+v", f)
	}
	if tr = run(t, p, use(nil)); p.Forecast(&tr.tally).Cost != nil {
		t.Error("an unknown price became known")
	}
	p.Score = nil
	if f := p.Forecast(&tr.tally); f.Predictable || f.Note != "not predictable yet: the loop is not scored" || f.Tokens != 100 {
		t.Errorf("%+v", f)
	}
}

// series is a run whose gains shrink by a factor, with some noise; it ends at
// its target, when it has converged, or at the limit.
func series(r *rand.Rand, noise float64) (p loop.Plan, scores []float64, until loop.StopReason) {
	height, ratio := 2+4*r.Float64(), 0.3+0.6*r.Float64()
	s := &loop.Score{Key: "score", Patience: uint(1 + r.IntN(2))}
	p = loop.Plan{Steps: steps("a"), MaxIterations: 30, Score: s}
	if r.IntN(2) == 0 {
		s.Target = new(10 - height*(0.02+0.28*r.Float64()))
		s.Patience = 0
	} else {
		s.MinDelta = new(height * (0.01 + 0.09*r.Float64()))
	}
	sign := 1.0
	if r.IntN(4) == 0 {
		s.LowerIsBetter, sign = true, -1
		if s.Target != nil {
			*s.Target *= -1
		}
	}
	var u loop.Tally
	for {
		d := p.Next(&u)
		if d.Action == loop.Stop {
			return p, scores, d.Stop.Reason
		}
		x := sign * (10 - height*math.Pow(ratio, float64(d.Iteration-1)) + noise*height*r.NormFloat64())
		scores = append(scores, x)
		p.Add(&u, loop.Outcome{Iteration: d.Iteration, State: map[string]any{"score": x}})
	}
}

// M5: the interval holds the truth in most forecasts of most runs. The noise is
// a share of the whole improvement.
func TestForecastsHit(t *testing.T) {
	for _, c := range []struct {
		noise float64
		least int // per cent
	}{{0, 95}, {0.005, 90}, {0.01, 85}, {0.03, 80}} {
		r := rand.New(rand.NewPCG(4, 2))
		hits, made, width := 0, 0, 0
		for range 1000 {
			p, scores, until := series(r, c.noise)
			h, m := p.Hits(scores, until)
			hits, made = hits+h, made+m
			for n := 3; n < len(scores); n++ {
				f := p.Forecast(&loop.Tally{Scores: scores[:n], Iteration: n})
				width += f.High - f.Low
			}
		}
		share := 100 * hits / made
		t.Logf("noise %.1f%%: %d of %d forecasts of 1000 runs held the truth, %d%%; an interval has %.1f iterations more than one",
			100*c.noise, hits, made, share, float64(width)/float64(made))
		if share < c.least || width > 14*made {
			t.Errorf("noise %v: %d%%, want %d%%", c.noise, share, c.least)
		}
	}
}

func TestHits(t *testing.T) {
	p := loop.Plan{MaxIterations: 9, Score: &loop.Score{Key: "score", Target: new(8.0)}}
	line := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	for name, c := range map[string]struct {
		plan   loop.Plan
		scores []float64
		until  loop.StopReason
		want   [2]int
	}{
		"a line":              {p, line, loop.ReasonTarget, [2]int{5, 5}},
		"ended from outside":  {p, line, loop.ReasonExit, [2]int{}},
		"ended by an error":   {p, line, loop.ReasonError, [2]int{}},
		"not scored":          {loop.Plan{}, line, loop.ReasonTarget, [2]int{}},
		"too short":           {p, line[:3], loop.ReasonTarget, [2]int{}},
		"against expectation": {p, []float64{1, 2, 3, 8}, loop.ReasonTarget, [2]int{0, 1}},
	} {
		hits, made := c.plan.Hits(c.scores, c.until)
		if diff := cmp.Diff(c.want, [2]int{hits, made}); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// T31: the loop ends when the next iteration promises less than it must.
func TestNotWorth(t *testing.T) {
	half := []any{2, 6, 8, 9, 9.5, 9.75, 9.875, 9.9375, 9.96875} // the next gain is half the last one
	for name, c := range map[string]struct {
		rule   loop.NotWorth
		scores []any
		use    loop.Usage
		want   int // the iteration it stops in; 0: the limit
		detail string
	}{
		"per iteration":       {loop.NotWorth{Gain: 0.6}, half, loop.Usage{}, 4, "the next iteration is expected to gain 0.5 per iteration, less than 0.6"},
		"not before three":    {loop.NotWorth{Gain: 100}, half, loop.Usage{}, 3, "the next iteration is expected to gain 1 per iteration, less than 100"},
		"per minute":          {loop.NotWorth{Gain: 6, Per: loop.PerMinute}, half, loop.Usage{}, 5, "the next iteration is expected to gain 5 per minute, less than 6"},
		"per thousand tokens": {loop.NotWorth{Gain: 0.2, Per: loop.PerKTokens}, half, loop.Usage{InputTokens: 1500, OutputTokens: 500}, 5, "the next iteration is expected to gain 0.125 per ktokens, less than 0.2"},
		"per cost":            {loop.NotWorth{Gain: 2, Per: loop.PerCost}, half, loop.Usage{Calls: 1, Cost: new(0.2)}, 5, "the next iteration is expected to gain 1.25 per cost, less than 2"},
		"at an unknown cost":  {loop.NotWorth{Gain: 2, Per: loop.PerCost}, half, loop.Usage{Calls: 1}, 0, ""},
		"for free":            {loop.NotWorth{Gain: 2, Per: loop.PerCost}, half, loop.Usage{Calls: 1, Cost: new(0.0)}, 0, ""},
		"without tokens":      {loop.NotWorth{Gain: 2, Per: loop.PerKTokens}, half, loop.Usage{}, 0, ""},
		"it gets worse":       {loop.NotWorth{Gain: 0.001}, []any{9, 8, 7}, loop.Usage{}, 3, "the next iteration is expected to gain -1 per iteration, less than 0.001"},
		"up and down":         {loop.NotWorth{Gain: 0.1}, []any{5, 8, 6, 8, 5, 8, 5, 8, 5}, loop.Usage{}, 0, ""},
		"scores go missing":   {loop.NotWorth{Gain: 0.6}, []any{2, 6, "?", 8, "?", 9, "?"}, loop.Usage{}, 6, "the next iteration is expected to gain 0.5 per iteration, less than 0.6"},
	} {
		for _, rules := range []uint{0, 4} {
			if rules == 4 && name == "per minute" { // 5 a minute is expected, and version 4 also weighs that it may be more
				c.want, c.detail = 6, "the next iteration is expected to gain 2.5 per minute, less than 6"
			}
			p := loop.Plan{Version: rules, Steps: steps("a"), MaxIterations: 9, Score: &loop.Score{Key: "score"}, NotWorth: &c.rule}
			tr := run(t, p, func(d loop.Decision) loop.Outcome {
				o := scored(c.scores...)(d)
				o.Usage = c.use
				return lasting(3*time.Second, o)
			})
			stopped := tr.stop.Iteration
			if tr.stop.Reason != loop.ReasonConverged {
				stopped = 0
			}
			if stopped != c.want || c.want > 0 && tr.stop.Detail != c.detail {
				t.Errorf("%s, rules %d: %v", name, rules, tr.stop)
			}
			if got, _ := condition(tr.stop, "not_worth"); got.Fired != (c.want > 0) || got.Holds != (c.want > 0) {
				t.Errorf("%s, rules %d: %+v", name, rules, got)
			}
		}
	}
}
