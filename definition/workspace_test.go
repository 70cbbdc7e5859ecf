// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/agent/elsewhere"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/runner"
)

// What a workspace cannot do is said by check, and what this process cannot do before a run.
func TestWorkspaceProblems(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"workspace: {from: /}\nsub_agents: [{name: s, command: [ls]}]", `from "/" leads out of the root`},
		{"workspace: {result: {patch: ../p}}\nsub_agents: [{name: s, command: [ls]}]", `result.patch "../p" leads out of the root`},
		{"workspace: {result: {patch: ./.GIT/config}}\nsub_agents: [{name: s, command: [ls]}]", "which is no place for a patch"},
		{"workspace: {result: {patch: p, apply: true}}\nsub_agents: [{name: s, command: [ls]}]", "result has several of branch, patch and apply"},
		{"workspace: {result: {branch: 'x/{{name}}'}}\nsub_agents: [{name: s, command: [ls]}]", "branch can have no placeholder but {{run}}"},
		{"workspace: {protect: ['[']}\nsub_agents: [{name: s, command: [ls]}]", "syntax error in pattern"},
		{"workspace: {limits: {}}\nsub_agents: [{name: s, command: [ls]}]", "sets no limit"},
		{"workspace: {}\nstate: {workspace: 1}\nsub_agents: [{name: s, command: [ls]}]", `"workspace" cannot be a key`},
		{"workspace: {}\nsub_agents: [{name: s, command: [ls], task_queue: q}]", `"s" runs on another machine`},
		{"workspace: {}\nsub_agents: [{name: m, instructions: i, tools: [{command: [ls], name: c}]}]", `"c" works in a tool`},
		{"workspace: {}\nsub_agents: [{name: m, instructions: i, tools: [{agent: {name: t, max_iterations: 2, sub_agents: [{name: c, command: [ls]}]}}]}]", `"c" works in a tool`},
		{"sub_agents: [{name: p, type: parallel, keep_best: {s: n}, sub_agents: [{name: s, command: [ls], output_key: n}]}]", `keep_best of "p" needs a workspace`},
		{"workspace: {}\nsub_agents: [{name: p, type: parallel, keep_best: {s: n, t: m}, sub_agents: [{name: s, command: [ls], output_key: n}, {name: t, text: x, output_key: m}]}]", `"t" is no branch of "p" that works in the workspace`},
		{"workspace: {}\nsub_agents: [{name: p, type: parallel, keep_best: {s: n}, sub_agents: [{name: s, command: [ls], output_key: n}, {name: t, command: [ls]}]}]", `keep_best names no score of the branch "t"`},
		{"workspace: {}\nsub_agents: [{name: p, type: parallel, keep_best: {s: n, t: n}, sub_agents: [{name: s, command: [ls], output_key: n}, {name: t, command: [ls]}]}]", `two branches of "p" have the score "n"`},
		{"workspace: {}\nsub_agents: [{name: p, type: parallel, keep_best: {s: nn}, sub_agents: [{name: s, command: [ls], output_key: n}]}]", `names the key "nn", which no agent writes`},
		{"sub_agents: [{name: s, text: '{{workspace.tree}}'}]", "{{workspace.tree}} is read here but no agent writes it"},
	} {
		_, err := definition.Parse("w.yaml", []byte("name: w\nmax_iterations: 1\n"+tt.text), definition.Options{})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s\n%v, not %s", tt.text, err, tt.want)
		}
	}
	d, err := definition.Parse("w.yaml", []byte("name: w\nmax_iterations: 1\nworkspace: {}\nsub_agents: [{name: s, command: [ls]}]"), definition.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Build(t.Context(), definition.BuildConfig{Elsewhere: struct{ elsewhere.Dispatcher }{}}); err == nil ||
		!strings.Contains(err.Error(), "cannot move between workers") {
		t.Errorf("on a cluster: %v", err)
	}
	if err := d.CheckMovable(); err == nil || !strings.Contains(err.Error(), "w.yaml:3:12: error: a run with a workspace cannot move between workers") {
		t.Errorf("for a cluster: %v", err)
	}
	if other, err := definition.Parse("w.yaml", []byte("name: w\ntext: x"), definition.Options{}); err != nil || other.CheckMovable() != nil {
		t.Error("without a workspace: ", err, other.CheckMovable())
	}
	t.Setenv("PATH", "")
	if _, err := d.Build(t.Context(), definition.BuildConfig{}); err == nil || !strings.Contains(err.Error(), "needs git") {
		t.Errorf("without git: %v", err)
	}
}

// What is wrong about a workspace says what to write.
func TestHintsOfWorkspaces(t *testing.T) {
	for text, want := range map[string]string{
		"workspace: true":                  "write {} for a copy of the folder where the run starts",
		"workspace: {result: fix}":         "write {branch: NAME}, {patch: FILE} or {apply: true}",
		"workspace: {result: [fix]}":       "write {branch: NAME}, {patch: FILE} or {apply: true}",
		"workspace: {from: ../x}":          "name a folder below the root; refrain run --root FOLDER makes another folder the root",
		"workspace: {result: {patch: /p}}": "name a file below the root, such as result.patch",
	} {
		_, err := definition.Parse("w.yaml", []byte("name: w\nmax_iterations: 1\n"+text+"\nsub_agents: [{name: s, command: [ls]}]"), definition.Options{})
		problems, _ := errors.AsType[definition.Problems](err)
		if len(problems) != 1 || problems[0].Hint != want {
			t.Errorf("%s: %v, hint %q, not %q", text, err, append(problems, new(definition.Problem))[0].Hint, want)
		}
	}
	for program, want := range map[string]string{
		"cursor":                    "ask a program that speaks the Agent Client Protocol with acp, and any other with command",
		"cladue":                    `did you mean "claude"?`,
		"claude\nbudget: {cost: 2}": "max_cost limits what one call of the program may cost; budget is for the loop around it",
	} {
		_, err := definition.Parse("w.yaml", []byte("name: s\nprompt: x\ncli: "+program), definition.Options{})
		problems, _ := errors.AsType[definition.Problems](err)
		if len(problems) != 1 || problems[0].Hint != want {
			t.Errorf("%s: %v, hint %q, not %q", program, err, append(problems, new(definition.Problem))[0].Hint, want)
		}
	}
}

// What is no list is shown as the list that it is meant to be.
func TestHintsOfLists(t *testing.T) {
	for value, want := range map[string]string{
		"setup: npm ci":           "write [npm, ci]",
		"setup: npm ci && ls":     "write [sh, -c, 'npm ci && ls']",
		"protect: '**/*_test.go'": "write ['**/*_test.go']",
		"protect: go.mod":         "write [go.mod]",
		"copy: '- .env'":          "write ['- .env']",
	} {
		_, err := definition.Parse("w.yaml", []byte("name: w\nmax_iterations: 1\nworkspace: {"+value+
			"}\nsub_agents: [{name: s, command: [ls]}]"), definition.Options{})
		problems, _ := errors.AsType[definition.Problems](err)
		if len(problems) != 1 || problems[0].Hint != want {
			t.Errorf("%s: %v, hint %q, not %q", value, err, append(problems, new(definition.Problem))[0].Hint, want)
		}
	}
}

// A name of a branch is taken where git takes it.
func TestNamesOfBranches(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip(err)
	}
	parts := []string{"a", "b", "HEAD", "/", ".", "-", "@", "~", " ", ":", "\\", ".lock", "é", "*", "x1", "_", "#"}
	for range 300 {
		var drawn strings.Builder
		for range 1 + rand.IntN(4) {
			drawn.WriteString(parts[rand.IntN(len(parts))])
		}
		name := drawn.String()
		_, err := definition.Parse("w.yaml", []byte("name: w\nmax_iterations: 1\nworkspace: {result: {branch: "+strconv.Quote(name)+
			"}}\nsub_agents: [{name: s, command: [ls]}]"), definition.Options{})
		if got, want := err == nil, exec.Command(git, "check-ref-format", "--branch", name).Run() == nil; got != want && name != "@" { // git reads HEAD for it
			t.Errorf("%q is taken: %v; git takes it: %v", name, got, want)
		}
	}
}

// A cache knows a step by the files that it works on, and says its files again.
func TestCacheKnowsTheFiles(t *testing.T) {
	if err := workspace.CheckGit(t.Context()); err != nil {
		t.Skip(err)
	}
	root := t.TempDir()
	const text = `
name: w
max_iterations: 4
workspace: {result: {apply: true}}
sub_agents:
  - {name: turn, command: [sh, -c, "if test -e flip; then rm flip; else touch flip; fi; rm -f made"]}
  - {name: make, cache: {key: same}, command: [sh, -c, "echo run >> \"$LOG\"; ls > made"], env: {LOG: LOGFILE}, unsafe: true}
`
	log := filepath.Join(t.TempDir(), "log")
	d, err := definition.Parse("w.yaml", []byte(strings.ReplaceAll(text, "LOGFILE", log)), definition.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var closers []func() error
	agent, err := d.Build(t.Context(), definition.BuildConfig{Root: root, Cleanup: func(f func() error) { closers = append(closers, f) }})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "mine"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := runner.NewInMemory("w", agent)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range r.Run(t.Context(), "u", "s", nil, d.RunConfig(definition.Limits{})) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, end := range closers {
		if err := end(); err != nil {
			t.Error(err)
		}
	}
	if got := readFile(t, log); got != "run\nrun\n" {
		t.Errorf("the step ran %q for two versions of the files in four iterations", got)
	}
	if got := readFile(t, filepath.Join(root, "made")); got != "made\nmine\n" {
		t.Errorf("the result has %q", got)
	}
}
