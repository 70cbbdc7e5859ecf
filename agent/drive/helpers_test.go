// SPDX-License-Identifier: Apache-2.0

package drive_test

import (
	"context"
	"iter"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
)

type yield = func(*session.Event, error) bool

// body is an agent's Run from what it pushes.
func body(run func(agent.InvocationContext, yield)) func(agent.InvocationContext) iter.Seq2[*session.Event, error] {
	return func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) { run(ctx, yield) }
	}
}

func must(t testing.TB, cfg agent.Config) agent.Agent {
	t.Helper()
	a, err := agent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// custom is an agent that does what run does.
func custom(t testing.TB, name string, run func(agent.InvocationContext, yield), subs ...agent.Agent) agent.Agent {
	t.Helper()
	return must(t, agent.Config{Name: name, Run: body(run), SubAgents: subs})
}

// speaker is an agent that says some words.
func speaker(t testing.TB, name string, words ...string) agent.Agent {
	t.Helper()
	return custom(t, name, func(_ agent.InvocationContext, yield yield) {
		for _, word := range words {
			if !yield(says(word), nil) {
				return
			}
		}
	})
}

func says(text string) *session.Event {
	ev := &session.Event{}
	ev.Content = genai.NewContentFromText(text, genai.RoleModel)
	return ev
}

// invocation is what a runner would start with.
func invocation(ctx context.Context) agent.InvocationContext {
	return drive.NewInvocation(ctx, drive.Invocation{
		ID: "e-1", Session: session.NewView(session.ViewConfig{AppName: "app", UserID: "ana", SessionID: "s1"}),
		UserContent: genai.NewContentFromText("Hello", genai.RoleUser),
	})
}

// collect takes all that a run yields; errors come after events.
func collect(seq iter.Seq2[*session.Event, error]) (events []*session.Event, errs []error) {
	for ev, err := range seq {
		if ev != nil {
			events = append(events, ev)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return events, errs
}

// texts is what was said, with who said it.
func texts(events []*session.Event) []string {
	all := []string{}
	for _, ev := range events {
		all = append(all, ev.Author+": "+ev.Text())
	}
	return all
}

func addresses(events []*session.Event) []session.Address {
	all := []session.Address{}
	for _, ev := range events {
		all = append(all, ev.Address)
	}
	return all
}
