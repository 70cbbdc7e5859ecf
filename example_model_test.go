// SPDX-License-Identifier: Apache-2.0

package refrain_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/refrain-dev/refrain"
	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/exitlooptool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

func Example_model() {
	ctx := context.Background()
	llm, err := scripted.New(scripted.Script{Answers: []scripted.Answer{
		{Calls: []scripted.Call{{Name: "count_words", Args: map[string]any{"text": "A cat."}}}},
		{Text: "A cat sat."},
		{Calls: []scripted.Call{{Name: "exit_loop", Args: map[string]any{"reason": "three words"}}}},
	}})
	if err != nil {
		log.Fatal(err)
	}
	type text struct {
		Text string `json:"text"`
	}
	count, err := functiontool.New(functiontool.Config{Name: "count_words", Description: "Counts the words of a text."},
		func(_ tool.Context, in text) (int, error) { return len(strings.Fields(in.Text)), nil })
	if err != nil {
		log.Fatal(err)
	}
	exit, err := exitlooptool.New()
	if err != nil {
		log.Fatal(err)
	}
	writer, err := llmagent.New(llmagent.Config{
		Name: "writer", Model: llm, OutputKey: "story", Tools: []tool.Tool{count, exit},
		Instruction: "Write a story of three words. Leave the loop when it has them: {story}",
	})
	if err != nil {
		log.Fatal(err)
	}
	root, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "refine", SubAgents: []agent.Agent{writer}}, MaxIterations: 5})
	if err != nil {
		log.Fatal(err)
	}
	res, err := refrain.Run(ctx, root, "a story")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.State["story"], "-", res.Stop.Reason)
	// Output:
	// A cat sat. - exit_loop
}
