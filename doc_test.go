// SPDX-License-Identifier: Apache-2.0

package refrain_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// link is a link in Markdown to a file of this project.
var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

// A document that points to a file that is not there sends its reader astray.
func TestLinksOfDocumentsLeadSomewhere(t *testing.T) {
	found := 0
	walk(t, func(name string) {
		if path.Ext(name) != ".md" || strings.Contains(name, "testdata/") {
			return
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			found++
			if _, err := os.Stat(path.Join(path.Dir(name), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
			}
		}
	})
	if found == 0 {
		t.Error("no document has a link")
	}
}

// The index names each page, once or more.
func TestIndexNamesEachPage(t *testing.T) {
	index, err := os.ReadFile("doc/README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("doc/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatal(pages, err)
	}
	for _, page := range pages {
		if name := path.Base(page); name != "README.md" && !strings.Contains(string(index), "("+name+")") {
			t.Errorf("doc/README.md has no link to %s", name)
		}
	}
}
