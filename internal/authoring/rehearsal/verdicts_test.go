// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/authoring/rehearsal"
)

// verdicts compares what a rehearsal says of one example or template with its
// golden file: how its loops end when nothing is wrong, and which guard catches each
// fault. The sentences below a verdict are left out: their wording may change.
// `go test ./internal/authoring/rehearsal -run AdviceCanBeTaken -update` writes the files.
func verdicts(t *testing.T, file string, r *rehearsal.Report) {
	t.Helper()
	var b strings.Builder
	for _, e := range r.Endings {
		b.WriteString("ends: " + e.String() + "\n")
	}
	for _, line := range results(r) {
		b.WriteString(line + "\n")
	}
	parts := strings.Split(filepath.ToSlash(file), "/")
	golden := filepath.Join("testdata", "verdicts", strings.Join(parts[len(parts)-3:], "_")+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", golden, diff)
	}
}
