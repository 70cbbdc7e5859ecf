// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Whatever a name is made of, in a drawing it stays inside its label: a Mermaid
// label has only harmless characters and whole entities in it, and a label of
// Graphviz ends where it is meant to. U10
func FuzzGraphLabels(f *testing.F) {
	for _, s := range []string{`a"]`, `\`, `\"`, "<b>&#35;", "%%{init}%%", "`x`", "1. x", "- x", "日本", "a\u202eb", "a\nb", "\u0379"} {
		f.Add(s)
	}
	mermaid := regexp.MustCompile(`^(?:[\pL\p{Nd} _.,:/()=+★→·≥≤…-]|#[0-9]+;|<br/>)*$`)
	dot := regexp.MustCompile(`^(?:[^"\\\p{Cc}\p{Cf}\p{Co}\p{Cs}]|\\["\\n])*$`)
	f.Fuzz(func(t *testing.T, s string) {
		lines := []string{oneLine(s, 40), "end"}
		if l := mermaidLabel(lines); !mermaid.MatchString(l) {
			t.Errorf("%q: %q", s, l)
		}
		if l := dotLabel(lines); !dot.MatchString(l) {
			t.Errorf("%q: %q", s, l)
		}
		if n := len([]rune(lines[0])); n > 40 {
			t.Errorf("%q: %d characters", s, n)
		}
	})
}

// Every example can be drawn in every format: all subgraphs are closed, and each
// arrow leads from a node that is there to another one. K7
func TestEveryExampleCanBeDrawn(t *testing.T) {
	files, _ := filepath.Glob("../../examples/*/*loop.yaml")
	if len(files) < 8 {
		t.Fatalf("only %q", files)
	}
	node := regexp.MustCompile(`(?m)^\s*(?:subgraph )?(n[0-9]+(?:end)?)(?:\[|\(|\{| \[[a-z]+=)`)
	edge := regexp.MustCompile(`(?m)^\s*(n[0-9]+(?:end)?) -[-.>].*?(n[0-9]+(?:end)?)(?: \[|;|$)`)
	for _, file := range files {
		for _, format := range []string{"ascii", "mermaid", "dot"} {
			var out, errs bytes.Buffer
			if code := run(t.Context(), []string{"graph", file, "--format", format}, os.Getenv, strings.NewReader(""), &out, &errs); code != 0 {
				t.Fatalf("%s: exit code %d: %s", file, code, errs.String())
			}
			text := out.String()
			if format == "ascii" {
				checkFrame(t, file, text)
				continue
			}
			if opened, closed := strings.Count(text, "subgraph "), strings.Count(text, "\n  end\n"); format == "mermaid" && (opened == 0 || closed != 1) {
				t.Errorf("%s: %d subgraphs opened, the outermost closed %d times", file, opened, closed)
			}
			if opened, closed := strings.Count(text, "{\n"), strings.Count(text, "}\n"); format == "dot" && opened != closed {
				t.Errorf("%s: %d opened, %d closed", file, opened, closed)
			}
			there := make(map[string]bool)
			for _, m := range node.FindAllStringSubmatch(text, -1) {
				there[m[1]] = true
			}
			edges := edge.FindAllStringSubmatch(text, -1)
			if len(edges) == 0 {
				t.Errorf("%s: no arrow in %s", file, format)
			}
			for _, m := range edges {
				if !there[m[1]] || !there[m[2]] {
					t.Errorf("%s: %s: %q leads from or to nothing", file, format, m[0])
				}
			}
		}
	}
}

// checkFrame looks whether all lines of a box are as long as its first.
func checkFrame(t *testing.T, file, text string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for _, l := range lines {
		if len([]rune(l)) != len([]rune(lines[0])) {
			t.Errorf("%s: a line of another length: %q", file, l)
		}
	}
}
