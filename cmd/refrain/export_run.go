// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/refrain-dev/refrain/cmd/refrain/internal/runstore"
	"github.com/refrain-dev/refrain/cmd/refrain/internal/term"

	"github.com/spf13/cobra"
)

// exportFlags are the flags of refrain export for a run.
type exportFlags struct {
	store, out   string
	audit, force bool
}

// newExportRun is refrain export: of a run and, with --to, of a definition.
func newExportRun(e *term.Env) *cobra.Command {
	var f exportFlags
	cmd := newExport(e)
	definition := cmd.RunE
	cmd.Use = "export RUN|FILE"
	cmd.Short = "Export a run to a file, or a definition to another product"
	cmd.Long = `Export a run as JSON Lines: one line about the run, then one for each event. refrain
import reads the file into another store; show, events, verify and backtest read it like
a run.

The last line has a hash of everything, including the definition and the inputs; a
file that was changed is not imported. To notice changes later, keep the hash in
another place and use refrain verify --expect. With --audit each line has a hash, so
verify can name the first event that was changed.

With --to, export a definition.
` + cmd.Long
	cmd.Example = `  refrain export last -o run.jsonl
  refrain export r_1f0c --audit -o audit.jsonl
  refrain export last | ssh host refrain import -
` + cmd.Example
	cmd.ValidArgsFunction = runstore.Complete(e, 1)
	runstore.Flag(cmd.Flags(), &f.store)
	cmd.Flags().BoolVar(&f.audit, "audit", false, "write a hash with each event of a run, and not only at the end")
	cmd.Flags().Lookup("output").Usage = "write to a new `FILE`, or a definition to a folder, in place of stdout"
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("to") {
			return definition(cmd, args)
		}
		f.out, _ = cmd.Flags().GetString("output")
		f.force, _ = cmd.Flags().GetBool("force")
		return runExport(cmd.Context(), e, f, args[0])
	}
	return cmd
}

// runExport writes a run into a file.
func runExport(ctx context.Context, e *term.Env, f exportFlags, word string) error {
	run, err := runstore.Open(ctx, e, f.store, word)
	if err != nil {
		return err
	}
	defer run.Close()
	if run.File != nil && run.File.Head != nil {
		_, found, err := run.Chained()
		if err == nil && found != nil {
			err = fmt.Errorf("%s: %s: a file that was changed is not exported anew", word, found)
		}
		if err != nil {
			return term.Failure(err)
		}
	}
	if f.out == "" || f.out == "-" {
		if _, err := run.Export(term.Exactly(e.Stdout), f.audit); err != nil {
			return term.Failure(fmt.Errorf("export run %s: %w", run.ID, err))
		}
		return nil
	}
	flags := os.O_CREATE | os.O_WRONLY | os.O_EXCL
	if f.force {
		flags = os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	}
	file, err := os.OpenFile(f.out, flags, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return term.UsageError(fmt.Errorf("-o %s: there is such a file; choose another name, or write over it with --force", f.out))
	}
	if err != nil {
		return term.UsageError(fmt.Errorf("-o: %w", err))
	}
	hash, err := run.Export(file, f.audit)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return term.Failure(errors.Join(fmt.Errorf("export run %s: %w", run.ID, err), os.Remove(f.out)))
	}
	fmt.Fprintf(e.Stderr, "%s: %d events of %s", f.out, len(run.Events), run.ID)
	if f.audit {
		fmt.Fprintf(e.Stderr, ", %s", hash)
	}
	fmt.Fprintln(e.Stderr)
	return nil
}
