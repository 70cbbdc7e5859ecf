// SPDX-License-Identifier: Apache-2.0

// Console ends in the launcher.
package main

import (
	"context"
	"log"
	"os"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/cmd/launcher"
	"google.golang.org/adk/cmd/launcher/full"
	"google.golang.org/adk/session"

	"example.com/programs/say"
)

func main() {
	ctx := context.Background()
	root := say.Must(llmagent.New(llmagent.Config{Name: "helper", Model: say.Model(ctx), Instruction: "Help."}))
	config := &launcher.Config{SessionService: session.InMemoryService(), AgentLoader: agent.NewSingleLoader(root)}
	l := full.NewLauncher()
	if err := l.Execute(ctx, config, os.Args[1:]); err != nil {
		log.Fatalf("%v\n\n%s", err, l.CommandLineSyntax())
	}
}
