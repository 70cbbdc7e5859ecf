// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// A start and a resume over HTTP each make the agents of the run once.
func TestAgentsAreMadeOnce(t *testing.T) {
	var made atomic.Int64
	source := program.Text("name: climb\nmax_iterations: 1\nsub_agents: [{name: climb_on, func: climber}]\n")
	r, err := New(Config{Service: session.InMemoryService(), AppName: "app", UserID: "ana", Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler),
		Code: program.Code{Name: "test", Sources: []program.Source{source}, Agents: map[string]definition.NewAgent{
			"climber": func(cfg agent.Config) (agent.Agent, error) {
				made.Add(1)
				cfg.Run = func(agent.InvocationContext) iter.Seq2[*session.Event, error] {
					return func(func(*session.Event, error) bool) {}
				}
				return agent.New(cfg)
			}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(r.Close(context.Background()), r.Folder.Close()); err != nil {
			t.Error(err)
		}
	}()
	ended := func(what, id string) {
		t.Helper()
		if run, err := r.Supervisor.Wait(t.Context(), id); err != nil || run.Status != mark.RunCompleted {
			t.Fatalf("%s: %s, %v", what, run.Status, err)
		}
		if n := made.Swap(0); n != 1 {
			t.Errorf("%s: the agents are made %d times", what, n)
		}
	}
	req := &StartRequest{StartArgs: StartArgs{Definition: "climb"}}
	if _, err := r.Start(t.Context(), req, "", nil); err != nil {
		t.Fatal(err)
	}
	ended("start", req.ID)
	if err := r.Resume(t.Context(), req.ID, &ResumeRequest{AddIterations: 1}); err != nil {
		t.Fatal(err)
	}
	ended("resume with another limit", req.ID)
}
