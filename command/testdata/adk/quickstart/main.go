// SPDX-License-Identifier: Apache-2.0

// Quickstart is an agent with a tool.
package main

import (
	"context"
	"strings"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/tool"
	"google.golang.org/adk/tool/functiontool"

	"example.com/programs/say"
)

type city struct {
	Name string `json:"name"`
}

type report struct {
	Sky string `json:"sky"`
}

func main() {
	ctx := context.Background()
	weather := say.Must(functiontool.New(functiontool.Config{Name: "weather", Description: "Tells the weather in a city."},
		func(tc agent.ToolContext, in city) (report, error) {
			return report{"cloudy over " + in.Name}, tc.State().Set("asked", strings.ToUpper(in.Name))
		}))
	var root agent.Agent = say.Must(llmagent.New(llmagent.Config{
		Name: "weatherman", Model: say.Model(ctx), Description: "Knows the weather.",
		Instruction: "Answer with the weather.", Tools: []tool.Tool{weather},
	}))
	s := say.Run(ctx, runner.Config{}, root, "How is the weather in Oslo?")
	asked := say.Must(s.State().Get("asked"))
	if asked != "OSLO" {
		panic(asked)
	}
}
