// SPDX-License-Identifier: Apache-2.0

package refrain_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain"
	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
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
	killed := errors.New("the process was killed")

	refine, err := loopagent.New(loopagent.Config{
		AgentConfig:   agent.Config{Name: "refine", SubAgents: []agent.Agent{critic, editor}},
		MaxIterations: 5,
		Rules:         loop.Plan{Score: &loop.Score{Key: "score", Target: new(8.0)}},
	})
	if err != nil {
		log.Fatal(err)
	}
	store, err := sqlite.Open(ctx, path, sqlite.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	first, kill := context.WithCancelCause(ctx)
	res, err := refrain.Run(first, refine, "a poem", refrain.Session(store, "poem"), refrain.OnEvent(func(ev *session.Event) {
		if ev.Author == "critic" && ev.Iteration == 2 {
			kill(killed)
		}
	}))
	fmt.Println(err, "- best so far:", *res.Best.Score)

	// The same call again, in this process or in a new one, continues where the first one was cut off.
	res, err = refrain.Run(ctx, refine, "a poem", refrain.Session(store, "poem"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Text, "-", res.Stop)
	// Output:
	// the process was killed - best so far: 4
	// a better poem - Stopped: target_reached after 2 iterations: Score 8 ≥ 8
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

// The Go code in the README and in doc/go.md is that of programs and tests that are compiled.
func TestGoCodeOfDocumentsIsCompiled(t *testing.T) {
	for doc, sources := range map[string][]string{
		"README.md": {"example_test.go", "example_model_test.go", "examples/bananas/main.go"},
		"doc/go.md": {"example_test.go", "refrain_test.go", "synctest_test.go", "examples/bananas/main.go"},
	} {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(string(text), "```go\n")[1:]
		if len(parts) != len(sources) {
			t.Fatalf("%s has %d pieces of Go code, want %d", doc, len(parts), len(sources))
		}
		for i, name := range sources {
			source, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			code, _, closed := strings.Cut(parts[i], "```")
			if !closed {
				t.Fatalf("%s: the code of %s has no end", doc, name)
			}
			for line := range strings.Lines(code) {
				if line != "\n" && !strings.Contains(string(source), "\t"+line) && !strings.Contains(string(source), "\n"+line) {
					t.Errorf("%s has a line that %s does not have: %s", doc, name, line)
				}
			}
		}
	}
}
