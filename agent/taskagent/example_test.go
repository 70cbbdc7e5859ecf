// SPDX-License-Identifier: Apache-2.0

package taskagent_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/runner"
)

// show runs an agent and prints what it says, does and asks for.
func show(a agent.Agent, err error, input string) {
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := runner.NewInMemory("example", a)
	if err != nil {
		fmt.Println(err)
		return
	}
	for ev, err := range r.Run(context.Background(), "ana", "s1", genai.NewContentFromText(input, genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if text := ev.Text(); text != "" {
			fmt.Printf("%s: %s\n", ev.Author, text)
		}
		if len(ev.Actions.StateDelta) > 0 {
			fmt.Println(ev.Actions.StateDelta)
		}
		if ev.Actions.Exit != nil {
			fmt.Println("exit:", ev.Actions.Exit.Reason)
		}
	}
}

func ExampleNewText() {
	a, err := taskagent.NewText(taskagent.TextConfig{
		Config: taskagent.Config{Name: "brief", OutputKey: "brief"},
		Text:   "Write a document about {{user_input}}.",
	})
	show(a, err, "a cat")
	// Output:
	// brief: Write a document about a cat.
	// map[brief:Write a document about a cat.]
}

func ExampleNewExpression() {
	count, err := taskagent.NewExpression(taskagent.ExpressionConfig{
		Config: taskagent.Config{
			Name:       "count",
			ExitWhen:   "state.total > 20",
			ExitReason: "{{result.total}} is more than 20",
		},
		Set: map[string]string{"total": "state.?total.orValue(0) + 10 * iteration"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	again, err := loopagent.New(loopagent.Config{
		AgentConfig: agent.Config{Name: "again", SubAgents: []agent.Agent{count}},
	})
	show(again, err, "Count.")
	// Output:
	// map[total:10]
	// map[total:30]
	// exit: 30 is more than 20
}

func ExampleNewHTTP() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"asked": %q}`, r.URL.Query().Get("q"))
	}))
	defer server.Close()

	a, err := taskagent.NewHTTP(taskagent.HTTPConfig{
		Config: taskagent.Config{Name: "search", OutputKey: "found"},
		URL:    server.URL + "/search?q={{user_input}}",
		JSON:   true,
	})
	show(a, err, "cats & dogs")
	// Output:
	// search: {"asked": "cats & dogs"}
	// map[found:map[asked:cats & dogs]]
}
