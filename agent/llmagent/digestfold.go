// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/refrain-dev/refrain/agent/drive"
)

// fold summarizes many iterations in one line.
type fold struct {
	first, last           int // numbers of the iterations; 0 if there are none
	scored                int
	low, high             float64
	best                  int // number of the iteration that was the best so far; 0 if there is none
	score                 float64
	rejected, cut, flawed int
}

func (f *fold) add(it drive.IterationSummary) {
	if f.first == 0 {
		f.first = it.Number
	}
	f.last = it.Number
	if it.Score != nil {
		if f.scored == 0 {
			f.low, f.high = *it.Score, *it.Score
		}
		f.scored++
		f.low, f.high = math.Min(f.low, *it.Score), math.Max(f.high, *it.Score)
		if it.Best {
			f.best, f.score = it.Number, *it.Score
		}
	}
	if it.Rejected != "" {
		f.rejected++
	}
	if !it.Complete {
		f.cut++
	}
	if it.Failures > 0 {
		f.flawed++
	}
}

// String returns text such as "iterations 1–480: scores from 4.1 to 6.9, best 6.9 in 312".
func (f *fold) String() string {
	var parts []string
	switch {
	case f.scored == 1 || f.scored > 0 && f.low == f.high:
		parts = append(parts, "score "+num(f.low))
	case f.scored > 0:
		parts = append(parts, "scores from "+num(f.low)+" to "+num(f.high))
	}
	if f.best > 0 && f.first < f.last {
		parts = append(parts, "best "+num(f.score)+" in "+strconv.Itoa(f.best))
	}
	if f.rejected > 0 {
		parts = append(parts, strconv.Itoa(f.rejected)+" rejected")
	}
	if f.cut > 0 {
		parts = append(parts, strconv.Itoa(f.cut)+" cut short")
	}
	if f.flawed > 0 {
		parts = append(parts, strconv.Itoa(f.flawed)+" with failed steps")
	}
	if parts == nil {
		parts = []string{"complete"}
	}
	return span(f.first, f.last) + ": " + strings.Join(parts, ", ")
}

type foldKey struct{}

// keptFold is the running summary of a loop that encloses the loop of a digest.
type keptFold struct {
	mu sync.Mutex
	n  int
	fold
}

func (k *keptFold) at(past []drive.IterationSummary) fold {
	k.mu.Lock()
	defer k.mu.Unlock()
	for ; k.n < len(past); k.n++ {
		k.add(past[k.n])
	}
	return k.fold
}

// span returns text such as "iteration 3" or "iterations 1–3".
func span(first, last int) string {
	if first == last {
		return "iteration " + strconv.Itoa(first)
	}
	return fmt.Sprintf("iterations %d–%d", first, last)
}

// upper returns s with its first letter in upper case. s begins with an ASCII letter.
func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// num writes a number with at most six significant digits, and a whole number with all of its digits.
func num(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strconv.FormatFloat(f, 'g', 6, 64)
}

// heading names an iteration, with its score.
func heading(it drive.IterationSummary) string {
	s := "iteration " + strconv.Itoa(it.Number)
	if it.Score != nil {
		s += ", score " + num(*it.Score)
	}
	return s
}

// outcome describes how an iteration ended.
func outcome(it drive.IterationSummary) string {
	s := upper(heading(it))
	if it.Score != nil {
		s += ", improvement "
		switch {
		case it.Delta == nil:
			s += "N/A"
		case *it.Delta < 0:
			s += num(*it.Delta)
		default:
			s += "+" + num(*it.Delta)
		}
		if it.Percent != nil {
			s += fmt.Sprintf(" (%.1f%%)", *it.Percent)
		}
	}
	switch {
	case it.Rejected != "":
		s += ", rejected: " + quoteLines(it.Rejected, excerpt)
		if it.RolledBack {
			s += ", its changes undone"
		}
	case !it.Complete:
		s += ", cut short"
	case it.Score != nil:
		s += ", accepted"
	default:
		s += ", complete"
	}
	switch {
	case it.Failures == 1:
		s += ", 1 failed step"
	case it.Failures > 1:
		s += fmt.Sprintf(", %d failed steps", it.Failures)
	}
	return s
}
