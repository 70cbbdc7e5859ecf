// SPDX-License-Identifier: Apache-2.0

package taskagent_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/taskagent"
)

// confined runs a command in a sandbox, with a home folder that has a key.
func confined(t *testing.T, cfg taskagent.CommandConfig) *ran {
	t.Helper()
	if err := taskagent.SandboxCheck(""); err != nil {
		t.Skip(err)
	}
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "key"), []byte("KEY"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	if cfg.Sandbox == nil {
		cfg.Sandbox = new(taskagent.Sandbox)
	}
	cfg.ResultKey = "result"
	return command(t, cfg, nil)
}

// A command in a sandbox reads its input, writes below its folder and its temporary folder, and gets its variables. It neither reads the
// home folder nor writes into its root, unless the folder is named.
func TestSandboxOfACommand(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"work", "more"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const script = `cat; echo $VALUE; touch here && echo made; touch "$TMPDIR/t" && echo temporary
touch ../escaped && echo ESCAPED; cat ~/key && echo ESCAPED; touch ../more/named && echo named; case $TMPDIR in /tmp/refrain-private-*) echo private;; esac`
	run := func(s *taskagent.Sandbox) string {
		got := confined(t, taskagent.CommandConfig{
			Args: []string{"sh", "-c", script}, Stdin: "input\n", Env: map[string]string{"VALUE": "value"}, Root: root, Dir: "work",
			OKExitCodes: []int{0, 1}, Sandbox: s, Config: taskagent.Config{Name: "c", OutputKey: "out"},
		})
		if got.err != nil {
			t.Fatal(got.err)
		}
		out, _ := got.state["out"].(string)
		return strings.Join(strings.Fields(out), " ")
	}
	t.Setenv("TMPDIR", "/tmp")
	equal(t, "output", "input value made temporary private", run(&taskagent.Sandbox{}))
	equal(t, "with a further folder", "input value made temporary named private", run(&taskagent.Sandbox{Write: []string{filepath.Join(root, "more")}}))
	left, err := filepath.Glob("/tmp/refrain-private-*/cache")
	if err != nil || len(left) > 0 {
		t.Errorf("private folders are left: %v, %v", left, err)
	}
}

// Around says what a command in a sandbox may change, and keeps its private folder.
func TestSandboxInAWorkspace(t *testing.T) {
	root, private := t.TempDir(), t.TempDir()
	around := func(_ agent.InvocationContext, run func(taskagent.Folder) error) (map[string]any, error) {
		return nil, run(taskagent.Folder{Path: root, Access: func() (write, read []string, kept string, err error) {
			return []string{root}, nil, private, nil
		}})
	}
	for _, want := range []string{"new", "there"} {
		got := confined(t, taskagent.CommandConfig{Around: around, Config: taskagent.Config{Name: "c", OutputKey: "out"},
			Args: []string{"sh", "-c", `touch file; test -e "$GOCACHE.x" && echo there || { echo new; touch "$GOCACHE.x"; }`}})
		equal(t, "output", any(want), got.state["out"])
	}
	if _, err := os.Stat(filepath.Join(root, "file")); err != nil {
		t.Error(err)
	}
	for _, script := range []string{`cd "$TMPDIR/.." && rm -rf tmp cache && ln -s /nowhere tmp && touch cache`, `touch "$TMPDIR/x" && touch "$XDG_CACHE_HOME/x"`} {
		if got := confined(t, taskagent.CommandConfig{Around: around, Args: []string{"sh", "-c", script}}); got.err != nil {
			t.Errorf("%s: %v", script, got.err)
		}
	}
	refused := errors.New("no folder")
	got := confined(t, taskagent.CommandConfig{Args: []string{"true"},
		Around: func(_ agent.InvocationContext, run func(taskagent.Folder) error) (map[string]any, error) {
			return nil, run(taskagent.Folder{Path: root, Access: func() (_, _ []string, _ string, err error) { return nil, nil, "", refused }})
		}})
	if !errors.Is(got.err, refused) {
		t.Errorf("got %v", got.err)
	}
}

// Wrong fields of a sandbox are errors of the configuration.
func TestSandboxErrors(t *testing.T) {
	for want, s := range map[string]taskagent.Sandbox{
		"the level is":    {Level: "tight"},
		"the network is":  {Network: "some"},
		"ports are not":   {Level: taskagent.SandboxBwrap, Network: taskagent.NetworkNone, Ports: []int{80}},
		"ports need":      {Ports: []int{80}},
		"neither absolut": {Write: []string{"here"}},
		"is no port":      {Network: taskagent.NetworkNone, Ports: []int{70000}},
	} {
		_, err := taskagent.NewCommand(taskagent.CommandConfig{Config: taskagent.Config{Name: "c"}, Args: []string{"true"}, Sandbox: &s})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", s, err, want)
		}
	}
}
