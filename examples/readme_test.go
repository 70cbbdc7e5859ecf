// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scripts are where the examples are run as their READMEs say.
const scripts = "../command/testdata/script"

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// folders are the examples.
func folders(t *testing.T) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && e.Name() != "testdata" {
			all = append(all, e.Name())
		}
	}
	if len(all) < 10 {
		t.Fatalf("only %q", all)
	}
	return all
}

// definitions are the files that can be run.
func definitions(t *testing.T) (all []string) {
	t.Helper()
	files, err := filepath.Glob("*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasPrefix(filepath.Base(f), "script") {
			all = append(all, filepath.ToSlash(f))
		}
	}
	return all
}

// commands are the lines of a README that can be typed, by the README's folder,
// without what is behind a #.
func commands(t *testing.T, folder string) (all []string) {
	t.Helper()
	for line := range strings.Lines(read(t, path.Join(folder, "README.md"))) {
		if line, ok := strings.CutPrefix(line, "    "); ok {
			line, _, _ = strings.Cut(line, "  #")
			all = append(all, strings.TrimSpace(line))
		}
	}
	return all
}

// tested is the text of all scripts, by file, without quotation marks: a script has
// others than a shell.
func tested(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(scripts + "/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	all := make(map[string]string)
	for _, f := range files {
		all[f] = plain(read(t, f))
	}
	return all
}

func plain(s string) string { return strings.NewReplacer("'", "", `"`, "").Replace(s) }

// K1, K2, K3, K4, K5, K6, K7: every example is in the table, which names nothing else, and its
// README is a page of ten lines with commands.
func TestEveryExampleIsListed(t *testing.T) {
	rows := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)^\| \[([a-z]+)\]\(([a-z]+)\) \|(.*)$`).FindAllStringSubmatch(read(t, "README.md"), -1) {
		if m[1] != m[2] {
			t.Errorf("%s leads to %s", m[1], m[2])
		}
		rows[m[1]] = m[3]
	}
	if diff := cmp.Diff(folders(t), slices.Sorted(maps.Keys(rows))); diff != "" {
		t.Errorf("folders, and rows of README.md (-want +got):\n%s", diff)
	}
	for k := range 7 {
		if id := fmt.Sprintf(" K%d:", k+1); !strings.Contains(strings.Join(slices.Collect(maps.Values(rows)), "\n"), id) {
			t.Errorf("no row for%s", id)
		}
	}
	for _, f := range folders(t) {
		text := read(t, path.Join(f, "README.md"))
		if n := strings.Count(text, "\n"); n > 10 || !strings.HasPrefix(text, "# ") {
			t.Errorf("%s: the README has %d lines, and ten are enough", f, n)
		}
		if len(commands(t, f)) == 0 {
			t.Errorf("%s: the README has no command", f)
		}
		for _, m := range regexp.MustCompile(`\]\(([^)#]+)`).FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(path.Join(f, m[1])); err != nil {
				t.Errorf("%s: %v", f, err)
			}
		}
		if m := regexp.MustCompile(`requirement\s+(K\d)`).FindStringSubmatch(text); f != "analyst" && (m == nil || !strings.Contains(rows[f], " "+m[1]+":")) {
			t.Errorf("%s: the README is for %q, its row says%s", f, m, rows[f])
		}
	}
}

// K7: every command of a README is run by a script, word by word, and the script looks
// for the reason that the table gives; a program of Go has tests of its own. What
// needs a key is left out.
func TestEveryCommandIsRun(t *testing.T) {
	all := tested(t)
	table := read(t, "README.md")
	for _, f := range folders(t) {
		_, ownTests := os.Stat(path.Join(f, "main_test.go"))
		m := regexp.MustCompile(`(?m)^\| \[` + f + `\].*\| (?:` + "`" + `([a-z_]+)` + "`" + `|–) \|$`).FindStringSubmatch(table)
		if m == nil {
			t.Errorf("%s: its row does not say how it ends", f)
			continue
		}
		stopped := false
		for _, line := range commands(t, f) {
			line = strings.TrimPrefix(line, "go run ./examples/analyst ") // with it, analyst has the tests
			if strings.Contains(line, "-model ") {
				continue
			}
			if after, ok := strings.CutPrefix(line, "go run ./examples/"); ok {
				if name, _, _ := strings.Cut(after, " "); name != f || ownTests != nil {
					t.Errorf("%s: %s has no main_test.go", f, line)
				}
				stopped = true
				continue
			}
			run := false
			for file, text := range all {
				if regexp.MustCompile(`exec ` + regexp.QuoteMeta(plain(line)) + `( --(record|progress) \S+)*\n`).MatchString(text) {
					run = true
					stopped = stopped || m[1] != "" && strings.Contains(text, "stop_reason="+m[1]) && strings.Contains(text, "examples/"+f+"/")
					if !strings.Contains(text, "stdout ") {
						t.Errorf("%s does not look at the answer", file)
					}
				}
			}
			if !run {
				t.Errorf("%s: no script runs: %s", f, line)
			}
		}
		if !stopped {
			t.Errorf("%s: no script that runs it has stop_reason=%s", f, m[1])
		}
	}
	for _, d := range definitions(t) {
		if !strings.Contains(fmt.Sprint(commands(t, path.Dir(d))), "examples/"+d) {
			t.Errorf("%s is in no command of its README", d)
		}
	}
}
