// SPDX-License-Identifier: Apache-2.0

// Document writes a short text and improves it: a writer writes it once, then a
// critic and a refiner take turns, at most five times, until the refiner calls
// exitLoop. It is ADK's example of a loop agent, on this project's packages.
//
//	go run ./examples/document                             # with a scripted model
//	go run ./examples/document -model openai/gpt-5-mini "Write a document about a dog"
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
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/provider"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

const (
	appName    = "IterativeWriter"
	userID     = "ana"
	stateDoc   = "current_document"
	stateCrit  = "criticism"
	donePhrase = "No major issues found."
)

//go:embed script.yaml
var script []byte

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "document:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("document", flag.ContinueOnError)
	flags.SetOutput(stderr)
	name := flags.String("model", "", "ask this model, as `provider/name`; by default a scripted one")
	if err := flags.Parse(args); err != nil {
		return err
	}
	prompt := "Write a document about a cat"
	if flags.NArg() > 0 {
		prompt = flags.Arg(0)
	}
	llm, err := openModel(ctx, *name, getenv)
	if err != nil {
		return err
	}
	exitLoop, err := newExitLoop(stdout)
	if err != nil {
		return err
	}
	return runAgent(ctx, llm, exitLoop, session.InMemoryService(), prompt, stdout)
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

// ExitLoopArgs are what the model may say when it ends the loop.
type ExitLoopArgs struct {
	Reason string `json:"reason,omitempty" jsonschema:"why the loop ends, in a sentence"`
}

// ExitLoopResults are what it is answered: nothing.
type ExitLoopResults struct{}

// newExitLoop returns the tool that ends the loop by setting Escalate. Package
// exitlooptool has one that is ready made.
func newExitLoop(out io.Writer) (tool.Tool, error) {
	return functiontool.New(functiontool.Config{
		Name:        "exitLoop",
		Description: "Call this function ONLY when the critique indicates no further changes are needed.",
	}, func(ctx tool.Context, in ExitLoopArgs) (ExitLoopResults, error) {
		fmt.Fprintf(out, "[Tool Call] exitLoop triggered by %s \n", ctx.AgentName())
		ctx.Actions().Escalate = true
		ctx.Actions().Exit = &session.Exit{By: ctx.AgentName(), Reason: in.Reason}
		return ExitLoopResults{}, nil
	})
}

// runAgent asks the agents and prints what they say.
func runAgent(ctx context.Context, llm model.LLM, exitLoop tool.Tool, svc session.Service, prompt string,
	out io.Writer) error {
	root, err := newPipeline(llm, exitLoop)
	if err != nil {
		return err
	}
	r, err := runner.New(runner.Config{AppName: appName, Agent: root, SessionService: svc})
	if err != nil {
		return fmt.Errorf("make the runner: %w", err)
	}
	made, err := svc.Create(ctx, &session.CreateRequest{AppName: appName, UserID: userID, SessionID: "s1"})
	if err != nil {
		return fmt.Errorf("make a session: %w", err)
	}
	id := made.Session.ID()
	for ev, err := range r.Run(ctx, userID, id, genai.NewContentFromText(prompt, genai.RoleUser), agent.RunConfig{StreamingMode: agent.StreamingModeNone}) {
		if err != nil {
			return fmt.Errorf("run the agents: %w", err)
		}
		if text := ev.Text(); text != "" {
			fmt.Fprintf(out, "[%s] %s\n", ev.Author, text)
		}
		if x := ev.Actions.Exit; x != nil {
			fmt.Fprintf(out, "[%s] the loop ends in iteration %d: %s\n", x.By, ev.Iteration, x.Reason)
		}
	}
	got, err := svc.Get(ctx, &session.GetRequest{AppName: appName, UserID: userID, SessionID: id})
	if err != nil {
		return err
	}
	doc, err := got.Session.State().Get(stateDoc)
	if err != nil {
		return fmt.Errorf("read %s: %w", stateDoc, err)
	}
	fmt.Fprintf(out, "\n%s:\n%v\n", stateDoc, doc)
	return nil
}
