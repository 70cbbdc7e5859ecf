// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/authoring/rehearsal"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

var update = flag.Bool("update", false, "write the report in the manual")

// The example in the manual is rehearsed, and what it says of it is so.
func TestManual(t *testing.T) {
	longtest.WithoutRace(t)
	t.Parallel()
	const manual, begin, end = "../../../doc/rehearsing.md", "<!-- report: written by go test ./internal/authoring/rehearsal -update -->\n", "<!-- end of report -->"
	data, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, part := range strings.Split(string(data), "```yaml\n")[1:] {
		text, _, _ := strings.Cut(part, "```")
		files = append(files, text)
	}
	if len(files) != 2 {
		t.Fatalf("%s has %d definitions, want 2", manual, len(files))
	}
	var report strings.Builder
	if err := rehearse(t, parse(t, files[0]), rehearsal.Config{}).Format(&report); err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(data), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !closed {
		t.Fatalf("%s has no place for the report", manual)
	}
	var block strings.Builder
	for line := range strings.Lines(report.String()) {
		block.WriteString(strings.TrimRight("    "+line, " \n") + "\n")
	}
	want := head + begin + "\n" + block.String() + "\n" + end + tail
	if *update {
		if err := os.WriteFile(manual, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("%s is out of date; run go test ./internal/authoring/rehearsal -update (-want +got):\n%s", manual, diff)
	}
	for _, f := range rehearse(t, parse(t, files[1]), rehearsal.Config{}).Open() {
		t.Errorf("the second definition in %s: %s: %s", manual, f.Fault, f.Detail)
	}
}
