// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
)

// reader is an agent that reads its loops' history.
type reader struct{ agent.Agent }

func (reader) Traits(bool) drive.Traits { return drive.Traits{ReadsHistory: true} }

// reads is a reader that hands what its loop remembers to f.
func reads(t testing.TB, name string, f func(l *drive.Loop)) agent.Agent {
	return reader{does(t, name, func(ctx agent.InvocationContext, _ say) error {
		f(drive.At(ctx).Loop())
		return nil
	})}
}

// past is a history as lines.
func past(h *drive.History) []string {
	var lines []string
	for _, it := range h.Before(math.MaxInt) {
		var line strings.Builder
		fmt.Fprint(&line, it.Number)
		if it.Score != nil {
			fmt.Fprintf(&line, " score %v best %t", *it.Score, it.Best)
		}
		if it.Delta != nil {
			fmt.Fprintf(&line, " %v", *it.Delta)
		}
		if it.Rejected != "" {
			fmt.Fprintf(&line, " undone %t: %s", it.RolledBack, it.Rejected)
		}
		if !it.Complete {
			fmt.Fprintf(&line, " cut short by %d", it.Failures)
		}
		for _, ev := range it.Events {
			fmt.Fprintf(&line, ", %s %q", ev.Author, ev.Text())
		}
		lines = append(lines, line.String())
	}
	return lines
}

// LOOP 18, 28: what a loop remembers of its iterations.
func TestHistory(t *testing.T) {
	var seen []string
	root := loopOf(t, "l", 4, func(c *loopagent.Config) {
		scored(new(*loop.StopRecord), loop.Score{Judge: &loop.Judge{Step: "judge"}})(c)
		c.Rules.OnRegression = loop.RollbackOnWorse
	}, turns(t, "writer", words("one"), words("two"), words("three")), verdicts(t, 5, 7, 6), reads(t, "reader", func(l *drive.Loop) {
		if seen = past(l.History); len(seen) != l.Iteration-1 {
			t.Errorf("iteration %d remembers %q", l.Iteration, seen)
		}
		check(t, "before the second", len(l.History.Before(2)), min(l.Iteration-1, 1))
	}))
	if _, err := play(t, root); err != nil {
		t.Fatal(err)
	}
	check(t, "history", seen, []string{
		`1 score 5 best true, writer "one", judge "score 5"`,
		`2 score 7 best true 2, writer "two", judge "score 7"`,
		`3 score 6 best false -1 undone true: score 6 is worse than 7, the best so far (iteration 2), writer "three", judge "score 6"`,
	})
}

// LOOP 20: a failed attempt that is made again is forgotten; what an iteration that
// a failure cut short has said is not.
func TestHistoryOfFailures(t *testing.T) {
	var seen []string
	root := loopOf(t, "l", 2, func(c *loopagent.Config) {
		c.Rules.Steps = []loop.Step{{Name: "flaky", Retry: &loop.Retry{Attempts: 2}}}
		c.Rules.OnError = loop.NextIteration
	}, reads(t, "reader", func(l *drive.Loop) { seen = past(l.History) }),
		sequence(t, "flaky", says(t, "first", "x"), fails(t, "second", errors.New("no"))), fails(t, "third", errors.New("no")))
	if _, err := play(t, root); err != nil {
		t.Fatal(err)
	}
	check(t, "history", seen, []string{`1 cut short by 1, first "x", second "fine"`})
}

// Loops remember only for those below who read it, and each its own iterations.
func TestHistoryIsKeptForReaders(t *testing.T) {
	var inner, outer []string
	kept := 0
	r := reads(t, "reader", func(l *drive.Loop) {
		inner, outer = past(l.History), past(l.Outer.History)
		for range 2 {
			l.History.Cached("key", func() any { kept++; return kept })
		}
	})
	if _, err := play(t, repeat(t, "outer", 2, repeat(t, "inner", 2, says(t, "a", "x"), sequence(t, "seq", r)), says(t, "b", "y"))); err != nil {
		t.Fatal(err)
	}
	check(t, "inner", inner, []string{`1, a "x"`})
	check(t, "outer", outer, []string{`1, a "x", a "x", b "y"`})
	check(t, "kept", kept, 2) // once for each run of the loop
	nobody := does(t, "nobody", func(ctx agent.InvocationContext, _ say) error {
		h := drive.At(ctx).Loop().History
		if h != nil || h.Before(9) != nil || h.Cached("key", func() any { return 1 }) != 1 {
			t.Errorf("the loop remembers %q", past(h))
		}
		return nil
	})
	if _, err := play(t, repeat(t, "l", 2, nobody)); err != nil {
		t.Fatal(err)
	}
}
