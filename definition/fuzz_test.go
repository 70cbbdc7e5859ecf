// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/definition"
)

func FuzzParse(f *testing.F) {
	for _, def := range brokenDefinitions(f) {
		f.Add(def.data)
	}
	files, _ := filepath.Glob("testdata/good/*.yaml")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, text := range hostile() {
		f.Add([]byte(text[:min(len(text), 4<<10)])) // its beginning, to go on from
	}
	for _, text := range []string{bomb(3, 3), mergeBomb(4), deepBlocks(70), "\ufeffname: x\r\ntext: a\r\n",
		"{\"name\": \"x\", \"text\": \"\\ud83d\\ude00 {{a}}\"}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := definition.Parse("fuzz.yaml", data, definition.Options{FS: os.DirFS("testdata/good")})
		if err != nil {
			checkProblems(t, err)
			return
		}
		checkWarnings(t, d)
		cfg := definition.BuildConfig{Model: noModel, DefaultModel: "scripted/x", Getenv: func(string) string { return "set" }}
		given := make(map[string]bool)
		for a := range d.Root.All {
			if a.LLM == nil {
				continue
			}
			for _, made := range a.LLM.Tools {
				if made.Func != "" && !given[made.Func] {
					given[made.Func] = true
					cfg.Tools = append(cfg.Tools, countItems(t, made.Func))
				}
			}
		}
		if _, err := d.Build(t.Context(), cfg); err != nil {
			t.Errorf("what was checked cannot be built: %v", err)
		}
		values := make(map[string]string)
		for _, in := range d.Inputs {
			values[in.Name] = "1"
		}
		_, _ = d.InitialState(values)
	})
}

func checkProblems(t *testing.T, err error) {
	t.Helper()
	problems, ok := errors.AsType[definition.Problems](err)
	if !ok || len(problems) == 0 {
		t.Fatalf("%T: %v", err, err)
	}
	errs := 0
	for _, p := range problems {
		if p.Severity == definition.SeverityError {
			errs++
		}
		if p.Line > 0 && p.Column < 1 || p.Line < 0 || p.Message == "" || definition.Codes[p.Code] == "" {
			t.Errorf("problem %+v", p)
		}
		if p.Line > 0 && p.Column > utf8.RuneCountInString(p.Excerpt)+1 {
			t.Errorf("column %d of %q: %v", p.Column, p.Excerpt, p)
		}
		if s := p.Format(); strings.ContainsAny(s, "\x1b\r\x00") {
			t.Errorf("terminal codes in %q", s)
		}
	}
	if errs == 0 {
		t.Errorf("an error of warnings only: %v", err)
	}
}

func checkWarnings(t *testing.T, d *definition.Definition) {
	t.Helper()
	for _, w := range d.Warnings() {
		if w.Severity != definition.SeverityWarning {
			t.Errorf("an error among the warnings: %v", w)
		}
	}
}
