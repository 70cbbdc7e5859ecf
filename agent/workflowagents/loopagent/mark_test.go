// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"testing"

	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session/mark"
)

// G7, G9: a durable run writes down when steps and iterations begin and end and
// why each loop stopped, nested as they ran.
func TestDurableRunWritesMarks(t *testing.T) {
	root := sequence(t, "story", repeat(t, "outer", 1,
		says(t, "a", "x"),
		repeat(t, "inner", 2, turns(t, "b", words("y"), exits("enough")))))
	s := newStage(t, root, true)
	evs, err := s.send(t, t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"story step_started",
		"story/outer step_started",
		"story/outer loop_started",
		"story/outer[1]/a step_started",
		"story/outer[1]/a: x",
		"story/outer[1]/a step_finished",
		"story/outer[1]/inner step_started",
		"story/outer[1]/inner loop_started",
		"story/outer[1]/inner[1]/b step_started",
		"story/outer[1]/inner[1]/b: y",
		"story/outer[1]/inner[1]/b step_finished",
		"story/outer[1]/inner iteration_finished",
		"story/outer[1]/inner[2]/b step_started",
		"story/outer[1]/inner[2]/b: exit enough",
		"story/outer[1]/inner[2]/b step_finished",
		"story/outer[1]/inner iteration_finished",
		"story/outer[1]/inner loop_stopped",
		"story/outer[1]/inner step_finished",
		"story/outer iteration_finished",
		"story/outer loop_stopped",
		"story/outer step_finished",
		"story step_finished",
	}
	check(t, "events", addressed(evs), want)
	check(t, "log", addressed(s.log(t)), want)

	var it loop.IterationRecord
	if err := evs[15].Mark.Decode(&it); err != nil {
		t.Fatal(err)
	}
	check(t, "iteration", it, loop.IterationRecord{Number: 2, Complete: true})
	var rec loop.StopRecord
	if err := evs[16].Mark.Decode(&rec); err != nil {
		t.Fatal(err)
	}
	if rec.Loop != "inner" || rec.Reason != loop.ReasonExit || rec.Detail != "enough" || rec.By != "b" {
		t.Errorf("stop record %+v", rec)
	}
}

// Without durability the log has what the agents say, and nothing else.
func TestPlainRunWritesNoMarks(t *testing.T) {
	s := newStage(t, repeat(t, "outer", 2, repeat(t, "inner", 2, says(t, "a", "x"))), false)
	if _, err := s.send(t, t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	check(t, "log", lines(s.log(t)), []string{"a: x", "a: x", "a: x", "a: x"})
}

// A failed step and the loop that it ends say so in their marks.
func TestMarksOfAFailure(t *testing.T) {
	s := newStage(t, repeat(t, "refine", 2, fails(t, "probe", errBroken)), true)
	_, err := s.send(t, t.Context(), "go")
	if err == nil {
		t.Fatal("no error")
	}
	log := s.log(t)
	check(t, "log", addressed(log), []string{
		"refine step_started", "refine loop_started", "refine[1]/probe step_started", "refine[1]/probe step_finished", "refine loop_stopped", "refine step_finished",
	})
	var f mark.StepFinished
	if err := log[3].Mark.Decode(&f); err != nil {
		t.Fatal(err)
	}
	check(t, "error", f.Error, `agent "probe" (refine[1]/probe): broken`)
}

// What a loop hands back does not depend on the marks: the outer loop hears the
// inner one's last words in a durable run too.
func TestDurableRunHandsBackTheSame(t *testing.T) {
	for _, durable := range []bool{false, true} {
		inner := loopOf(t, "inner", 2, func(c *loopagent.Config) { c.Rules.Score = &loop.Score{Key: "score"} },
			drafts(t, "w", "score", 9, 3))
		root := loopOf(t, "outer", 1, func(c *loopagent.Config) { c.OutputKey = "result" }, inner)
		s := newStage(t, root, durable)
		evs, err := s.send(t, t.Context(), "go")
		if err != nil {
			t.Fatal(err)
		}
		check(t, "result", s.state(t, "result"), any("draft 1"))
		var said []string
		for _, ev := range evs {
			if ev.Mark != nil && ev.Content != nil {
				t.Errorf("the mark %s has words: %s", ev.Mark.Kind, ev.Text())
			}
			if ev.Text() != "" {
				said = append(said, ev.Author+": "+ev.Text())
			}
		}
		check(t, "words", said, []string{"w: draft 1", "w: draft 2", "inner: draft 1"})
	}
}
