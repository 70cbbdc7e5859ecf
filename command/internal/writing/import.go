// SPDX-License-Identifier: Apache-2.0

package writing

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/authoring/dialect"
	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/process/shellword"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/supervisor"
)

// importDefinition runs refrain import for a definition.
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
		return fmt.Errorf("%w; name the product that wrote the file with --from", err)
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

func writeImported(e *term.Env, f dialectFlags, res *dialect.Result) error {
	if f.out == "" {
		text := res.YAML
		if term.IsTerminal(e.Stdout) {
			text = progress.EscapeJSON(text)
		}
		_, err := term.Exactly(e.Stdout).Write(text)
		return err
	}
	out := f.out
	if info, err := os.Stat(out); err == nil && info.IsDir() || strings.HasSuffix(out, "/") {
		out = filepath.Join(out, res.Report.Name+".yaml")
	}
	file := dialect.File{Name: filepath.Base(out), Data: res.YAML}
	return writeAll(filepath.Dir(out), []dialect.File{file}, f.force)
}

// importFlags are the flags of refrain import.
type importFlags struct {
	dialectFlags
	store, as string
}

// NewImport returns refrain import, which imports a run or, with --from or from a file without a run, a definition.
func NewImport(e *term.Env) *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Import a run, or a definition of another product",
		Long: `Import a run with all its events, from a file that refrain export or refrain run
--record has written, into a store. The run keeps its ID unless you give --as. A changed
or incomplete file is refused. "-" reads stdin. A run that has not ended is paused, and
continues only when a person resumes it. If refrain export --files has written FILE.bundle beside FILE, the files of
the run's workspace are imported into the current folder. If the folder in which the run
worked is on this machine, import the run in that folder. A file of more than 10 GiB is
refused, as is a workspace version of more than 10 GiB or a million files.

Any other file, and with --from every file, is converted into a definition. The file may
be ADK Agent Config (adk), Evo AI's JSON (evo), or Robomotion's nodes as JSON, YAML or
main.ts (robomotion). The definition goes to stdout. A report on stderr says what was
converted, changed and left out, and why. Exit code 2 if the definition cannot be run
without changes.

refrain run, validate, check, rehearse, graph and export also take such files directly.`,
		Example: `  refrain import run.jsonl
  refrain import run.jsonl --as r_copy --store sqlite:other.db
  refrain import --from adk agent/root_agent.yaml -o loop.yaml
  refrain import --from evo agents.json --agent refiner
  refrain import --from robomotion main.ts --json > loop.yaml 2> report.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("from") || args[0] != "-" && !cmd.Flags().Changed("as") && !holdsRun(args[0]) {
				return importDefinition(e, f.dialectFlags, args[0])
			}
			return runImport(cmd.Context(), e, f, args[0])
		},
	}
	fl := cmd.Flags()
	runstore.Flag(fl, &f.store)
	fl.StringVar(&f.as, "as", "", "`ID` of the run in this store (default: the ID in the file)")
	fl.StringVar(&f.dialect, "from", "", "product that wrote the file: adk, evo or robomotion (default: detected from "+
		"its content)")
	fl.StringVarP(&f.out, "output", "o", "", "write to a new `FILE` or into a folder, in place of stdout")
	fl.StringVar(&f.agent, "agent", "", "`NAME` of the root agent, if the file has several agents")
	fl.BoolVar(&f.json, "json", false, "write the report as JSON")
	fl.BoolVar(&f.force, "force", false, "overwrite an existing file")
	return cmd
}

// holdsRun reports whether a file contains a run: its first line is a JSON object that is an event or the head of an export.
func holdsRun(name string) bool {
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return false // a pipe can be read only once
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	line, err := runlog.ReadLine(bufio.NewReaderSize(f, 1<<16))
	var first struct{ Type, InvocationID string }
	return (err == nil || errors.Is(err, io.EOF)) && json.Unmarshal(line, &first) == nil &&
		(first.Type == "run" || first.InvocationID != "")
}

// runImport imports a run from a file into the store.
func runImport(ctx context.Context, e *term.Env, f importFlags, name string) error {
	log, err := runstore.OpenLog(e, name)
	if err != nil {
		return err
	}
	defer log.Close()
	run := log.Run()
	v, err := run.Sound()
	if err != nil {
		return term.Failure(fmt.Errorf("%s: %w; nothing was imported", name, err))
	}
	switch {
	case f.as != "":
		run.ID = f.as
	case run.ID == "":
		run.ID = supervisor.NewID() // the file has no ID
	}
	if err := runstore.CheckID(run.ID); err != nil {
		if f.as == "" {
			err = fmt.Errorf("%s: %w; give the run an ID with --as", name, err)
		}
		return term.UsageError(err)
	}
	carried, root, err := receive(ctx, run, name)
	if err != nil {
		return term.Failure(fmt.Errorf("%s: %w; nothing was imported", name+bundle, err))
	}
	if carried != nil {
		defer carried.Close()
	}
	events := run.Len()
	if err := run.Import(filepath.Base(name)); err != nil {
		return term.Failure(fmt.Errorf("%s: %w; nothing was imported", name, err))
	}
	if err := runstore.PrepareFolder(e, f.store); err != nil {
		return err
	}
	store, closeStore, err := runstore.MakeService(ctx, e, f.store)
	if err != nil {
		return err
	}
	defer closeStore()
	switch err := run.Save(ctx, store, runstore.KeyOf(run.ID)); {
	case errors.Is(err, session.ErrExists):
		return term.Failure(fmt.Errorf("run %s exists already; import this run under another ID with --as, or remove "+
			"the existing run with refrain rm", run.ID))
	case err != nil:
		return term.Failure(fmt.Errorf("import %s: %w", name, err))
	}
	if carried != nil {
		if err := carried.Keep(ctx, run.ID, runfiles.Owner(root, runstore.Name(e, f.store))); err != nil {
			return term.Failure(fmt.Errorf("run %s was imported without its files: %w; remove the run with refrain rm, and import it again",
				run.ID, err))
		}
		fmt.Fprintf(e.Stderr, "%s: the files of %s\n", name+bundle, run.ID)
	}
	for i, seal := range v.Runs {
		if seal.Unsealed != "" {
			fmt.Fprintf(e.Stderr, "%s: unsealed: %s: %s\n", name, v.Named(i), seal.Unsealed)
		}
	}
	fmt.Fprintf(e.Stderr, "%s: %d events\n", name, events)
	_, err = fmt.Fprintln(e.Stdout, run.ID)
	return term.Failure(err)
}

// maxFiles is the size of the largest workspace that can be imported, in bytes.
const maxFiles = 10 << 30

// receive checks the bundle of a workspace beside an export; nil if there is no bundle. It also returns the folder of the run.
func receive(ctx context.Context, run *runlog.Run, name string) (c *workspace.Carried, root string, err error) {
	if _, err := os.Lstat(name + bundle); name == "-" || err != nil {
		return nil, "", nil
	}
	if root, err = runstore.FilesRoot(run.All()); err != nil {
		return nil, "", err
	}
	here, err := filepath.EvalSymlinks(".")
	if err == nil {
		here, err = filepath.Abs(here)
	}
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return nil, "", err
	}
	if inside, err := filepath.Rel(here, root); err != nil || !filepath.IsLocal(inside) {
		file := name
		if abs, err := filepath.Abs(name); err == nil {
			file = abs
		}
		return nil, "", fmt.Errorf("the run has worked in %s, a folder of this machine, and its files belong there; import it with: "+
			"cd %s && refrain import %s --as %s-2", root, shellword.Of(root), shellword.Of(file), run.ID)
	}
	var trees []workspace.Hash
	for ev := range run.All() {
		trees = append(trees, runfiles.Trees(ev.Actions.StateDelta)...)
	}
	c, err = workspace.Receive(ctx, runfiles.Store(root), name+bundle, trees, maxFiles)
	return c, root, err
}
