// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/deffile"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/dialect"
	"github.com/refrain-dev/refrain/expr"
)

// templates has a folder for each template. What a folder has is what init writes.
//
//go:embed templates
var templates embed.FS

// starter is one of the templates.
type starter struct {
	name, about string
	// command is what runs it, in its folder.
	command string
}

var starters = []starter{
	{"refine", "improve a text until its marks are good", `refrain run loop.yaml "An advertisement for a bakery"`},
	{"retry", "check an answer, and ask again with what was wrong", "refrain run loop.yaml"},
	{"poll", "ask about a job until it is done; no model", "refrain run loop.yaml"},
	{"codegen", "write a program until its tests pass", "refrain run loop.yaml"},
	{"negotiate", "let a seller and a buyer bargain until they agree", "refrain run loop.yaml"},
}

// schemaFile is the copy of the schema that init writes beside a definition.
const schemaFile = "refrain.schema.json"

func newInit(e *term.Env) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Create a definition from a template",
		Long: `Write a small definition with comments into DIR (default: the current folder), with all
that it needs to run at once and offline: a script answers in place of a model. DIR is
created if needed. Files that exist are never overwritten.

The templates:
` + starterList(),
		Example: `  refrain init
  refrain init shop --template negotiate`,
		Args: term.Args(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := starterNamed(name)
			if err != nil {
				return fmt.Errorf("--template: %w", err)
			}
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			if ext := strings.ToLower(filepath.Ext(dir)); ext == ".yaml" || ext == ".yml" {
				return fmt.Errorf("%s is the name of a file: give the folder that loop.yaml is to be in", dir)
			}
			files, err := s.files()
			if err == nil {
				missing := slices.DeleteFunc(slices.Clone(files), func(f dialect.File) bool { return sameSchema(dir, f) })
				err = writeAll(dir, missing, false)
			}
			if there, ok := errors.AsType[thereError](err); ok {
				err = fmt.Errorf("%s: there already, so nothing was written; name another folder, as in refrain init NAME",
					strings.Join(there, ", "))
			}
			if err != nil {
				return term.UsageError(err)
			}
			return s.next(e.Stdout, dir, files)
		},
	}
	cmd.Flags().StringVar(&name, "template", starters[0].name,
		"`TEMPLATE` to write: "+strings.Join(starterNames(), ", "))
	return cmd
}

func starterNames() []string {
	names := make([]string, len(starters))
	for i, s := range starters {
		names[i] = s.name
	}
	return names
}

func starterList() string {
	var b strings.Builder
	for _, s := range starters {
		fmt.Fprintf(&b, "\n  %-10s %s", s.name, s.about)
	}
	return b.String()
}

func starterNamed(name string) (starter, error) {
	for _, s := range starters {
		if s.name == name {
			return s, nil
		}
	}
	if near := expr.Nearest(name, starterNames()); near != "" {
		return starter{}, fmt.Errorf("there is no template %q (did you mean %s?)", name, near)
	}
	return starter{}, fmt.Errorf("there is no template %q; there are %s", name, strings.Join(starterNames(), ", "))
}

// files are those of the template, the definition with the line for editors, and
// the schema that this names.
func (s starter) files() ([]dialect.File, error) {
	dir := "templates/" + s.name
	entries, err := fs.ReadDir(templates, dir)
	if err != nil {
		return nil, err
	}
	var files []dialect.File
	for _, entry := range entries {
		data, err := fs.ReadFile(templates, dir+"/"+entry.Name())
		if err != nil {
			return nil, err
		}
		if entry.Name() == "loop.yaml" {
			data = append([]byte(deffile.SchemaLine+schemaFile+"\n"), data...)
		}
		files = append(files, dialect.File{Name: entry.Name(), Data: data})
	}
	return append(files, dialect.File{Name: schemaFile, Data: definition.Schema()}), nil
}

// sameSchema reports whether the schema is there as it would be written. What a
// person may have worked on is never taken for the same.
func sameSchema(dir string, f dialect.File) bool {
	if f.Name != schemaFile {
		return false
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer root.Close()
	data, err := root.ReadFile(f.Name)
	return err == nil && bytes.Equal(data, f.Data)
}

// next says what there is now, and what to do with it.
func (s starter) next(w io.Writer, dir string, files []dialect.File) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Template %s (%s), written to:\n", s.name, s.about)
	scripted := false
	for _, f := range files {
		fmt.Fprintf(&b, "  %s\n", filepath.Join(dir, f.Name))
		scripted = scripted || f.Name == "script.yaml"
	}
	if other := filepath.Base(dir); other != s.name && slices.Contains(starterNames(), other) {
		fmt.Fprintf(&b, "\n%s is the name of the folder. For the template %s: refrain init --template %s %s\n", other,
			other, other, dir)
	}
	b.WriteString("\nRun it:\n")
	if dir != "." {
		fmt.Fprintf(&b, "  cd %s\n", term.ShellWord(dir))
	}
	fmt.Fprintf(&b, "  %s\n", s.command)
	if scripted {
		fmt.Fprintf(&b, "\nscript.yaml answers in place of a model. To ask one, when its key is set:\n  %s --model "+
			"openai/gpt-5-mini\n", s.command)
	}
	b.WriteString("\nThen change loop.yaml, and see how it can end, what it can cost, and which guard catches which " +
		"fault:\n  " +
		"refrain check loop.yaml\n  refrain graph loop.yaml\n  refrain rehearse loop.yaml\n")
	_, err := io.WriteString(w, b.String())
	return err
}
