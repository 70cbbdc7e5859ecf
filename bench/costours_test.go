// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/bench/ours"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

type lookArgs struct {
	Place string `json:"place"`
}

// runOurs runs a loop's definition, or the agent of one that has none.
func runOurs(t *testing.T, l costLoop, open opener) error {
	root, state, cfg, err := ourAgents(t.Context(), l, open)
	if err != nil {
		return err
	}
	r, err := ours.NewRunner(root, session.InMemoryService(), true)
	if err != nil {
		return err
	}
	for _, err := range r.Run(t.Context(), ours.User, "s", genai.NewContentFromText(l.message, genai.RoleUser), cfg,
		runner.WithStateDelta(state)) {
		if err != nil {
			return err
		}
	}
	return nil
}

func ourAgents(ctx context.Context, l costLoop, open opener) (agent.Agent, map[string]any, agent.RunConfig, error) {
	if l.def != nil {
		state, err := l.def.InitialState(l.given)
		if err != nil {
			return nil, nil, agent.RunConfig{}, err
		}
		// The agents say their names, and so have one model.
		root, err := l.def.Build(ctx, definition.BuildConfig{Transport: away{},
			Model: func(context.Context, string) (model.LLM, error) { return open(""), nil }})
		return root, state, l.def.RunConfig(definition.Limits{}), err
	}
	look, err := functiontool.New(functiontool.Config{Name: lookTool, Description: lookAbout},
		func(tool.Context, lookArgs) (map[string]any, error) { return map[string]any{"result": seen}, nil })
	if err != nil {
		return nil, nil, agent.RunConfig{}, err
	}
	text, err := l.root.instruction.Execute(func(string) (any, bool) { return nil, false })
	if err != nil {
		return nil, nil, agent.RunConfig{}, err
	}
	root, err := llmagent.New(llmagent.Config{Name: l.root.name, Description: l.root.description, Model: open(""), Instruction: text,
		Tools: []tool.Tool{look}})
	return root, nil, agent.RunConfig{}, err
}

// away is a network on which nobody is.
type away struct{}

func (away) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("nobody is there")
}

// codefixFiles makes a package to repair and the commands gofmt and go, of which go test fails; and what the example
// reports of that.
func codefixFiles(t *testing.T) (dir, file, tests, report string) {
	t.Helper()
	dir, bin := t.TempDir(), t.TempDir()
	failure := prose("--- FAIL: TestMake", 1, 150).Text
	file, tests = prose("package slug // version", 9, 700).Text, prose("package slug // tests", 10, 700).Text
	for name, text := range map[string]string{
		filepath.Join(dir, "slug.go"):      file,
		filepath.Join(dir, "slug_test.go"): tests,
		filepath.Join(bin, "gofmt"):        "#!/bin/sh\n",
		filepath.Join(bin, "go"):           "#!/bin/sh\ntest \"$1\" != test || { echo '" + failure + "'; exit 1; }\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return dir, file, tests, strings.Join([]string{"gofmt and go vet have nothing to say", failure, "there is nothing to measure"}, "\n")
}
