// SPDX-License-Identifier: Apache-2.0

package interpreter_test

import (
	"fmt"
	"testing"

	"github.com/refrain-dev/refrain/internal/interpreter"
)

func Example() {
	args := []string{"sh", "-c", `cat "$1"`, "sh", "{{file}}"}
	use := interpreter.Of(args, func(i int) bool { return i != 4 })
	place, err := use.Arg(4)
	fmt.Println(place == interpreter.Data, err, use.Stdin())
	// Output: true <nil> <nil>
}

// Variables that shells, loaders and interpreters take for code hold no value;
// those that an author makes up do.
func TestVariables(t *testing.T) {
	for _, name := range []string{"BASH_ENV", "ENV", "LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "PATH", "Path", "PYTHONPATH", "NODE_OPTIONS", "GIT_SSH_COMMAND", "GOFLAGS", "EDITOR"} {
		if interpreter.Variable(name) {
			t.Errorf("%s may hold a value", name)
		}
	}
	for _, name := range []string{"TASK", "GOAL", "MAKER", "RUSTY", "DRAFT_PATH", "REFRAIN_TASK", "PHONE"} {
		if !interpreter.Variable(name) {
			t.Errorf("%s may hold no value", name)
		}
	}
}

// An event must not be the program of a hook.
func TestReadsCode(t *testing.T) {
	for _, args := range [][]string{{"sh"}, {"/bin/bash", "-x"}, {"bash", "-s"}, {"env", "sh"}, {"docker", "run", "-i", "alpine", "sh"}, {"python3"}, {"python3", "-"}, {"node"}} {
		if interpreter.ReadsCode(args) == nil {
			t.Errorf("%q is fine", args)
		}
	}
	for _, args := range [][]string{
		{"sh", "-c", "cat"}, {"sh", "hook.sh"}, {"bash", "-euc", "cat"}, {"env", "python3", "hook.py"}, {"python3", "-m", "hook"}, {"perl", "-ne", "print"},
		{"node", "--enable-source-maps", "hook.js"}, {"go", "run", "hook.go"}, {"./hook"}, {"grep", "x"},
	} {
		if err := interpreter.ReadsCode(args); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}
