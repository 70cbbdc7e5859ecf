// SPDX-License-Identifier: Apache-2.0

package writing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/command/internal/deffile"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/authoring/dialect"
	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/runs/replay"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// exportDefinition runs refrain export for a definition.
func exportDefinition(e *term.Env, f dialectFlags, file string) error {
	switch {
	case f.dialect == "":
		return errors.New("give the format to write: --to adk")
	case f.dialect != string(dialect.ADK):
		return fmt.Errorf("--to %s: give adk, the only format that can be written; refrain import reads evo and robomotion",
			f.dialect)
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
	return term.UsageError(writeFiles(e, f, files))
}

func writeFiles(e *term.Env, f dialectFlags, files []dialect.File) error {
	if f.out == "" {
		for n, file := range files {
			if n > 0 {
				fmt.Fprintln(e.Stdout, "---")
			}
			text := file.Data
			if term.IsTerminal(e.Stdout) {
				text = progress.EscapeJSON(text)
			}
			if _, err := fmt.Fprintf(term.Exactly(e.Stdout), "# %s\n%s", file.Name, text); err != nil {
				return err
			}
		}
		return nil
	}
	return writeAll(f.out, files, f.force)
}

// bundle is appended to the name of an export, for the file with the files of the workspace.
const bundle = ".bundle"

// exportFlags are the flags of refrain export for a run.
type exportFlags struct {
	dialectFlags
	store                string
	audit, files, script bool
}

// NewExport returns refrain export, which exports a run or, with --to, a definition.
func NewExport(e *term.Env) *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export RUN|FILE",
		Short: "Export a run to a file, or a definition to another product",
		Long: `Export a run as JSON Lines: one line about the run, then one for each event. refrain
import reads the file into another store; show, events, verify and backtest read it like
a run.

The last line has a hash of the whole export, including the definition and the inputs.
refrain import refuses a changed file. To detect changes later, keep the hash in another
place and use refrain verify --expect. With --audit each line has a hash, so verify can
name the first changed event. The files of a workspace are exported only with --files:
every version that the run has kept goes into a git bundle beside the file, and refrain
import reads both files. The transcripts of coding agents are not exported; print them
with refrain show RUN --transcript.

With --script, write the answers of models as a script instead, one after the other for each
agent. Edit it, and play it with refrain run loop.yaml --model scripted/script.yaml: models
are not asked, and everything else happens again. stderr says what a script cannot have.
refrain replay plays an export as it is.

With --to adk, export a definition as ADK Agent Config: one file for each agent,
root_agent.yaml first, in the strict form that ADK for Python checks. A report on stderr
lists what ADK cannot express. Without -o the files go to stdout, one after the other.`,
		Example: `  refrain export last -o run.jsonl
  refrain export r_1f0c --audit -o audit.jsonl
  refrain export last --files -o run.jsonl
  refrain export last --script -o script.yaml
  refrain export last | ssh host refrain import -
  refrain export --to adk loop.yaml -o agent/`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("to") {
				return exportDefinition(e, f.dialectFlags, args[0])
			}
			if f.script {
				return exportScript(cmd.Context(), e, f, args[0])
			}
			return runExport(cmd.Context(), e, f, args[0])
		},
	}
	fl := cmd.Flags()
	runstore.Flag(fl, &f.store)
	fl.StringVar(&f.dialect, "to", "", "format to write: adk")
	fl.StringVarP(&f.out, "output", "o", "", "write to a new `FILE`, or a definition to a folder, in place of stdout")
	fl.BoolVar(&f.audit, "audit", false, "write a hash for each event of a run, in addition to the hash at the end")
	fl.BoolVar(&f.files, "files", false, "also write the files of a workspace, to FILE.bundle beside the FILE of -o")
	fl.BoolVar(&f.script, "script", false, "write the answers of models as a script, which scripted/FILE plays")
	fl.BoolVar(&f.json, "json", false, "write the report as JSON")
	fl.BoolVar(&f.force, "force", false, "overwrite existing files")
	return cmd
}

// exportScript writes the answers of a run as a script.
func exportScript(ctx context.Context, e *term.Env, f exportFlags, word string) error {
	if f.audit || f.files {
		return term.UsageError(errors.New("--audit and --files are for the log of a run; leave them out with --script"))
	}
	run, err := runstore.Open(ctx, e, f.store, word)
	if err != nil {
		return err
	}
	defer run.Close()
	rec, err := replay.Read(run.Run, &e.Code)
	var text []byte
	var lost []string
	if err == nil {
		text, lost, err = rec.Script()
	}
	if err != nil {
		return term.Failure(fmt.Errorf("export the script of run %s: %w", run.ID, err))
	}
	for _, what := range lost {
		fmt.Fprintln(e.Stderr, brief.Clean(what))
	}
	if text == nil {
		return term.UsageError(fmt.Errorf("run %s has no answer of a model, so there is no script", run.ID))
	}
	head := fmt.Sprintf("# The answers of models in run %s. Play them with: refrain run %s --model scripted/FILE\n", brief.Clean(run.ID), brief.Clean(rec.File()))
	if f.out == "" || f.out == "-" {
		_, err = term.Exactly(e.Stdout).Write(append([]byte(head), text...))
		return term.Failure(err)
	}
	err = term.WriteFile(f.out, f.force, func(w io.Writer) error {
		_, err := w.Write(append([]byte(head), text...))
		return err
	})
	if errors.Is(err, fs.ErrExist) {
		return term.UsageError(fmt.Errorf("-o %s: this file exists; choose another name, or overwrite it with --force", f.out))
	}
	return term.Failure(err)
}

// runExport writes a run to a file.
func runExport(ctx context.Context, e *term.Env, f exportFlags, word string) error {
	run, err := runstore.Open(ctx, e, f.store, word)
	if err != nil {
		return err
	}
	defer run.Close()
	if run.File != nil && run.File.Head != nil {
		_, found, err := run.Chained()
		if err == nil && found != nil {
			err = fmt.Errorf("%s: %s: the file was changed, so it is not exported again; export the run from its store", word, found)
		}
		if err != nil {
			return term.Failure(err)
		}
	}
	trees, asked := false, false
	for ev := range run.All() {
		trees, asked = trees || len(runfiles.Trees(ev.Actions.StateDelta)) > 0, asked || taskagent.HasAnswer(ev)
	}
	if asked && run.File == nil {
		fmt.Fprintf(e.Stderr, "the export has no transcripts of coding agents; keep them with: refrain show %s --transcript >FILE\n", run.ID)
	}
	root := ""
	switch {
	case f.files && (f.out == "" || f.out == "-"):
		return term.UsageError(errors.New("--files writes a second file beside the export; name the export with -o FILE"))
	case f.files && !trees:
		return term.UsageError(fmt.Errorf("run %s has changed no files of a workspace; export it without --files", run.ID))
	case f.files:
		if _, err := os.Lstat(f.out + bundle); err == nil && !f.force {
			return term.UsageError(fmt.Errorf("%s: this file exists; choose another name, or overwrite it with --force", f.out+bundle))
		}
		if root, err = runstore.FilesRoot(run.All()); err != nil {
			return term.Failure(err)
		}
	case trees:
		fmt.Fprintln(e.Stderr, "the export has only the hashes of the workspace's files, so the run cannot be resumed where the export is "+
			"imported; export the files too with --files")
	}
	opts := runlog.ExportOptions{Audit: f.audit, Version: term.Version()}
	if f.out == "" || f.out == "-" {
		if _, err := run.Export(term.Exactly(e.Stdout), opts); err != nil {
			return term.Failure(fmt.Errorf("export run %s: %w", run.ID, err))
		}
		return nil
	}
	var hash string
	err = term.WriteFile(f.out, f.force, func(w io.Writer) (err error) {
		hash, err = run.Export(w, opts)
		if err == nil && f.files { // before the export has its name, so that no export lacks its files
			err = workspace.Export(ctx, runfiles.Store(root), run.ID, f.out+bundle)
		}
		return err
	})
	switch {
	case errors.Is(err, fs.ErrExist):
		return term.UsageError(fmt.Errorf("-o %s: this file exists; choose another name, or overwrite it with --force",
			f.out))
	case err != nil:
		return term.Failure(fmt.Errorf("export run %s: %w", run.ID, err))
	case f.files:
		fmt.Fprintf(e.Stderr, "%s: the files of %s\n", f.out+bundle, run.ID)
	}
	fmt.Fprintf(e.Stderr, "%s: %d events of %s", f.out, run.Len(), run.ID)
	if f.audit {
		fmt.Fprintf(e.Stderr, ", %s", hash)
	}
	fmt.Fprintln(e.Stderr)
	return nil
}
