// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/dialect"
)

// No text makes an import panic; what comes out is a definition that loads, or
// the report says what is wrong.
func FuzzADK(f *testing.F)        { fuzz(f, dialect.ADK) }
func FuzzEvo(f *testing.F)        { fuzz(f, dialect.Evo) }
func FuzzRobomotion(f *testing.F) { fuzz(f, dialect.Robomotion) }

func fuzz(f *testing.F, d dialect.Dialect) {
	for _, data := range seeds(f, d) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { sound(t, d, data) })
}

// seeds returns the files to import of testdata.
func seeds(t testing.TB, d dialect.Dialect) [][]byte {
	var all [][]byte
	archives, _ := filepath.Glob(filepath.Join("testdata", string(d), "*.txtar"))
	for _, archive := range archives {
		a, err := txtar.ParseFile(archive)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			if slices.Contains(mains, f.Name) {
				all = append(all, f.Data)
			}
		}
	}
	return all
}

var beside = fstest.MapFS{
	"writer.yaml": {Data: []byte("name: writer\ninstruction: 'Write {topic}'\ntools: [{name: exit_loop}]\noutput_key: score")},
	"loop.yaml":   {Data: []byte("agent_class: LoopAgent\nname: loop\nsub_agents: [{config_path: writer.yaml}]")},
	"join.yaml":   {Data: []byte("agent_class: JoinNode\nname: join")},
}

var words = regexp.MustCompile(`[\p{L}\p{N}_.-]+|\s+|.`)

// TestMixedUpFiles takes words of the files of testdata away, doubles them, and
// puts others in their place.
func TestMixedUpFiles(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, d := range dialect.All() {
		all := seeds(t, d)
		var known [][]byte
		for _, data := range all {
			known = append(known, words.FindAll(data, -1)...)
		}
		for range 150 {
			text := words.FindAll(all[rnd.IntN(len(all))], -1)
			for range 1 + rnd.IntN(4) {
				switch n := rnd.IntN(len(text)); rnd.IntN(4) {
				case 0:
					text = slices.Delete(text, n, min(n+1+rnd.IntN(6), len(text)))
				case 1:
					text = slices.Insert(text, n, text[n:min(n+1+rnd.IntN(40), len(text))]...)
				default:
					text[n] = known[rnd.IntN(len(known))]
				}
				if len(text) == 0 {
					break
				}
			}
			sound(t, d, bytes.Join(text, nil))
			if t.Failed() {
				t.Fatalf("%s:\n%s", d, bytes.Join(text, nil))
			}
		}
	}
}

// sound imports a text and looks whether that is well.
func sound(t *testing.T, d dialect.Dialect, data []byte) {
	t.Helper()
	_ = dialect.Detect("fuzz", data)
	res, err := dialect.Import("fuzz.yaml", data, dialect.Options{Dialect: d, FS: beside})
	if err != nil {
		t.Fatal(err)
	}
	checkReport(t, res)
	if res.YAML == nil {
		if res.Err() == nil {
			t.Error("neither a definition nor an error")
		}
		return
	}
	def, err := definition.Parse("fuzz.yaml", res.YAML, definition.Options{})
	if (err == nil) != (res.Err() == nil) {
		t.Fatalf("definition.Parse says %v, and the report %v\n%s", err, res.Err(), res.YAML)
	}
	if err != nil {
		problems, ok := errors.AsType[definition.Problems](err)
		if !ok || len(problems) == 0 {
			t.Fatalf("%T", err)
		}
		for _, p := range problems {
			if strings.Contains(p.Message, "JSON Schema") {
				continue // the file's own mistake
			}
			if p.Code == definition.CodeSyntax || p.Code == definition.CodeField || p.Code == definition.CodeName ||
				p.Code == definition.CodeSameName || p.Code == definition.CodeExpr {
				t.Errorf("an import must not write that: %v\n%s", p, res.YAML)
			}
		}
		return
	}
	for a := range res.Definition.Root.All {
		if at := res.Origin(a.Position()); at.Line < 1 || strings.Contains(at.File, "(imported)") {
			t.Errorf("%s is at %v", a.Name, at)
		}
	}
	files, report := dialect.Export("fuzz.yaml", def)
	if (files == nil) != (report.Count(dialect.Failed) > 0) {
		t.Errorf("%d files, %d errors", len(files), report.Count(dialect.Failed))
	}
}

func checkReport(t *testing.T, res *dialect.Result) {
	t.Helper()
	var b strings.Builder
	if err := res.Report.Format(&b); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\x1b\r\x00") {
		t.Errorf("terminal codes in %q", b.String())
	}
	for _, it := range res.Report.Items {
		if strings.Contains(it.File, "(imported)") {
			t.Errorf("a place in no file: %+v", it)
		}
		if it.Kind != dialect.Mapped && it.Message == "" || it.Line < 0 || it.Line > 0 && it.Column < 1 {
			t.Errorf("item %+v", it)
		}
	}
	for _, p := range res.Report.Problems {
		if strings.Contains(p.File, "(imported)") || p.Line < 1 || p.Column < 1 || p.Column > len([]rune(p.Excerpt))+1 {
			t.Errorf("no place in the file: %v, in %q", p, p.Excerpt)
		}
	}
}
