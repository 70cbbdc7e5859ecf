// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
)

// looks is an agent that says what the names stand for where it runs.
func looks(t testing.TB, name string, names ...string) agent.Agent {
	return does(t, name, func(ctx agent.InvocationContext, say say) error {
		lookup := drive.At(ctx).Lookup
		var found []string
		for _, n := range names {
			if v, ok := lookup(n); ok {
				found = append(found, fmt.Sprintf("%s=%v", n, v))
			}
		}
		say(words(strings.Join(found, " ")))
		return nil
	})
}

// C21, O7, LOOP 5: an iteration: key is there for the later steps of its
// iteration, and gone in the next; other keys stay.
func TestIterationKeysLiveForOneIteration(t *testing.T) {
	root := repeat(t, "refine", 3,
		looks(t, "before", "iteration:note", "kept"),
		turns(t, "writer", sets("", "iteration:note", "mind the gap"), nil, sets("", "kept", "for ever")),
		sequence(t, "seq", looks(t, "after", "iteration:note", "kept")))
	s := newStage(t, root, false)
	evs, err := s.send(t, t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	check(t, "events", lines(evs), []string{
		"before: ", "writer: ", "after: iteration:note=mind the gap",
		"before: ", "after: ",
		"before: ", "writer: ", "after: kept=for ever",
	})
	check(t, "iteration key afterwards", s.state(t, "iteration:note"), nil)
	check(t, "other key afterwards", s.state(t, "kept"), any("for ever"))
}

// An inner loop has iteration: keys of its own, and sees those of the outer one.
func TestIterationKeysOfNestedLoops(t *testing.T) {
	root := repeat(t, "outer", 2,
		turns(t, "o", sets("", "iteration:a", "outer"), nil),
		repeat(t, "inner", 2,
			looks(t, "look", "iteration:a", "iteration:b"),
			turns(t, "i", sets("", "iteration:a", "inner"), sets("", "iteration:b", "inner"))),
		looks(t, "end", "iteration:a", "iteration:b"))
	got := mustPlay(t, root)
	check(t, "events", got, []string{
		"o: ", "look: iteration:a=outer", "i: ", "look: iteration:a=outer", "i: ", "end: iteration:a=outer",
		"look: ", "look: ", "end: ",
	})
}

// An iteration that an exit cuts short forgets its keys too.
func TestIterationKeysEndWithAnExit(t *testing.T) {
	root := sequence(t, "story",
		repeat(t, "refine", 9, turns(t, "judge", sets("", "iteration:a", 1)), turns(t, "out", exits("x"))),
		looks(t, "after", "iteration:a"))
	check(t, "events", mustPlay(t, root), []string{"judge: ", "out: exit x", "after: "})
}

// C19, B6, T29: a step can know where it is.
func TestStepsKnowTheIteration(t *testing.T) {
	root := repeat(t, "refine", 2, looks(t, "a", "iteration", "max_iterations", "remaining_iterations", "is_first_iteration", "is_last_iteration", "user_input"))
	check(t, "events", mustPlay(t, root), []string{
		"a: iteration=1 max_iterations=2 remaining_iterations=1 is_first_iteration=true is_last_iteration=false user_input=go",
		"a: iteration=2 max_iterations=2 remaining_iterations=0 is_first_iteration=false is_last_iteration=true user_input=go",
	})
	endless := repeat(t, "refine", 0, looks(t, "a", "iteration", "max_iterations", "is_last_iteration"), turns(t, "b", nil, exits("x")))
	check(t, "events", mustPlay(t, endless)[1], "a: iteration=2 is_last_iteration=false")
}

// C10, LOOP 26: the state after the iteration before, and after the best one.
func TestKeepStates(t *testing.T) {
	keep := func(c *loopagent.Config) {
		c.KeepStates = true
		c.Rules.Score = &loop.Score{Key: "score"}
	}
	n := 0
	write := does(t, "write", func(_ agent.InvocationContext, say say) error {
		ev := sets("", "draft", string(rune('a'+n)))
		ev.Actions.StateDelta["score"] = []float64{5, 9, 7, 8}[n]
		say(ev)
		n++
		return nil
	})
	root := loopOf(t, "refine", 4, keep, write, looks(t, "look", "draft", "prev.draft", "best.draft", "score", "best.score", "prev.score"))
	got := mustPlay(t, root)
	check(t, "events", got, []string{
		"write: ", "look: draft=a score=5",
		"write: ", "look: draft=b prev.draft=a best.draft=a score=9 best.score=5 prev.score=5",
		"write: ", "look: draft=c prev.draft=b best.draft=b score=7 best.score=9 prev.score=9",
		"write: ", "look: draft=d prev.draft=c best.draft=b score=8 best.score=9 prev.score=7",
		"refine: draft=b prev.draft=a best.draft=a score=9 best.score=5 prev.score=5",
	})
}

// Without KeepStates the names have no value, and nothing is copied.
func TestWithoutKeepStatesThereIsNoPrev(t *testing.T) {
	root := repeat(t, "refine", 2, turns(t, "write", sets("", "draft", "a")), looks(t, "look", "draft", "prev.draft", "best.draft"))
	check(t, "events", mustPlay(t, root), []string{"write: ", "look: draft=a", "look: draft=a"})
}

// A score that an iteration does not give is not there for the next one.
func TestScoreOfTheIterationBefore(t *testing.T) {
	root := loopOf(t, "refine", 3, func(c *loopagent.Config) { c.Rules.Score = &loop.Score{Key: "iteration:score"} },
		looks(t, "look", "score", "best.score"),
		turns(t, "judge", sets("", "iteration:score", 6.0)))
	check(t, "events", mustPlay(t, root), []string{
		"look: ", "judge: ", "look: score=6 best.score=6", "look: best.score=6",
	})
}

// C22, D15: counters, scores and the best belong to a run; the next message of
// the session starts afresh, with the state that is there.
func TestNextMessageStartsAfresh(t *testing.T) {
	var recs []*loop.StopRecord
	root := loopOf(t, "refine", 2, func(c *loopagent.Config) {
		c.KeepStates = true
		c.Rules.Score = &loop.Score{Key: "points"}
		c.OnStop = func(_ agent.InvocationContext, r *loop.StopRecord) { recs = append(recs, r) }
	}, looks(t, "look", "points", "iteration", "prev.points", "best.score"), drafts(t, "w", "points", 9, 8, 5, 6))
	s := newStage(t, root, false)
	for range 2 {
		if _, err := s.send(t, t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, ev := range s.log(t) {
		if ev.Author == "look" {
			got = append(got, ev.Text())
		}
	}
	check(t, "looks", got, []string{
		"iteration=1", "points=9 iteration=2 prev.points=9 best.score=9",
		"points=8 iteration=1", "points=5 iteration=2 prev.points=5 best.score=5",
	})
	check(t, "best of the second run", recs[1].BestScore, new(6.0))
	check(t, "iterations", recs[1].Iterations, 2)
}

// D9, D16, B7: state accumulates, and a key is overwritten by the newer value.
func TestStateAccumulates(t *testing.T) {
	root := repeat(t, "refine", 2,
		turns(t, "coder", sets("", "code", "v1"), sets("", "code", "v2")),
		turns(t, "tester", sets("", "tests", "2 of 3"), nil),
		looks(t, "look", "code", "tests"))
	check(t, "events", mustPlay(t, root), []string{
		"coder: ", "tester: ", "look: code=v1 tests=2 of 3", "coder: ", "look: code=v2 tests=2 of 3",
	})
}

// A nil value removes a key, as in every event.
func TestNilRemovesAKey(t *testing.T) {
	root := repeat(t, "refine", 2, looks(t, "look", "draft"), turns(t, "w", sets("", "draft", "a"), sets("", "draft", nil)))
	s := newStage(t, root, false)
	if _, err := s.send(t, t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	check(t, "draft", s.state(t, "draft"), nil)
}
