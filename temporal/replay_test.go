// SPDX-License-Identifier: Apache-2.0

package temporal_test

import (
	"path/filepath"
	"testing"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/refrain-dev/refrain/temporal"
)

// Runs that are under way when a worker gets a new version go on: the workflow still fits the
// histories in testdata. They stay there for ever; a change that they do not survive needs
// workflow.GetVersion.
func TestReplay(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	if err != nil || len(files) < 5 {
		t.Fatalf("found %d histories, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			r := worker.NewWorkflowReplayer()
			r.RegisterWorkflowWithOptions(temporal.Run, workflow.RegisterOptions{Name: temporal.Workflow})
			if err := r.ReplayWorkflowHistoryFromJSONFile(quiet, file); err != nil {
				t.Error(err)
			}
		})
	}
}
