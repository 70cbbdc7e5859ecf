// SPDX-License-Identifier: Apache-2.0

package temporal_test

import (
	"context"
	"fmt"
	"iter"
	"log"
	"testing"

	"go.temporal.io/sdk/client"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
	"github.com/refrain-dev/refrain/temporal"
)

// greeter is an agent that is written in Go.
func greeter() (agent.Agent, error) {
	return agent.New(agent.Config{Name: "greeter", Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			ev := session.NewEvent(ctx, ctx.InvocationID())
			ev.Content = genai.NewContentFromText("Hello, "+ctx.UserContent().Parts[0].Text, genai.RoleModel)
			ev.Actions.StateDelta["greeted"] = true
			yield(ev, nil)
		}
	}})
}

// agents are those that runs can name.
var agents = map[string]func() (agent.Agent, error){"greeter": greeter}

// build finds the agents of a run by its name; runs of definitions have a program instead.
func build(ctx context.Context, started mark.RunStarted) (*supervisor.Program, error) {
	if started.Program != nil {
		return program.Rebuild(program.Env{})(ctx, started)
	}
	made, ok := agents[started.Name]
	if !ok {
		return nil, fmt.Errorf("this worker has no agent %q", started.Name)
	}
	root, err := made()
	if err != nil {
		return nil, err
	}
	return &supervisor.Program{Agent: root}, nil
}

// A worker has agents that are written in Go. Runs name them.
func ExampleNewWorker_agents() {
	var (
		ctx   context.Context
		c     client.Client
		store session.Service
	)
	cfg := supervisor.Config{Service: store, AppName: "refrain", UserID: "user", Build: build}
	w, err := temporal.NewWorker(c, temporal.Config{Supervisor: cfg})
	if err != nil {
		log.Fatal(err)
	}
	go func() { log.Print(w.Run(ctx)) }()

	sup, err := supervisor.New(cfg) // of the process that starts runs
	if err != nil {
		log.Fatal(err)
	}
	id, err := temporal.Start(ctx, c, sup, supervisor.Request{
		Message: genai.NewContentFromText("Ana", genai.RoleUser), Started: mark.RunStarted{Name: "greeter"},
	}, temporal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(id)
}

// E5: agents that are written in Go are found by name on the worker. A name that it does not have pauses
// the run, with the reason.
func TestAgentsOfGo(t *testing.T) {
	c := newCluster(t)
	c.worker("w1", func(cfg *temporal.Config) { cfg.Supervisor.Build = build })
	start := func(name string) string {
		id, err := temporal.Start(t.Context(), c.Client, c.sup, supervisor.Request{
			Message: genai.NewContentFromText("Ana", genai.RoleUser), Started: mark.RunStarted{Name: name},
		}, temporal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	id := start("greeter")
	if st, err := c.result(id); err != nil || st.Status != mark.RunCompleted {
		t.Fatalf("the run is %+v, %v", st, err)
	}
	if got := c.state(id, "greeted"); got != true {
		t.Errorf("the agent of the run has not run: greeted is %v", got)
	}
	c.stands(start("nobody"), mark.RunIsPaused)
	id = c.start("name: counts\nstate: {n: 0}\nmax_iterations: 1\nsub_agents: [{name: inc, set: {n: state.n + 1}}]\n")
	if st, err := c.result(id); err != nil || st.Status != mark.RunCompleted {
		t.Errorf("a run of a definition is %+v, %v", st, err)
	}
}
