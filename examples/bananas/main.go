// SPDX-License-Identifier: Apache-2.0

// Bananas paints pictures until there are exactly five bananas in one. It is a program of one's own: every verb of
// refrain, with two tools and an agent in Go. The tools paint and count for real, offline.
//
//	go run ./examples/bananas run bananas                          # with a scripted model
//	go run ./examples/bananas run bananas --model openai/gpt-5-mini
//	go run ./examples/bananas show last
//	go run ./examples/bananas serve
package main

import (
	"embed"
	"log"
	"os"

	"github.com/refrain-dev/refrain/command"
)

//go:embed loop.yaml script.yaml
var files embed.FS

func main() {
	generate, count, err := newTools(newStudio(7))
	if err != nil {
		log.Fatal(err)
	}
	os.Exit(command.Main(
		command.Tool(generate, count),
		command.NewAgent("examiner", newExaminer),
		command.DefinitionFS(files, "loop.yaml"),
	))
}
