// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The picture in the README is what a real run shows; only times, IDs and dates may differ.
func TestReadmePicture(t *testing.T) {
	const begin, end = "<!-- picture: go test ./command -run Readme -update -->\n```text\n", "```\n<!-- end -->"
	file, err := filepath.Abs("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	got, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no picture between %q and %q", file, begin, end)
	}
	t.Chdir(t.TempDir())
	var want strings.Builder
	for _, args := range [][]string{
		{"init", "bakery"},
		{"run", "bakery/loop.yaml", "An advertisement for a bakery", "--progress", "quiet"},
		{"show", "last"},
	} {
		code, stdout, stderr := refrain(t, args...)
		if code != 0 {
			t.Fatalf("refrain %s: exit code %d\n%s", strings.Join(args, " "), code, stderr)
		}
		switch args[0] {
		case "init":
			stdout = ""
		case "run":
			args[2], args = `"`+args[2]+`"`, args[:3]
		case "show": // what stands behind the stop record was printed already
			stdout, _, _ = strings.Cut(stdout, "\nAnswer:")
		}
		fmt.Fprintf(&want, "$ refrain %s\n%s", strings.Join(args, " "), stdout)
	}
	diff := cmp.Diff(masked(want.String()), masked(got))
	switch {
	case diff == "":
	case *update:
		if err := os.WriteFile(file, []byte(before+begin+want.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the picture in README.md is out of date; run go test ./command -run Readme -update (-want +got):\n%s", diff)
	}
}

// The commands of the README about its file work, one after another, in a new folder; only a run that a limit stops has
// another exit code than 0, and nothing is wrong with the file.
func TestReadmeCommands(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ = bytes.Cut(text, []byte("\n### A file\n"))
	text, _, _ = bytes.Cut(text, []byte("\n### "))
	t.Chdir(t.TempDir())
	n := 0
	for _, block := range regexp.MustCompile("(?s)```(yaml|sh)\n(.*?)```").FindAllSubmatch(text, -1) {
		if string(block[1]) == "yaml" {
			if err := os.WriteFile("countdown.yaml", block[2], 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for line := range strings.Lines(string(block[2])) {
			line, _, _ = strings.Cut(line, "#")
			args := strings.Fields(line)[1:]
			want := 0
			if slices.Contains(args, "--max-iterations") {
				want = 3
			}
			code, stdout, stderr := refrain(t, args...)
			if code != want {
				t.Errorf("refrain %s: exit code %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
			}
			if args[0] == "check" && strings.Contains(stderr, "countdown.yaml:") {
				t.Errorf("check has something to say:\n%s", stderr)
			}
			n++
		}
	}
	if n < 10 {
		t.Errorf("%d commands", n)
	}
}

var changing = regexp.MustCompile(`\br_[0-9a-f]{8}\b|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\b(\d+(\.\d+)?(ms|s|m|h))+\b`)

// masked leaves out of a text what differs from run to run.
func masked(s string) string { return changing.ReplaceAllString(s, "…") }
