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
				err = writeStarter(dir, files)
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

// starterFile is one file that init writes.
type starterFile struct {
	name string
	data []byte
}

// files are those of the template, the definition with the line for editors, and
// the schema that this names.
func (s starter) files() ([]starterFile, error) {
	dir := "templates/" + s.name
	entries, err := fs.ReadDir(templates, dir)
	if err != nil {
		return nil, err
	}
	var files []starterFile
	for _, entry := range entries {
		data, err := fs.ReadFile(templates, dir+"/"+entry.Name())
		if err != nil {
			return nil, err
		}
		if entry.Name() == "loop.yaml" {
			data = append([]byte(deffile.SchemaLine+schemaFile+"\n"), data...)
		}
		files = append(files, starterFile{entry.Name(), data})
	}
	return append(files, starterFile{schemaFile, definition.Schema()}), nil
}

// writeStarter writes the files into a folder: all, or none where one of them is
// there already. A copy of the same schema may be.
func writeStarter(dir string, files []starterFile) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	var taken []string
	for _, f := range files {
		if _, err := root.Lstat(f.name); err == nil && !sameFile(root, f) {
			taken = append(taken, filepath.Join(dir, f.name))
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if taken != nil {
		return fmt.Errorf("%s: there already, so nothing was written; name another folder, as in refrain init NAME",
			strings.Join(taken, ", "))
	}
	for _, f := range files {
		if sameFile(root, f) {
			continue
		}
		out, err := root.OpenFile(f.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		_, err = out.Write(f.data)
		if err := errors.Join(err, out.Close()); err != nil {
			return err
		}
	}
	return nil
}

// sameFile reports whether the schema is there as it would be written. What a
// person may have worked on is never taken for the same.
func sameFile(root *os.Root, f starterFile) bool {
	if f.name != schemaFile {
		return false
	}
	data, err := root.ReadFile(f.name)
	return err == nil && bytes.Equal(data, f.data)
}

// next says what there is now, and what to do with it.
func (s starter) next(w io.Writer, dir string, files []starterFile) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Template %s (%s), written to:\n", s.name, s.about)
	scripted := false
	for _, f := range files {
		fmt.Fprintf(&b, "  %s\n", filepath.Join(dir, f.name))
		scripted = scripted || f.name == "script.yaml"
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
