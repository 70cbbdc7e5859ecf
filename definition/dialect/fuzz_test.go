// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/definition/dialect"
)

// FuzzImport: no text makes an import panic; what comes out is a definition that
// loads, or the report says what is wrong.
func FuzzImport(f *testing.F) {
	for n, d := range dialect.All() {
		for _, name := range mains {
			files, _ := filepath.Glob(filepath.Join("testdata", string(d), "*", name))
			for _, file := range files {
				data, err := os.ReadFile(file)
				if err != nil {
					f.Fatal(err)
				}
				f.Add(data, byte(n))
			}
		}
	}
	other := fstest.MapFS{
		"writer.yaml": {Data: []byte("name: writer\ninstruction: 'Write {topic}'\ntools: [{name: exit_loop}]\noutput_key: score")},
		"loop.yaml":   {Data: []byte("agent_class: LoopAgent\nname: loop\nsub_agents: [{config_path: writer.yaml}]")},
	}
	f.Fuzz(func(t *testing.T, data []byte, n byte) {
		d := dialect.All()[int(n)%len(dialect.All())]
		_ = dialect.Detect("fuzz", data)
		res, err := dialect.Import("fuzz.yaml", data, dialect.Options{Dialect: d, FS: other})
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
				if p.Code == definition.CodeSyntax || p.Code == definition.CodeField || p.Code == definition.CodeName || p.Code == definition.CodeSameName {
					t.Errorf("an import must not write that: %v\n%s", p, res.YAML)
				}
			}
			return
		}
		files, report := dialect.Export("fuzz.yaml", def)
		if (files == nil) != (report.Count(dialect.Failed) > 0) {
			t.Errorf("%d files, %d errors", len(files), report.Count(dialect.Failed))
		}
	})
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
		if it.Kind != dialect.Mapped && it.Message == "" || it.Line < 0 || it.Line > 0 && it.Column < 1 {
			t.Errorf("item %+v", it)
		}
	}
}
