// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"iter"
	"slices"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// C8, LOOP 16: where the result comes from, on every path.
func TestResultPrecedence(t *testing.T) {
	final := func(c *loopagent.Config) { finalizeWith(c, "final") }
	silent := exits("done")
	silent.Content = nil
	for _, tt := range []struct {
		name string
		more func(*loopagent.Config)
		w    agent.Agent
		fin  agent.Agent
		want loop.Result
		text string
	}{
		{"finalizer", final, says(t, "w", "a"), says(t, "final", "the end"), loop.Result{Source: loop.FromFinalizer, Iteration: 2}, "the end"},
		{"best, since the finalizer fails", func(c *loopagent.Config) {
			final(c)
			c.Rules.Score = &loop.Score{Key: "score"}
		}, drafts(t, "w", "score", 9, 3), fails(t, "final", errBroken), loop.Result{Source: loop.FromBest, Iteration: 1}, "draft 1"},
		{"last, since the finalizer fails", final, turns(t, "w", words("a"), words("b")), fails(t, "final", errBroken), loop.Result{Source: loop.FromLast, Iteration: 2}, "b"},
		{"the one that was left", nil, turns(t, "w", words("a"), exits("x")), says(t, "v", "b"), loop.Result{Source: loop.FromPartial, Iteration: 2}, "exit x"},
		{"left in silence: the words of the one before", nil, turns(t, "w", nil, silent), says(t, "v", "b"), loop.Result{Source: loop.FromLast, Iteration: 1}, "b"},
		{"silence in the last: the words of the one before", nil, turns(t, "w", words("a")), turns(t, "v"), loop.Result{Source: loop.FromLast, Iteration: 1}, "a"},
		{"partial", nil, turns(t, "w", exits("at once")), says(t, "v", "b"), loop.Result{Source: loop.FromPartial, Iteration: 1}, "exit at once"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var rec *loop.StopRecord
			root := loopOf(t, "l", 2, func(c *loopagent.Config) {
				c.OutputKey = "result"
				into(&rec)(c)
				if tt.more != nil {
					tt.more(c)
				}
			}, tt.w, tt.fin)
			s := newStage(t, root, false)
			evs, err := s.send(t, t.Context(), "go")
			if err != nil {
				t.Fatal(err)
			}
			check(t, "result", rec.Result, tt.want)
			check(t, "output key", s.state(t, "result"), any(tt.text))
			last := slices.DeleteFunc(evs, func(ev *session.Event) bool { return ev.Text() == "" })
			check(t, "last words", last[len(last)-1].Text(), tt.text)
		})
	}
}

// D13, C6: the finalizer runs once, after all iterations, wherever it is in the
// list, and says the last word.
func TestFinalizerRunsOnceAfterTheLoop(t *testing.T) {
	root := loopOf(t, "refine", 2, func(c *loopagent.Config) { finalizeWith(c, "final") },
		says(t, "final", "the end"), says(t, "critic", "x"), says(t, "editor", "y"))
	evs, err := play(t, root)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "events", addressed(evs), []string{
		"refine[1]/critic: x", "refine[1]/editor: y", "refine[2]/critic: x", "refine[2]/editor: y", "refine/final: the end",
	})
}

// LOOP 17: it runs for every stop but an error.
func TestFinalizerAfterEveryStopButAnError(t *testing.T) {
	for _, step := range []agent.Agent{turns(t, "w", exits("x")), turns(t, "w", exitsBy(session.Exit{Status: session.ExitBlocked})),
		says(t, "w", "x"), fails(t, "w", errBroken)} {
		root := loopOf(t, "refine", 2, func(c *loopagent.Config) { finalizeWith(c, "final") }, step, says(t, "final", "the end"))
		evs, err := play(t, root)
		said := len(evs) > 0 && evs[len(evs)-1].Text() == "the end"
		if said == (err != nil) {
			t.Errorf("events %q, error %v", lines(evs), err)
		}
	}
}

// K5: an iteration that makes nothing but a picture has that as its result.
func TestPictureIsAResult(t *testing.T) {
	picture := &genai.Part{InlineData: &genai.Blob{MIMEType: "image/png", Data: []byte{0x89, 'P'}}}
	n := 0
	painter, err := agent.New(agent.Config{Name: "painter", Run: func(agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			n++
			ev := &session.Event{}
			ev.Content = &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{Text: "hm", Thought: true}, picture}}
			ev.Actions.StateDelta = map[string]any{"score": []int{5, 3}[n-1]}
			yield(ev, nil)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	root := loopOf(t, "refine", 2, func(c *loopagent.Config) {
		c.Rules.Score, c.OutputKey = &loop.Score{Key: "score"}, "result"
	}, painter)
	evs, err := play(t, root)
	if err != nil {
		t.Fatal(err)
	}
	last := evs[len(evs)-1]
	if last.Author != "refine" || len(last.Content.Parts) != 1 || last.Content.Parts[0].InlineData == nil {
		t.Errorf("the loop's last words are %+v", last)
	}
	if _, set := last.Actions.StateDelta["result"]; set {
		t.Error("an output key was written without words")
	}
}
