// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/session"
)

// What a loop with ADK's two fields does: exactly what ADK's does.

// K10, B1, B2, A14, E2: a capped loop runs every sub-agent in order, n times.
func TestCappedLoopRepeatsItsSubAgentsInOrder(t *testing.T) {
	root := repeat(t, "refine", 2, says(t, "critic", "too long"), says(t, "editor", "cut", "done"))
	check(t, "events", mustPlay(t, root), []string{
		"critic: too long", "editor: cut", "editor: done",
		"critic: too long", "editor: cut", "editor: done",
	})
}

// K10, B3, T19: a loop without a limit goes on until its consumer has enough.
func TestInfiniteLoopRunsUntilTheConsumerBreaks(t *testing.T) {
	ran := 0
	root := repeat(t, "poll", 0, does(t, "look", func(_ agent.InvocationContext, say say) error {
		ran++
		say(words("nothing yet"))
		say(words("never said after the break"))
		return nil
	}))
	seen := 0
	for _, err := range newStage(t, root, false).Run(t.Context(), "ana", "s1", nil, agent.RunConfig{}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 199 {
			break
		}
	}
	check(t, "runs of the sub-agent", ran, 100)
}

// K10, T1, T2, T3, T16: an escalation, by whatever event, ends the loop and
// skips the later sub-agents.
func TestEscalationEndsTheLoop(t *testing.T) {
	root := repeat(t, "refine", 10,
		says(t, "critic", "hm"),
		turns(t, "judge", words("again"), escalate(words("good"))),
		says(t, "editor", "better"))
	check(t, "events", mustPlay(t, root), []string{
		"critic: hm", "judge: again", "editor: better", "critic: hm", "judge: good",
	})
}

// C2: what the escalating sub-agent says afterwards is still handed on.
func TestEscalatingSubAgentIsDrained(t *testing.T) {
	root := repeat(t, "refine", 0,
		does(t, "judge", func(_ agent.InvocationContext, say say) error {
			say(escalate(words("leaving")))
			say(words("a summary"))
			say(sets("", "verdict", "good"))
			return nil
		}),
		says(t, "editor", "never"))
	s := newStage(t, root, false)
	evs, err := s.send(t, t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	check(t, "events", lines(evs), []string{"judge: leaving", "judge: a summary", "judge: "})
	check(t, "state", s.state(t, "verdict"), any("good"))
}

// T32: the event itself still says Escalate, for whoever looks on.
func TestEscalationStaysVisible(t *testing.T) {
	evs, err := play(t, repeat(t, "refine", 0, turns(t, "judge", escalate(words("good")))))
	if err != nil {
		t.Fatal(err)
	}
	a := evs[0].Actions
	if !a.Escalate || a.Exit == nil || a.Exit.By != "judge" || a.Exit.HandledBy != "refine" || !a.Exit.Plain {
		t.Errorf("actions are %+v, exit %+v", a, a.Exit)
	}
}

// A durable run of such a loop has the same events, besides its marks: the result is in the stop record, and no
// event repeats it for later requests.
func TestDurableLoopOfADKAddsNoResult(t *testing.T) {
	for result, root := range map[string]func() agent.Agent{
		"a draft": func() agent.Agent { // a critic leaves
			return repeat(t, "refine", 5, says(t, "writer", "a draft"), turns(t, "critic", escalate(words("good"))))
		},
		"printed": func() agent.Agent {
			return sequence(t, "story", repeat(t, "outer", 2, repeat(t, "refine", 5, says(t, "writer", "a draft"),
				turns(t, "critic", escalate(words("good")), escalate(words("fine"))))), says(t, "printer", "printed"))
		},
		"weak": func() agent.Agent {
			return repeat(t, "refine", 0, says(t, "writer", "a draft"), turns(t, "critic", words("weak"), escalate(new(session.Event))))
		},
	} {
		evs, err := newStage(t, root(), true).send(t, t.Context(), "go")
		if err != nil {
			t.Fatal(err)
		}
		var fold progress.Fold
		for _, ev := range evs {
			fold.Add(ev)
		}
		evs = slices.DeleteFunc(evs, func(ev *session.Event) bool { return ev.Mark != nil && ev.Content == nil && !ev.Actions.AsksToLeave() })
		check(t, result, lines(evs), mustPlay(t, root()))
		check(t, "result", fold.Answer(), result)
	}
}

// E4: authors, branches, invocation and iteration of the events.
func TestEventsSayWhereTheyComeFrom(t *testing.T) {
	root := sequence(t, "story", repeat(t, "refine", 2, says(t, "critic", "x"), parallel(t, "panel", says(t, "judge", "y"))))
	evs, err := play(t, root)
	if err != nil {
		t.Fatal(err)
	}
	type where struct {
		Author, Branch string
		Address        session.Address
		Iteration      int
	}
	var got []where
	for _, ev := range evs {
		got = append(got, where{ev.Author, ev.Branch, ev.Address, ev.Iteration})
		if ev.InvocationID == "" || ev.InvocationID != evs[0].InvocationID || ev.Attempt != 1 {
			t.Errorf("event %+v", ev)
		}
	}
	check(t, "origins", got, []where{
		{"critic", "", "story/refine[1]/critic", 1},
		{"judge", "panel.judge", "story/refine[1]/panel/judge", 1},
		{"critic", "", "story/refine[2]/critic", 2},
		{"judge", "panel.judge", "story/refine[2]/panel/judge", 2},
	})
}

// C23: the counter belongs to a ranging, not to the agent or the sequence.
func TestRangingARunTwiceRunsItTwice(t *testing.T) {
	root := repeat(t, "refine", 3, says(t, "critic", "x"))
	seq := newStage(t, root, false).Run(t.Context(), "ana", "s1", nil, agent.RunConfig{})
	for range 2 {
		n := 0
		for _, err := range seq {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		check(t, "events", n, 3)
	}
}

// C23: nothing happens before somebody ranges.
func TestRunIsLazy(t *testing.T) {
	ran := false
	root := repeat(t, "refine", 1, does(t, "critic", func(agent.InvocationContext, say) error {
		ran = true
		return nil
	}))
	seq := root.Run(drive.NewInvocation(t.Context(), drive.Invocation{ID: "e", Session: session.NewView(session.ViewConfig{})}))
	if ran {
		t.Error("ran before it was ranged over")
	}
	for range seq {
	}
	if !ran {
		t.Error("did not run")
	}
}

// A step that keeps its events and says them again asks to leave each time.
func TestEscalationSaidAgainWorksAgain(t *testing.T) {
	kept := escalate(words("good"))
	root := repeat(t, "refine", 3, does(t, "judge", func(_ agent.InvocationContext, say say) error {
		say(kept)
		return nil
	}))
	s := newStage(t, root, false)
	for range 3 {
		evs, err := s.send(t, t.Context(), "go")
		if err != nil {
			t.Fatal(err)
		}
		check(t, "events", lines(evs), []string{"judge: good"})
	}
}

// A8, A9, A10: the Run function of a loop is its own.
func TestNewRefusesARunFunction(t *testing.T) {
	_, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{
		Name: "refine", SubAgents: []agent.Agent{says(t, "critic", "x")},
		Run: func(agent.InvocationContext) iter.Seq2[*session.Event, error] { return nil },
	}})
	if err == nil || !strings.Contains(err.Error(), "LoopAgent doesn't allow custom Run implementations") {
		t.Errorf("error %v", err)
	}
}

// A7, A11: kind and configuration can be looked up while it runs.
func TestConfigIsThereForIntrospection(t *testing.T) {
	var most uint
	root := loopOf(t, "refine", 7, func(c *loopagent.Config) {
		c.AgentConfig.Description = "makes it better"
		c.AgentConfig.BeforeAgentCallbacks = []agent.BeforeAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
			most = ctx.Agent().(*loopagent.Agent).Config().MaxIterations
			return nil, nil
		}}
	}, turns(t, "judge", escalate(words("good"))))
	mustPlay(t, root)
	check(t, "MaxIterations", most, 7)
	check(t, "type", agent.TypeOf(root), agent.TypeLoop)
	check(t, "description", root.Description(), "makes it better")
	if root.FindAgent("refine") != root || root.FindSubAgent("judge") == nil {
		t.Error("the agent does not find itself or its sub-agent")
	}
}

// A12, A13, A29: any kind of agent can be repeated, a stranger's too.
func TestAnyKindOfAgentCanBeASubAgent(t *testing.T) {
	root := repeat(t, "outer", 2,
		says(t, "custom", "c"),
		sequence(t, "seq", says(t, "s1", "a"), says(t, "s2", "b")),
		parallel(t, "par", says(t, "p1", "p")),
		repeat(t, "inner", 2, says(t, "i1", "i")),
		stranger("foreign"))
	once := []string{"custom: c", "s1: a", "s2: b", "p1: p", "i1: i", "i1: i", "foreign: hello"}
	check(t, "events", mustPlay(t, root), slices.Concat(once, once))
}

// stranger is an agent that owes nothing to package agent.
type stranger string

func (s stranger) Name() string        { return string(s) }
func (s stranger) Description() string { return "" }
func (s stranger) Run(agent.InvocationContext) iter.Seq2[*session.Event, error] {
	return func(yield func(*session.Event, error) bool) { yield(words("hello"), nil) }
}
func (s stranger) SubAgents() []agent.Agent          { return nil }
func (s stranger) FindAgent(name string) agent.Agent { return agent.Find(s, name) }
func (s stranger) FindSubAgent(string) agent.Agent   { return nil }

// B8: a step before the loop runs once, and the pipeline goes on after it.
func TestPipelineGoesOnAfterTheLoop(t *testing.T) {
	root := sequence(t, "story",
		says(t, "writer", "draft"),
		repeat(t, "refine", 5, says(t, "critic", "hm"), turns(t, "editor", words("v2"), escalate(words("fine")))),
		says(t, "printer", "printed"))
	check(t, "events", mustPlay(t, root), []string{
		"writer: draft", "critic: hm", "editor: v2", "critic: hm", "editor: fine", "printer: printed",
	})
}

// Concurrent runs of one agent do not share a counter.
func TestOneLoopServesManyRunsAtOnce(t *testing.T) {
	s := newStage(t, repeat(t, "refine", 5, says(t, "critic", "x")), false)
	counts := make(chan int)
	for i := range 8 {
		go func() {
			n := 0
			for range s.Run(context.Background(), "ana", string(rune('a'+i)), nil, agent.RunConfig{}) {
				n++
			}
			counts <- n
		}()
	}
	for range 8 {
		check(t, "events", <-counts, 5)
	}
}
