// SPDX-License-Identifier: Apache-2.0

package eval_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/artifact/disk"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/eval"
	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/sqlite"
	"github.com/refrain-dev/refrain/supervisor"
)

// newKeeper makes an agent that answers with what is left of earlier runs, and then leaves as much as an agent can.
func newKeeper(cfg agent.Config) (agent.Agent, error) {
	cfg.Run = func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			var found []string
			ev := session.NewEvent(ctx, ctx.InvocationID())
			ev.Actions.StateDelta = map[string]any{}
			for _, key := range []string{"app:kept", "user:kept"} {
				if v, err := ctx.Session().State().Get(key); err == nil {
					found = append(found, fmt.Sprint(key, "=", v))
				}
				ev.Actions.StateDelta[key] = "left"
			}
			list, err := ctx.Artifacts().List(ctx)
			if err == nil {
				found = append(found, list.FileNames...)
				_, err = ctx.Artifacts().Save(ctx, "user:file", genai.NewPartFromText("left"))
			}
			hits, searched := ctx.Memory().SearchMemory(ctx, "question")
			if searched == nil && len(hits.Memories) > 0 {
				found = append(found, "memory")
			}
			ev.Content = genai.NewContentFromText(strings.Join(found, " ")+".", genai.RoleModel)
			if err := errors.Join(err, searched, ctx.Memory().AddSessionToMemory(ctx, ctx.Session())); err != nil {
				yield(nil, err)
				return
			}
			yield(ev, nil)
		}
	}
	return agent.New(cfg)
}

// A case-run sees nothing that another run has left under app: or user:, among the files of the user or in the memory, and leaves nothing
// there. It begins with the state that its case has; the turns of one case-run share all of it.
func TestCaseRunsShareNothing(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		testShareNothing(t, session.InMemoryService(), artifact.InMemoryService())
	})
	t.Run("disk", func(t *testing.T) {
		dir := t.TempDir()
		store, err := sqlite.Open(t.Context(), dir+"/runs.db", sqlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		files, err := disk.Open(dir + "/files")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = files.Close() })
		testShareNothing(t, store, files)
	})
}

func testShareNothing(t *testing.T, store session.Service, files artifact.Service) {
	b := newBench(t, store, program.Code{Agents: map[string]definition.NewAgent{"keeper": newKeeper}}, func(cfg *supervisor.Config) {
		cfg.ArtifactService, cfg.MemoryService = files, memory.InMemoryService()
	})
	v := version(t, eval.SideA, "name: t\ntype: sequential\nsub_agents:\n  - {name: keep, func: keeper}\n")
	ordinary := func(want string) {
		t.Helper()
		p, err := program.Decode(mark.RunStarted{Program: v.Program})
		if err != nil {
			t.Fatal(err)
		}
		def, err := p.DefinitionFor(&b.Code)
		if err != nil {
			t.Fatal(err)
		}
		started, err := p.Started(def)
		if err != nil {
			t.Fatal(err)
		}
		run, err := b.Supervisor.Start(t.Context(), supervisor.Request{Started: started, Message: genai.NewContentFromText("question", genai.RoleUser)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := store.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: run.ID()})
		if err != nil {
			t.Fatal(err)
		}
		answer := ""
		for ev := range got.Session.Events().All() {
			if ev.Author == "keep" && ev.Content != nil {
				answer = ev.Text()
			}
		}
		if answer != want {
			t.Errorf("the ordinary run found %q, want %q", answer, want)
		}
	}
	ordinary(".")
	turn := func(expected string) check.Turn {
		return check.Turn{Input: "question", Checks: []check.Spec{{Kind: check.Equals, Texts: []string{expected}}}}
	}
	set := cases.Set{Repeat: 2, Parallel: 1, Cases: []check.Case{
		{ID: "empty", Turns: []check.Turn{turn(".")}},
		{ID: "state", State: map[string]any{"app:kept": "mine"}, Turns: []check.Turn{turn("app:kept=mine.")}},
		{ID: "turns", Turns: []check.Turn{turn("."), turn("app:kept=left user:kept=left user:file memory.")}},
	}}
	e := b.run(t, &eval.Plan{Set: set, Versions: []eval.Version{v}})
	for i := range e.Scored {
		if s := &e.Scored[i]; s.Error != "" || s.Grade.Passed == nil || !*s.Grade.Passed {
			t.Errorf("%s: %q %s", s.Run, s.Answer, s.Error)
		}
	}
	ordinary("app:kept=left user:kept=left user:file memory.")
	all, err := store.List(t.Context(), &session.ListRequest{AppName: "app"})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all.Sessions {
		if v, err := s.State().Get("app:kept"); err != nil || v != "left" {
			t.Errorf("the list has %s with app:kept=%v (%v)", s.ID(), v, err)
		}
	}
}
