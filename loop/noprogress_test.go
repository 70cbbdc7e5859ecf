// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/refrain-dev/refrain/loop"
)

// printing gives the iterations these results; ? is one that cannot be seen.
func printing(texts string) script {
	return func(d loop.Decision) loop.Outcome {
		c := texts[min(d.Iteration, len(texts))-1]
		if c == '?' {
			return loop.Outcome{State: map[string]any{"draft": d.Iteration}}
		}
		return loop.Outcome{Fingerprint: string(c), State: map[string]any{"draft": string(c), "n": d.Iteration}}
	}
}

// LOOP 15: the same result three times running, or two that take turns twice.
func TestLaw15NoProgress(t *testing.T) {
	for name, c := range map[string]struct {
		rule  loop.NoProgress
		texts string
		want  int // the iteration it stops in; 0: the limit
		why   string
	}{
		"the same three times":       {loop.NoProgress{}, "abbbcde", 4, "the same result 3 times running"},
		"only twice":                 {loop.NoProgress{}, "aabbccd", 0, ""},
		"two take turns":             {loop.NoProgress{}, "cababde", 5, "two results take turns, 2 times running"},
		"a change is progress":       {loop.NoProgress{}, "abcabca", 0, ""},
		"turns that stop short":      {loop.NoProgress{}, "abacabc", 0, ""},
		"the same within turns":      {loop.NoProgress{}, "abbabab", 6, "two results take turns, 2 times running"},
		"repeats of its own":         {loop.NoProgress{Repeats: 2}, "abccdef", 4, "the same result 2 times running"},
		"swings of its own":          {loop.NoProgress{Swings: 3}, "abababc", 6, "two results take turns, 3 times running"},
		"one swing":                  {loop.NoProgress{Swings: 1}, "aaab", 3, "the same result 3 times running"},
		"what is unseen is left out": {loop.NoProgress{}, "a?a?ab?", 5, "the same result 3 times running"},
		"nothing is seen":            {loop.NoProgress{}, "???????", 0, ""},
		"a key":                      {loop.NoProgress{Keys: []string{"draft"}}, "abbbcde", 4, "the same result 3 times running"},
		"another key moves":          {loop.NoProgress{Keys: []string{"draft", "n"}}, "abbbcde", 0, ""},
		"keys nobody writes":         {loop.NoProgress{Keys: []string{"gone"}}, "abcdefg", 3, "the same result 3 times running"},
	} {
		p := loop.Plan{Steps: steps("a"), MaxIterations: 7, NoProgress: &c.rule}
		tr := run(t, p, printing(c.texts))
		stopped := tr.stop.Iteration
		if tr.stop.Reason != loop.ReasonNoProgress {
			stopped = 0
		}
		if stopped != c.want || c.want > 0 && tr.stop.Detail != c.why {
			t.Errorf("%s: %v, want %d: %s", name, tr.stop, c.want, c.why)
		}
	}
}

// The result of an iteration is what all its steps produce; one that was cut
// short has none.
func TestNoProgressOfSeveralSteps(t *testing.T) {
	p := loop.Plan{Steps: steps("a", "b"), MaxIterations: 6, NoProgress: &loop.NoProgress{}, OnError: loop.NextIteration}
	one := func(d loop.Decision) loop.Outcome {
		if d.Step == 0 {
			return loop.Outcome{Fingerprint: "x"}
		}
		return printing("abcddd")(d)
	}
	if tr := run(t, p, one); tr.stop.Reason != loop.ReasonNoProgress || tr.stop.Iteration != 6 {
		t.Errorf("%v", tr.stop)
	}
	if tr := run(t, p, at(p, "b", 5, failure(""), one)); tr.stop.Reason != loop.ReasonMaxIterations {
		t.Errorf("%v", tr.stop)
	}
	if tr := run(t, p, at(p, "a", 6, loop.Outcome{}, one)); tr.stop.Reason != loop.ReasonMaxIterations {
		t.Errorf("%v", tr.stop)
	}
	judge := judged(1)
	judge.NoProgress, judge.MaxIterations = &loop.NoProgress{}, 4
	if tr := run(t, judge, said(judge, "aaaa", []float64{1}, []float64{2}, []float64{3})); tr.stop.Iteration != 3 {
		t.Errorf("the judge's words: %v", tr.stop)
	}
}

// The counts are those of the whole history, though only two prints are kept.
func TestCountsOfCircles(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := loop.Plan{Steps: steps("a"), NoProgress: &loop.NoProgress{Repeats: 1000, Swings: 1000}}
		var u loop.Tally
		var all []byte
		for range 40 {
			all = append(all, "aab"[r.IntN(2+int(seed%2))])
			p.Add(&u, loop.Outcome{Fingerprint: string(all[len(all)-1])})
			repeats, swings := circles(all)
			if u.Repeats != repeats || u.Swings != swings || len(u.Prints) > 2 {
				t.Fatalf("%s: same %d, turns %d, want %d and %d", all, u.Repeats, u.Swings, repeats, swings)
			}
		}
	}
}

// circles counts from the end: how often the last result was the same, and how
// often the last two, unlike each other, took turns.
func circles(all []byte) (repeats, swings int) {
	for i := len(all) - 1; i >= 0 && all[i] == all[len(all)-1]; i-- {
		repeats++
	}
	if repeats > 1 {
		return repeats, 0
	}
	for i := len(all); i >= 2 && slices.Equal(all[i-2:i], all[len(all)-2:]); i -= 2 {
		swings++
	}
	return repeats, swings
}
