// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The reference of the fields says of each what it is and what it can be.
func TestHelpDefinition(t *testing.T) {
	const golden = "testdata/help-definition.golden"
	got := definitionHelp(helpWidth) + "\n"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("refrain help definition says something else (-want +got):\n%s\n"+
			"if that is meant: go test ./command -run HelpDefinition -update", diff)
	}
}
