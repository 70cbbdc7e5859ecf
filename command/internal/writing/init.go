// SPDX-License-Identifier: Apache-2.0

// Package writing has the verbs about files: a definition is written, checked, drawn, rehearsed and translated, and runs
// are exported and imported. NewVERB makes the verb.
package writing

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/deffile"
	"github.com/refrain-dev/refrain/command/internal/doctor"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/dialect"
	"github.com/refrain-dev/refrain/internal/process/shellword"
	"github.com/refrain-dev/refrain/internal/values/suggest"
)

// templates has a folder for each template. What a folder has is what init writes.
//
//go:embed templates
var templates embed.FS

// starter describes a template.
type starter struct {
	name, about string
	// file is the name of the definition. command runs the definition in its folder.
	file, command string
}

var starters = []starter{
	{"refine", "improve a text until its marks are good", "loop.yaml", `refrain run loop.yaml "An advertisement for a bakery"`},
	{"retry", "check an answer, and ask again with what was wrong", "loop.yaml", "refrain run loop.yaml"},
	{"poll", "ask about a job until it is done; no model", "loop.yaml", "refrain run loop.yaml"},
	{"codegen", "write a program until its tests pass", "loop.yaml", "refrain run loop.yaml"},
	{"negotiate", "let a seller and a buyer bargain until they agree", "loop.yaml", "refrain run loop.yaml"},
	{"tune", "improve the instructions of an agent over cases, with a verdict on hidden ones", "tune.yaml", "refrain run tune.yaml"},
	{"fix-tests", "let a coding agent work until the tests of a git repository pass", "fix-tests.yaml", "refrain run fix-tests.yaml"},
	{"optimize-metric", "let a coding agent improve a number that a command measures", "optimize-metric.yaml",
		"refrain run optimize-metric.yaml --set measure='sh measure.sh' --set tests='go test ./...'"},
	{"review", "let coding agents review the changes of a git repository, and correct them", "review.yaml",
		"refrain run review.yaml --set base=$(git merge-base main HEAD) --set tests='go test ./...'"},
}

// schemaFile is the copy of the schema that init writes beside a definition.
const schemaFile = "refrain.schema.json"

// Review returns the definition of the template review.
func Review() []byte {
	text, err := templates.ReadFile("templates/review/review.yaml")
	if err != nil {
		panic(err) // it is part of the program
	}
	return text
}

func NewInit(e *term.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "init [TEMPLATE] [DIR]",
		Short: "Create a definition from a template",
		Long: `Write a small definition with comments into DIR (default: the current folder). You can
run the definition at once and offline, because a script answers in place of a model.
Only fix-tests, optimize-metric and review need more: put them into a git repository, and
install Claude Code. DIR is created if needed; if DIR has the name of a template, write it as a
path, such as ./poll. Existing files are never overwritten.

The templates (the first is the default):
` + starterList(),
		Example: `  refrain init
  refrain init negotiate shop
  refrain init fix-tests`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) (all []cobra.Completion, _ cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			for _, s := range starters {
				all = append(all, cobra.CompletionWithDesc(s.name, s.about))
			}
			return all, cobra.ShellCompDirectiveKeepOrder | cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			s, dir, err := chosen(args)
			if err != nil {
				return err
			}
			if ext := strings.ToLower(filepath.Ext(dir)); ext == ".yaml" || ext == ".yml" {
				return fmt.Errorf("%s is the name of a file; give the folder for %s", dir, s.file)
			}
			files, err := s.files()
			if err == nil {
				missing := files
				if same, _ := deffile.SameSchema(dir, schemaFile); same { // what a person may have worked on is never taken for the same
					missing = files[:len(files)-1]
				}
				err = writeAll(dir, missing, false)
			}
			if there, ok := errors.AsType[thereError](err); ok {
				err = fmt.Errorf("%s: already there, so nothing was written; name another folder, as in refrain init %s NAME",
					strings.Join(there, ", "), s.name)
			}
			if err != nil {
				return term.UsageError(err)
			}
			return s.next(cmd.Context(), e, dir, files)
		},
	}
}

// chosen returns the template and the folder that the arguments name.
func chosen(args []string) (s starter, dir string, err error) {
	dir = "."
	if len(args) == 0 {
		return starters[0], dir, nil
	}
	if len(args) == 1 && strings.ContainsAny(args[0], `/\`) {
		return starters[0], args[0], nil
	}
	s, err = starterNamed(args[0])
	if len(args) == 2 {
		return s, args[1], err
	}
	if err == nil {
		return s, dir, nil
	}
	if _, there := os.Stat(args[0]); there != nil && suggest.Nearest(args[0], starterNames()) != "" {
		return s, dir, fmt.Errorf("%w; for a folder of this name write ./%s", err, args[0])
	}
	return starters[0], args[0], nil
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
		fmt.Fprintf(&b, "\n  %-15s  %s", s.name, s.about)
	}
	return b.String()
}

func starterNamed(name string) (starter, error) {
	for _, s := range starters {
		if s.name == name {
			return s, nil
		}
	}
	if near := suggest.Nearest(name, starterNames()); near != "" {
		return starter{}, fmt.Errorf("there is no template %q (did you mean %s?)", name, near)
	}
	return starter{}, fmt.Errorf("there is no template %q; there are %s", name, strings.Join(starterNames(), ", "))
}

// files returns the files of the template. The definition begins with the line that names the schema for editors, and the
// schema is among the files.
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
		if entry.Name() == s.file {
			data = append([]byte(deffile.SchemaLine+schemaFile+"\n"), data...)
		}
		files = append(files, dialect.File{Name: entry.Name(), Data: data})
	}
	return append(files, dialect.File{Name: schemaFile, Data: definition.Schema()}), nil
}

// next prints the files that were written, what the definition still lacks, and what to do next.
func (s starter) next(ctx context.Context, e *term.Env, dir string, files []dialect.File) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Template %s (%s), written to:\n", s.name, s.about)
	scripted := false
	for _, f := range files {
		fmt.Fprintf(&b, "  %s\n", filepath.Join(dir, f.Name))
		scripted = scripted || f.Name == "script.yaml"
	}
	if lacks := doctor.New(e, false, 0).Lacks(ctx, filepath.Join(dir, s.file)); len(lacks) > 0 {
		b.WriteString("\nThe definition cannot run yet:\n")
		for _, what := range lacks {
			fmt.Fprintf(&b, "  %s\n", what)
		}
	}
	b.WriteString("\nRun it:\n")
	if dir != "." {
		fmt.Fprintf(&b, "  cd %s\n", shellword.Of(dir))
	}
	fmt.Fprintf(&b, "  %s\n", s.command)
	if scripted {
		fmt.Fprintf(&b, "\nscript.yaml answers in place of a model. To ask a model, set its key and run:\n  %s --model "+
			"openai/gpt-5-mini\n", s.command)
	}
	fmt.Fprintf(&b, "\nThen change %[1]s, and see how a run can end, what it can cost, and which guard catches which fault:\n"+
		"  refrain check %[1]s\n  refrain graph %[1]s\n  refrain rehearse %[1]s\n", s.file)
	_, err := io.WriteString(e.Stdout, e.Hint(b.String()))
	return err
}
