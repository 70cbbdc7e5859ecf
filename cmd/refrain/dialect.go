// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/refrain-dev/refrain/cmd/refrain/internal/deffile"
	"github.com/refrain-dev/refrain/cmd/refrain/internal/term"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/definition/dialect"
)

// dialectFlags are the flags of refrain import and refrain export where they
// are about definitions.
type dialectFlags struct {
	dialect string // --from or --to
	out     string
	agent   string
	json    bool
	force   bool
}

func newImport(e *term.Env) *cobra.Command {
	var f dialectFlags
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Make a definition of a file of another product",
		Long: `ADK Agent Config (adk), Evo AI's JSON (evo), or Robomotion's nodes as JSON,
YAML or main.ts (robomotion). The definition goes to stdout. A report on stderr says
what was converted, what was changed and what was left out, and why. Exit code 2 if the
definition cannot be run as it is.

refrain run, validate, check, rehearse, graph and export also take such files directly.`,
		Example: `  refrain import --from adk agent/root_agent.yaml -o loop.yaml
  refrain import --from evo agents.json --agent refiner
  refrain import --from robomotion main.ts --json > loop.yaml 2> report.json`,
		Args: term.Args(1, 1),
		RunE: func(_ *cobra.Command, args []string) error { return importDefinition(e, f, args[0]) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.dialect, "from", "", "product that the file is from: adk, evo or robomotion (default: found by its content)")
	fl.StringVarP(&f.out, "output", "o", "", "write to a new `FILE` or into a folder, in place of stdout")
	fl.StringVar(&f.agent, "agent", "", "`NAME` of the root agent, if the file has several agents")
	fl.BoolVar(&f.json, "json", false, "write the report as JSON")
	fl.BoolVar(&f.force, "force", false, "overwrite an existing file")
	return cmd
}

func newExport(e *term.Env) *cobra.Command {
	var f dialectFlags
	cmd := &cobra.Command{
		Use:   "export FILE",
		Short: "Write a definition for another product",
		Long: `The format is ADK Agent Config: one file for each agent, root_agent.yaml first, in
the strict form that ADK for Python checks. What ADK cannot express is reported on
stderr. Without -o the files go to stdout, one after the other.`,
		Example: "  refrain export --to adk loop.yaml -o agent/",
		Args:    term.Args(1, 1),
		RunE:    func(_ *cobra.Command, args []string) error { return exportDefinition(e, f, args[0]) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.dialect, "to", "", "format to write: adk")
	fl.StringVarP(&f.out, "output", "o", "", "`FOLDER` to write the files to, in place of stdout")
	fl.BoolVar(&f.json, "json", false, "write the report as JSON")
	fl.BoolVar(&f.force, "force", false, "overwrite existing files")
	return cmd
}

// importDefinition is refrain import of a definition.
func importDefinition(e *term.Env, f dialectFlags, file string) error {
	opts := dialect.Options{Agent: f.agent}
	if f.dialect != "" {
		var err error
		if opts.Dialect, err = dialect.Parse(f.dialect); err != nil {
			return fmt.Errorf("--from: %w", err)
		}
	}
	res, err := dialect.Load(file, opts)
	if errors.Is(err, dialect.ErrUnknown) {
		return fmt.Errorf("%w; say what it is with --from", err)
	}
	if err != nil {
		return term.UsageError(err)
	}
	if err := writeReport(e.Stderr, f, res.Report); err != nil {
		return term.Failure(err)
	}
	if res.YAML != nil {
		if err := writeImported(e, f, res); err != nil {
			return term.UsageError(err)
		}
	}
	if res.Err() != nil {
		return &term.Exit{Code: term.ExitUsage} // the report says why
	}
	return nil
}

func writeReport(w io.Writer, f dialectFlags, r *dialect.Report) error {
	if !f.json {
		return r.Format(w)
	}
	enc := term.NewJSON(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

func writeImported(e *term.Env, f dialectFlags, res *dialect.Result) error {
	if f.out == "" {
		text := res.YAML
		if term.IsTerminal(e.Stdout) {
			text = term.EscapeJSON(text)
		}
		_, err := term.Exactly(e.Stdout).Write(text)
		return err
	}
	out := f.out
	if info, err := os.Stat(out); err == nil && info.IsDir() || strings.HasSuffix(out, "/") {
		if err := os.MkdirAll(out, 0o755); err != nil {
			return err
		}
		out = filepath.Join(out, res.Report.Name+".yaml")
	}
	root, err := os.OpenRoot(filepath.Dir(out))
	if err != nil {
		return err
	}
	defer root.Close()
	return writeNew(root, filepath.Base(out), res.YAML, f.force)
}

// writeNew writes a file, and over one that is there only if it is to.
func writeNew(root *os.Root, name string, data []byte, force bool) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if !force {
		flags |= os.O_EXCL
	}
	file, err := root.OpenFile(name, flags, 0o644)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s is there already; --force writes over it", filepath.Join(root.Name(), name))
	}
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// exportDefinition is refrain export of a definition.
func exportDefinition(e *term.Env, f dialectFlags, file string) error {
	switch {
	case f.dialect == "":
		return errors.New("say what to write: --to adk")
	case f.dialect != string(dialect.ADK):
		return fmt.Errorf("--to %s: only adk can be written; evo and robomotion can be read, with refrain import", f.dialect)
	}
	def, err := deffile.Load(e, file)
	if err != nil {
		return term.UsageError(err)
	}
	files, report := dialect.Export(file, def)
	if err := writeReport(e.Stderr, f, report); err != nil {
		return term.Failure(err)
	}
	if files == nil {
		return &term.Exit{Code: term.ExitUsage}
	}
	if err := writeFiles(e, f, files); err != nil {
		return term.UsageError(err)
	}
	return nil
}

func writeFiles(e *term.Env, f dialectFlags, files []dialect.File) error {
	if f.out == "" {
		for n, file := range files {
			if n > 0 {
				fmt.Fprintln(e.Stdout, "---")
			}
			text := file.Data
			if term.IsTerminal(e.Stdout) {
				text = term.EscapeJSON(text)
			}
			if _, err := fmt.Fprintf(term.Exactly(e.Stdout), "# %s\n%s", file.Name, text); err != nil {
				return err
			}
		}
		return nil
	}
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(f.out)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := inTheWay(root, files, f.force); err != nil {
		return err
	}
	for n, file := range files {
		if err := writeNew(root, file.Name, file.Data, f.force); err != nil {
			if !f.force {
				for _, written := range files[:n] { // all of them, or none
					err = errors.Join(err, root.Remove(written.Name))
				}
			}
			return err
		}
	}
	return nil
}

// inTheWay names all files that keep an export from being written: it is written
// as a whole, or not at all.
func inTheWay(root *os.Root, files []dialect.File, force bool) error {
	var there []string
	for _, file := range files {
		info, err := root.Lstat(file.Name)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return err
		case info.IsDir():
			return fmt.Errorf("%s is a folder; nothing was written", filepath.Join(root.Name(), file.Name))
		case !force:
			there = append(there, filepath.Join(root.Name(), file.Name))
		}
	}
	switch len(there) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%s is there already, and nothing was written; --force writes over it", there[0])
	}
	return fmt.Errorf("%s are there already, and nothing was written; --force writes over them", strings.Join(there, ", "))
}
