// SPDX-License-Identifier: Apache-2.0

package evaltest_test

import (
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/evaltest"
	"github.com/refrain-dev/refrain/session"
)

func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// files are eight cases, and versions that pass all, none, and every other one of them.
func files(t *testing.T) string {
	var cases strings.Builder
	cases.WriteString("repeat: 2\nchecks: [{equals: }]\ncases:\n")
	for _, word := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		cases.WriteString("  - {id: " + word + ", input: " + word + ", expected: " + word + "!}\n")
	}
	return write(t, map[string]string{"cases.yaml": cases.String(), "good.yaml": "name: t\ntext: \"{{user_input}}!\"\n",
		"bad.yaml": "name: t\ntext: no\n", "fails.yaml": "name: t\ncommand: [\"false\"]\n"})
}

// echo is an agent of Go code that answers with the request and a mark.
func echo(t *testing.T, mark string) agent.Agent {
	a, err := agent.New(agent.Config{Name: "echo", Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			ev := &session.Event{}
			ev.Content = genai.NewContentFromText(ctx.UserContent().Parts[0].Text+mark, genai.RoleModel)
			yield(ev, nil)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// What passes passes, and a version that is better or not decided fails nothing.
func TestRun(t *testing.T) {
	dir := files(t)
	cases := filepath.Join(dir, "cases.yaml")
	t.Run("definition", func(t *testing.T) {
		evaltest.Run(t, evaltest.Config{Definition: filepath.Join(dir, "good.yaml"), Cases: cases})
	})
	t.Run("agent", func(t *testing.T) { evaltest.Run(t, evaltest.Config{Agent: echo(t, "!"), Cases: cases, Repeat: 1}) })
	t.Run("better", func(t *testing.T) {
		evaltest.Run(t, evaltest.Config{Agent: echo(t, "!"), Cases: cases, AgainstAgent: echo(t, "?"), Repeat: 1})
	})
	t.Run("not decided", func(t *testing.T) {
		evaltest.Run(t, evaltest.Config{Agent: echo(t, "?"), Cases: cases, AgainstAgent: echo(t, "!"), Only: []string{"a", "b"}})
	})
}

// The tests of this one fail, in a process of their own.
func TestFailing(t *testing.T) {
	dir := os.Getenv("EVALTEST_FAILING")
	if dir == "" {
		t.Skip("it is run by TestRunFails")
	}
	cases := filepath.Join(dir, "cases.yaml")
	t.Run("case", func(t *testing.T) {
		evaltest.Run(t, evaltest.Config{Agent: echo(t, "?"), Cases: cases, Only: []string{"b"}})
	})
	t.Run("worse", func(t *testing.T) {
		evaltest.Run(t, evaltest.Config{Definition: filepath.Join(dir, "bad.yaml"), Against: filepath.Join(dir, "good.yaml"), Cases: cases})
	})
	t.Run("errors", func(t *testing.T) {
		evaltest.Run(t, evaltest.Config{Definition: filepath.Join(dir, "fails.yaml"), Against: filepath.Join(dir, "good.yaml"), Cases: cases})
	})
	t.Run("config", func(t *testing.T) { evaltest.Run(t, evaltest.Config{Cases: cases}) })
	t.Run("file", func(t *testing.T) { evaltest.Run(t, evaltest.Config{Agent: echo(t, ""), Cases: "missing.yaml"}) })
}

// A case that does not pass fails, and so does a version that is worse or has no results.
func TestRunFails(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestFailing$", "-test.v")
	cmd.Env = append(os.Environ(), "EVALTEST_FAILING="+files(t))
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("the process has exit code 0")
	}
	for _, want := range []string{"--- FAIL: TestFailing/case/b ", `equals: "b?" is not "b!"`, "--- FAIL: TestFailing/worse ",
		"bad.yaml is worse than", "--- PASS: TestFailing/worse/a ", "--- FAIL: TestFailing/errors ", "there is no verdict: ",
		"--- FAIL: TestFailing/config ", "needs Cases, and Definition or Agent", "--- FAIL: TestFailing/file ", "missing.yaml"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output has no %q", want)
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}
