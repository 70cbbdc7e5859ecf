// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/authoring/edit"
)

var update = flag.Bool("update", false, "write the golden files")

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Each file in testdata/edit has operations, a text before them and the text after
// them, or the error. A person can read them as the manual of the editor.
func TestEditGolden(t *testing.T) {
	files, _ := filepath.Glob("testdata/edit/*.txt")
	if len(files) < 20 {
		t.Fatalf("only %d files", len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text := readFile(t, file)
			parts := regexp.MustCompile(`(?m)^-- (\w+) --\n`).Split(text, -1)
			if len(parts) < 2 {
				t.Fatal("no -- before --")
			}
			before := strings.Replace(parts[1], noEnd, "", 1)
			e, err := edit.New([]byte(before))
			if err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			for _, line := range commands(parts[0]) {
				if err := runEdit(e, line, &said); err != nil {
					said.WriteString(err.Error() + "\n")
				}
			}
			got := parts[0] + "-- before --\n" + parts[1]
			if after := string(e.Bytes()); after != before {
				if !strings.HasSuffix(after, "\n") {
					after += noEnd
				}
				got += "-- after --\n" + after
			}
			if said.Len() > 0 {
				got += "-- said --\n" + said.String()
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(text, got); diff != "" {
				t.Errorf("run go test ./definition -update (-file +is):\n%s", diff)
			}
		})
	}
}

// noEnd follows a text whose last line has no end.
const noEnd = "\n\\ no line end\n"

// commands are the lines that are no comments; indented ones go on with the one before.
func commands(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "\t"):
			all[len(all)-1] += "\n" + line[1:]
		case strings.TrimSpace(line) == "" || line[0] == '#':
		default:
			all = append(all, line)
		}
	}
	return all
}

// runEdit does what a line says: the operation, the path, and perhaps an index and a
// value, which is JSON, or YAML in the lines below.
func runEdit(e *edit.Editor, line string, said *strings.Builder) error {
	line, fragment, written := strings.Cut(line, "\n")
	op, rest, _ := strings.Cut(line, " ")
	next := func() string {
		var word string
		word, rest, _ = strings.Cut(rest, " ")
		return word
	}
	number := func() int { n, _ := strconv.Atoi(next()); return n }
	value := func() any {
		if written {
			return edit.YAML(fragment + "\n")
		}
		if rest == "+Inf" {
			return math.Inf(1)
		}
		var v any
		if err := json.Unmarshal([]byte(rest), &v); err != nil {
			panic(err)
		}
		return v
	}
	path := next()
	switch op {
	case "set":
		return e.Set(path, value())
	case "remove":
		return e.Remove(path)
	case "insert":
		return e.Insert(path, number(), value())
	case "move":
		from := number()
		return e.Move(path, from, number())
	case "duplicate":
		return e.Duplicate(path, next())
	case "rename-key", "rename-agent":
		rename := e.RenameKey
		if op == "rename-agent" {
			rename = e.RenameAgent
		}
		done, err := rename(path, next())
		for _, u := range done.Changed {
			said.WriteString(strconv.Itoa(u.Line) + ":" + strconv.Itoa(u.Column) + " " + u.Path + ": " + u.Text + "\n")
		}
		for _, u := range done.Left {
			said.WriteString(strconv.Itoa(u.Line) + ":" + strconv.Itoa(u.Column) + " " + u.Path + ": left: " + u.Note + "\n")
		}
		return err
	}
	return errors.New("no operation: " + op)
}
