// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"context"
	"fmt"
	"iter"
	"log"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// A run is started, forked behind its first iteration, and the fork goes on.
func Example() {
	say, err := agent.New(agent.Config{Name: "say", Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			ev := session.NewEvent(ctx, ctx.InvocationID())
			ev.Content = genai.NewContentFromText("said by "+string(drive.At(ctx).Address()), genai.RoleModel)
			yield(ev, nil)
		}
	}})
	if err != nil {
		log.Fatal(err)
	}
	root, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "talk", SubAgents: []agent.Agent{say}}, MaxIterations: 2})
	if err != nil {
		log.Fatal(err)
	}
	sup, err := supervisor.New(supervisor.Config{
		Service: session.InMemoryService(), AppName: "app", UserID: "ana",
		Build: func(context.Context, mark.RunStarted) (*supervisor.Program, error) {
			return &supervisor.Program{Agent: root}, nil
		},
		OnEvent: func(_ string, ev *session.Event) {
			if ev.Text() != "" {
				fmt.Println(ev.Text())
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer sup.Close(ctx)
	run, err := sup.Start(ctx, supervisor.Request{Message: genai.NewContentFromText("Go", genai.RoleUser)})
	if err != nil {
		log.Fatal(err)
	}
	end, err := run.Wait(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(end.Run.Status, end.Run.Stop)

	fork, err := sup.Fork(ctx, run.ID(), supervisor.Checkpoint{Iteration: 1})
	if err != nil {
		log.Fatal(err)
	}
	again, err := sup.Resume(ctx, fork, supervisor.ResumeOptions{})
	if err != nil {
		log.Fatal(err)
	}
	if end, err = again.Wait(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(end.Run.Status, end.Run.Parent.SessionID == run.ID())
	// Output:
	// said by talk[1]/say
	// said by talk[2]/say
	// completed max_iterations
	// said by talk[2]/say
	// completed true
}
