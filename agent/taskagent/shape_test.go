// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"slices"
	"testing"

	"github.com/refrain-dev/refrain/agent/drive"
)

// A shape stands only for a name that a text can really use.
func TestShapesAreOfBuiltInNames(t *testing.T) {
	for name := range builtIn {
		if !slices.Contains(drive.BuiltIn, name) {
			t.Errorf("%q has a shape, and is not built in", name)
		}
	}
}
