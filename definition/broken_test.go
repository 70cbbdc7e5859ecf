// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/refrain-dev/refrain/definition"
)

// brokenFolder has definitions with mistakes, NAME.yaml, each with what [definition.Load] reports, NAME.golden. Both are in
// an archive of their topic, or are files of their own because an archive would change their bytes.
const brokenFolder = "testdata/broken"

// broken is a definition with mistakes.
type broken struct {
	name, golden string
	data         []byte

	archive string // its file, or ""
}

// file returns the name that the definition has in its problems.
func (b broken) file() string { return brokenFolder + "/" + b.name + ".yaml" }

// load reads the definition as if it were a file in the folder.
func (b broken) load() (*definition.Definition, error) {
	return definition.Parse(b.file(), b.data, definition.Options{FS: os.DirFS(brokenFolder)})
}

// write replaces the golden file.
func (b broken) write(t *testing.T, golden string) {
	t.Helper()
	name, data := brokenFolder+"/"+b.name+".golden", []byte(golden)
	if b.archive != "" {
		a, err := txtar.ParseFile(b.archive)
		if err != nil {
			t.Fatal(err)
		}
		isGolden := func(f txtar.File) bool { return f.Name == filepath.Base(name) }
		if i := slices.IndexFunc(a.Files, isGolden); i >= 0 {
			a.Files[i].Data = data
		} else {
			i := slices.IndexFunc(a.Files, func(f txtar.File) bool { return f.Name == b.name+".yaml" })
			a.Files = slices.Insert(a.Files, i+1, txtar.File{Name: filepath.Base(name), Data: data})
		}
		name, data = b.archive, txtar.Format(a)
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// brokenDefinitions returns the definitions of brokenFolder.
func brokenDefinitions(t testing.TB) []broken {
	t.Helper()
	files := &txtar.Archive{}
	var list []broken
	add := func(archive string, a *txtar.Archive) {
		golden := make(map[string]string)
		for _, f := range a.Files {
			golden[f.Name] = string(f.Data)
		}
		for _, f := range a.Files {
			if name, ok := strings.CutSuffix(f.Name, ".yaml"); ok {
				list = append(list, broken{name, golden[name+".golden"], f.Data, archive})
			}
		}
	}
	entries, err := os.ReadDir(brokenFolder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := filepath.Join(brokenFolder, e.Name())
		if e.IsDir() {
			continue // for refs
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(name) == ".txtar" {
			add(name, txtar.Parse(data))
		} else {
			files.Files = append(files.Files, txtar.File{Name: e.Name(), Data: data})
		}
	}
	add("", files)
	return list
}
