// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"context"
	"iter"
	"slices"
	"sync"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/sequentialagent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// LOOP 31, LOOP 33: the IDs of calls travel with a log that is copied into another
// session. A fork has new ones only for steps that have not begun.
func TestCallIDsTravelWithTheRun(t *testing.T) {
	var mu sync.Mutex
	ids := make(map[string][]string) // by agent
	calls := func(name string) agent.Agent {
		a, err := agent.New(agent.Config{Name: name, Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				mu.Lock()
				ids[name] = append(ids[name], drive.At(ctx).CallID())
				mu.Unlock()
				yield(&session.Event{}, nil)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	build := func(context.Context, mark.RunStarted) (*supervisor.Program, error) {
		root, err := sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{Name: "root", SubAgents: []agent.Agent{calls("first"), calls("second")}}})
		return &supervisor.Program{Agent: root}, err
	}
	store := session.InMemoryService()
	sup, err := supervisor.New(supervisor.Config{Service: store, AppName: "a", UserID: "u", Build: build})
	if err != nil {
		t.Fatal(err)
	}
	defer sup.Close(context.Background())
	old, err := sup.Start(t.Context(), supervisor.Request{SessionID: "old"})
	if err != nil {
		t.Fatal(err)
	}
	completed(t, old)
	whole := func(id string) []*session.Event {
		got, err := store.Get(t.Context(), &session.GetRequest{AppName: "a", UserID: "u", SessionID: id})
		if err != nil {
			t.Fatal(err)
		}
		return slices.Collect(got.Session.(*session.View).Log().All())
	}
	began := slices.IndexFunc(whole("old"), func(ev *session.Event) bool {
		return ev.Mark != nil && ev.Mark.Kind == mark.KindStepStarted && ev.Address == "root/first"
	}) + 1
	// The process died when the first step had begun, and the log went elsewhere.
	made, err := store.Create(t.Context(), &session.CreateRequest{AppName: "a", UserID: "u", SessionID: "copy"})
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range whole("old")[:began] {
		c := *ev
		if err := store.AppendEvent(t.Context(), made.Session, &c); err != nil {
			t.Fatal(err)
		}
	}
	fork, err := sup.Fork(t.Context(), "copy", supervisor.Checkpoint{Seq: int64(began)})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"copy", fork} {
		r, err := sup.Resume(t.Context(), id, supervisor.ResumeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		completed(t, r)
	}
	if got := ids["first"]; len(got) != 3 || got[1] != got[0] || got[2] != got[0] {
		t.Errorf("the step that had begun is called %q, want one ID", got)
	}
	if got := ids["second"]; len(got) != 3 || got[1] != got[0] || got[2] == got[0] {
		t.Errorf("the step that had not begun is called %q, want another ID in the fork alone", got)
	}
}
