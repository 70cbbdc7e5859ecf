// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"math/bits"
)

// mostShuffled is the number of runs of a case of which every division into two versions is tried.
const mostShuffled = 12

// chance returns the probability that a case looks better if the versions are the same, which is that of looking worse: the
// mean of both. It draws which of the runs belong to which version, for the runs of equal versions are exchangeable.
func chance(o Observation) float64 {
	var all []float64
	for _, x := range o.A {
		if isFinite(x) {
			all = append(all, x)
		}
	}
	n := len(all)
	for _, x := range o.B {
		if isFinite(x) {
			all = append(all, x)
		}
	}
	low, high, two := all[0], all[0], true
	for _, x := range all {
		low, high = min(low, x), max(high, x)
	}
	above := 0
	for _, x := range all {
		two = two && (x == low || x == high)
		if x == high {
			above++
		}
	}
	switch {
	case low == high:
		return 0
	case two:
		return (1 - tie(n, len(all)-n, above)) / 2
	case len(all) <= mostShuffled:
		return (1 - shuffledTie(all, n)) / 2
	}
	return 0.5 // of many different values, hardly any two means are equal
}

// tie returns the probability that both versions pass equally often, if the runs that pass are drawn from all.
func tie(a, b, passed int) float64 {
	if passed*a%(a+b) != 0 {
		return 0
	}
	k := passed * a / (a + b) // a version passes in proportion to its runs
	return math.Exp(choose(a, k) + choose(b, passed-k) - choose(a+b, passed))
}

// choose returns the logarithm of the number of ways to choose k of n.
func choose(n, k int) float64 {
	of := func(n int) float64 { f, _ := math.Lgamma(float64(n) + 1); return f }
	return of(n) - of(k) - of(n-k)
}

// shuffledTie returns the share of divisions of the values into n and the rest in which both have the same mean.
func shuffledTie(all []float64, n int) float64 {
	total, size := 0.0, 0.0
	for _, x := range all {
		total, size = total+x, max(size, math.Abs(x))
	}
	ties, of := 0, 0
	for set := range uint(1) << len(all) {
		if bits.OnesCount(set) != n {
			continue
		}
		sum := 0.0
		for i, x := range all {
			if set>>i&1 == 1 {
				sum += x
			}
		}
		of++
		if math.Abs(sum/float64(n)-total/float64(len(all))) <= tiny*size {
			ties++
		}
	}
	return float64(ties) / float64(of)
}

// Identical reports whether each case has the same answer in all of its repeats, and at least one case has several. Such repeats
// say nothing that one run does not say: the model is probably asked without randomness.
func Identical[T comparable](cases [][]T) bool {
	several := false
	for _, answers := range cases {
		several = several || len(answers) > 1
		for _, a := range answers {
			if a != answers[0] {
				return false
			}
		}
	}
	return several
}
