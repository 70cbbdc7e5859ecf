// SPDX-License-Identifier: Apache-2.0

// Moved is a program as users of ADK write them: agents in Go, and a main that ends in launcher.Execute.
package main

import (
	"context"
	"fmt"
	"iter"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/cmd/launcher"
	"github.com/refrain-dev/refrain/cmd/launcher/console"
	"github.com/refrain-dev/refrain/cmd/launcher/full"
	"github.com/refrain-dev/refrain/cmd/launcher/universal"
	"github.com/refrain-dev/refrain/cmd/launcher/web"
	"github.com/refrain-dev/refrain/cmd/launcher/web/a2a"
	"github.com/refrain-dev/refrain/cmd/launcher/web/api"
	"github.com/refrain-dev/refrain/cmd/launcher/web/webui"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/plugin"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

func main() {
	ctx := context.Background()
	agents := map[string]agent.Agent{"helper": helper(), "count up": counter(), "refine": refiner()}
	root := agents[os.Getenv("MOVED_ROOT")]
	if root == nil {
		root = agents["helper"]
	}
	var others []agent.Agent
	for _, a := range agents {
		if a.Name() != root.Name() {
			others = append(others, a)
		}
	}
	loader, err := agent.NewMultiLoader(root, others...)
	if err != nil {
		log.Fatal(err)
	}
	config := &launcher.Config{AgentLoader: loader}
	switch where := os.Getenv("MOVED_STORE"); where {
	case "":
	case "memory":
		config.SessionService = session.InMemoryService()
	default:
		store, err := sqlite.Open(ctx, where, sqlite.Config{})
		if err != nil {
			log.Fatal(err)
		}
		defer store.Close()
		config.SessionService = store
	}
	if os.Getenv("MOVED_PLUGIN") != "" {
		stuck := must(plugin.New(plugin.Config{Name: "stuck", CloseFunc: func() error { select {} }}))
		config.PluginConfig = runner.PluginConfig{Plugins: []*plugin.Plugin{stuck}, CloseTimeout: 100 * time.Millisecond}
	}
	l := full.NewLauncher()
	if os.Getenv("MOVED_GREETS") != "" {
		l = universal.NewLauncher(console.NewLauncher(),
			web.NewLauncher(webui.NewLauncher(), a2a.NewLauncher(), api.NewLauncher(), greeter{}))
	}
	if err := l.Execute(ctx, config, os.Args[1:]); err != nil {
		log.Fatalf("run failed: %v\n\n%s", err, l.CommandLineSyntax())
	}
}

// helper asks a model, whose script it is, and has a tool that needs a person's consent.
func helper() agent.Agent {
	llm := must(scripted.New(scripted.Script{Name: "script", Answers: []scripted.Answer{
		{MatchRequest: "answer remove", Text: "It is gone.", Repeat: true},
		{MatchRequest: "remove the file", Calls: []scripted.Call{{Name: "remove", Args: map[string]any{"file": "a.txt"}}}},
		{MatchRequest: "Ana", Match: "who am I", Text: "You are Ana.", Repeat: true},
		{Text: "Hello to you.", Chunks: []string{"Hello ", "to ", "you."}, Repeat: true},
	}}))
	type in struct {
		File string `json:"file"`
	}
	remove := must(functiontool.New(functiontool.Config{Name: "remove", Description: "Removes a file.", RequireConfirmation: true},
		func(_ tool.Context, in in) (string, error) { return "removed " + in.File, note("removed " + in.File) }))
	return must(llmagent.New(llmagent.Config{Name: "helper", Description: "Helps.", Model: llm, Tools: []tool.Tool{remove}}))
}

// counter is a loop of four iterations. With MOVED_HOLD its step says "holding" in the third, and does not end.
func counter() agent.Agent {
	step := must(agent.New(agent.Config{Name: "step", Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			n := 1.0
			if v, err := ctx.Session().State().Get("n"); err == nil {
				n = v.(float64) + 1
			}
			if os.Getenv("MOVED_HOLD") != "" && n == 3 {
				fmt.Fprintln(os.Stderr, "holding")
				<-ctx.Done()
				yield(nil, context.Cause(ctx))
				return
			}
			if err := note(fmt.Sprint("step ", n)); err != nil {
				yield(nil, err)
				return
			}
			ev := session.NewEvent(ctx, ctx.InvocationID())
			ev.Content = genai.NewContentFromText(fmt.Sprint("number ", n), genai.RoleModel)
			ev.Actions.StateDelta["n"] = n
			yield(ev, nil)
		}
	}}))
	return must(loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "count up", SubAgents: []agent.Agent{step}}, MaxIterations: 4}))
}

// refiner is a loop whose critic leaves it, and which has ADK's two fields alone.
func refiner() agent.Agent {
	says := func(name, text string, leaves bool) agent.Agent {
		return must(agent.New(agent.Config{Name: name, Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				ev := session.NewEvent(ctx, ctx.InvocationID())
				ev.Content, ev.Actions.Escalate = genai.NewContentFromText(text, genai.RoleModel), leaves
				yield(ev, nil)
			}
		}}))
	}
	return must(loopagent.New(loopagent.Config{MaxIterations: 3, AgentConfig: agent.Config{
		Name: "refine", SubAgents: []agent.Agent{says("writer", "A draft.", false), says("critic", "Good.", true)},
	}}))
}

// note writes down what was done.
func note(what string) error {
	f, err := os.OpenFile("done", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, what)
	return err
}

// greeter is a sublauncher of the program's own.
type greeter struct{}

func (greeter) Keyword() string                       { return "greet" }
func (greeter) Parse(args []string) ([]string, error) { return args, nil }
func (greeter) CommandLineSyntax() string             { return "" }
func (greeter) SimpleDescription() string             { return "a greeting" }

func (greeter) SetupSubrouters(mux *http.ServeMux, config *launcher.Config) error {
	mux.HandleFunc("GET /greet", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "Here are", strings.Join(config.AgentLoader.ListAgents(), " and "))
	})
	return nil
}

func (greeter) UserMessage(webURL string, printer func(v ...any)) {
	printer("greetings at " + webURL + "/greet")
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
