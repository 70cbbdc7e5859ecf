// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/replaytest"
)

// Each example comes to its recorded end with no model and no process. A change of a prompt shows in the log of the test.
// The files were written by refrain run --record and refrain export.
func TestExamplesReplay(t *testing.T) {
	recorded := make(map[string]bool)
	files, err := filepath.Glob("testdata/runs/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		folder, def, ok := strings.Cut(name, "-")
		if def = folder + "/" + def + ".yaml"; !ok {
			def = folder + "/loop.yaml"
		}
		recorded[def] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replaytest.Run(t, file, def)
		})
	}
	for _, def := range definitions(t) {
		if !recorded[def] {
			t.Errorf("%s has no recorded run in testdata/runs", def)
		}
	}
}
