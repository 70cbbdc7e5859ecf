// SPDX-License-Identifier: Apache-2.0

package replaytest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/replaytest"
)

const (
	recorded   = "../examples/testdata/runs/nested.jsonl"
	definition = "../examples/nested/loop.yaml"
)

// A test of one's own. In a file of tests it is a function TestLoop.
func Example() {
	test := func(t *testing.T) {
		replaytest.Run(t, "../examples/testdata/runs/nested.jsonl", "../examples/nested/loop.yaml")
	}
	passed := testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "TestLoop", F: test}})
	fmt.Println("passed:", passed)
	// Output:
	// passed: true
}

func TestRun(t *testing.T) {
	replaytest.Run(t, recorded, "")
	replaytest.Run(t, recorded, definition)
	replaytest.Config{Exact: true}.Run(t, recorded, definition)
}

// A run is recorded anew with the definition, and can be replayed.
func TestUpdate(t *testing.T) {
	text, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "run.jsonl")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	def, err := os.ReadFile(definition)
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("../examples/nested/script.yaml")
	if err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(t.TempDir(), "loop.yaml")
	def = []byte(strings.Replace(string(def), "in a sentence", "in one sentence", 1))
	for name, text := range map[string][]byte{changed: def, filepath.Join(filepath.Dir(changed), "script.yaml"): script} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("REFRAIN_UPDATE", "1")
	replaytest.Run(t, file, changed)
	t.Setenv("REFRAIN_UPDATE", "")
	replaytest.Config{Exact: true}.Run(t, file, changed)
	if after, err := os.ReadFile(file); err != nil || string(after) == string(text) || !strings.Contains(string(after), "in one sentence") {
		t.Errorf("it was not recorded anew: %v", err)
	}
}
