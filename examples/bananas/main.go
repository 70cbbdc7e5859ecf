// SPDX-License-Identifier: Apache-2.0

// Bananas paints pictures until there are exactly five bananas in one. It has
// two tools, one that paints and one that counts; both do it for real, offline.
//
//	go run ./examples/bananas                              # with a scripted model
//	go run ./examples/bananas -out pictures -seed 1
//	go run ./examples/bananas -model openai/gpt-5-mini
//	go run ./examples/bananas -definition examples/bananas/loop.yaml
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/artifact/disk"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/provider"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
)

const appName, userID, sessionID = "bananas", "ana", "s1"

//go:embed script.yaml
var script []byte

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "bananas:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("bananas", flag.ContinueOnError)
	flags.SetOutput(stderr)
	name := flags.String("model", "", "ask this model, as `provider/name`; by default a scripted one")
	file := flags.String("definition", "", "build the agents from this `file` instead of from agents.go")
	out := flags.String("out", "", "keep the pictures in this `folder`")
	seed := flags.Uint64("seed", 7, "paint other pictures")
	if err := flags.Parse(args); err != nil {
		return err
	}
	llm, err := openModel(ctx, *name, getenv)
	if err != nil {
		return err
	}
	tools, err := newTools(newStudio(*seed))
	if err != nil {
		return err
	}
	root, err := newAgents(ctx, *file, llm, tools)
	if err != nil {
		return err
	}
	files := artifact.InMemoryService()
	if *out != "" {
		folder, err := disk.Open(*out)
		if err != nil {
			return err
		}
		defer folder.Close()
		files = folder
	}
	_, err = paintUntilRight(ctx, root, files, stdout)
	return err
}

func openModel(ctx context.Context, name string, getenv func(string) string) (model.LLM, error) {
	if name != "" {
		return provider.Open(ctx, name, getenv)
	}
	s, err := scripted.Parse(script)
	if err != nil {
		return nil, err
	}
	return scripted.New(s)
}

// newAgents makes the loop, from a definition if there is a file.
func newAgents(ctx context.Context, file string, llm model.LLM, tools []tool.Tool) (agent.Agent, error) {
	if file == "" {
		return newLoop(llm, tools)
	}
	def, err := definition.Load(file)
	if err != nil {
		return nil, err
	}
	return def.Build(ctx, definition.BuildConfig{
		Tools: tools, DefaultModel: llm.Name(),
		Model: func(context.Context, string) (model.LLM, error) { return llm, nil },
	})
}

// paintUntilRight runs the loop and prints what happens. It returns the run's
// events.
func paintUntilRight(ctx context.Context, root agent.Agent, files artifact.Service,
	out io.Writer) ([]*session.Event, error) {
	r, err := runner.New(runner.Config{
		AppName: appName, Agent: root, SessionService: session.InMemoryService(), ArtifactService: files,
		AutoCreateSession: true, Durable: true,
	})
	if err != nil {
		return nil, fmt.Errorf("make the runner: %w", err)
	}
	asked := genai.NewContentFromText("A picture with five bananas", genai.RoleUser)
	start := runner.WithStateDelta(map[string]any{wanted: 5, counted: 0})
	var events []*session.Event
	var fold progress.Fold
	for ev, err := range r.Run(ctx, userID, sessionID, asked, agent.RunConfig{}, start) {
		if err != nil {
			return events, err
		}
		events = append(events, ev)
		for _, line := range fold.Add(ev) {
			fmt.Fprintln(out, line)
		}
		if text := ev.Text(); text != "" {
			fmt.Fprintf(out, "[%s] %s\n", ev.Author, text)
		}
		if n := ev.Actions.StateDelta[counted]; n != nil && ev.Author != "user" {
			fmt.Fprintf(out, "[%s] counted %v\n", ev.Author, n)
		}
		for name, version := range ev.Actions.ArtifactDelta {
			fmt.Fprintf(out, "[%s] saved %s, version %d\n", ev.Author, name, version)
		}
	}
	last, err := files.GetArtifactVersion(ctx, &artifact.GetArtifactVersionRequest{
		AppName: appName, UserID: userID, SessionID: sessionID, FileName: pictureFile,
	})
	if err == nil && last.ArtifactVersion.CanonicalURI != "" {
		fmt.Fprintln(out, last.ArtifactVersion.CanonicalURI)
	}
	return events, nil
}
