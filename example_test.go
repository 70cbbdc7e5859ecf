// SPDX-License-Identifier: Apache-2.0

package refrain_test

import (
	"context"
	"fmt"
	"iter"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
)

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "refrain")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "runs.db")
	critic := says("critic", "more rhyme")
	editor := says("editor", "a better poem")

	refine, err := loopagent.New(loopagent.Config{
		AgentConfig:   agent.Config{Name: "refine", SubAgents: []agent.Agent{critic, editor}},
		MaxIterations: 5,
		Score:         &loop.Score{Key: "score", Target: new(8.0)},
	})
	if err != nil {
		log.Fatal(err)
	}
	store, err := sqlite.Open(ctx, path, sqlite.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	r, err := runner.New(runner.Config{AppName: "app", Agent: refine, SessionService: store, AutoCreateSession: true, Durable: true})
	if err != nil {
		log.Fatal(err)
	}
	for ev, err := range r.Run(ctx, "ana", "s1", genai.NewContentFromText("a poem", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			log.Fatal(err)
		}
		if ev.Text() != "" {
			fmt.Println(ev.Author, ev.Text())
		}
	}
	// Output:
	// critic more rhyme
	// editor a better poem
	// critic more rhyme
	// editor a better poem
}

// says returns an agent that says a text and raises the score by 2.
func says(name, text string) agent.Agent {
	a, err := agent.New(agent.Config{
		Name: name,
		Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				ev := session.NewEvent(ctx, ctx.InvocationID())
				ev.Content = genai.NewContentFromText(text, genai.RoleModel)
				score := 0.0
				if v, err := ctx.Session().State().Get("score"); err == nil {
					score = v.(float64)
				}
				ev.Actions.StateDelta["score"] = score + 2
				yield(ev, nil)
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	return a
}

// The Go code in the README is that of two examples and of a program.
func TestReadmeCodeIsCompiled(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	sources := []string{"example_test.go", "example_model_test.go", "examples/bananas/main.go"}
	parts := strings.Split(string(readme), "```go\n")[1:]
	if len(parts) != len(sources) {
		t.Fatalf("README.md has %d pieces of Go code, want %d", len(parts), len(sources))
	}
	for i, name := range sources {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		code, _, closed := strings.Cut(parts[i], "```")
		if !closed {
			t.Fatalf("README.md: the code of %s has no end", name)
		}
		for line := range strings.Lines(code) {
			if line != "\n" && !strings.Contains(string(source), "\t"+line) {
				t.Errorf("README.md has a line that %s does not have: %s", name, line)
			}
		}
	}
}
