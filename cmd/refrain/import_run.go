// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/refrain-dev/refrain/cmd/refrain/internal/runstore"
	"github.com/refrain-dev/refrain/cmd/refrain/internal/term"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/session"
)

// importFlags are the flags of refrain import for a run.
type importFlags struct{ store, as string }

// newImportRun is refrain import: of a run and, with --from or of a file that
// holds none, of a definition.
func newImportRun(e *term.Env) *cobra.Command {
	var f importFlags
	cmd := newImport(e)
	definition := cmd.RunE
	cmd.Short = "Import a run, or a definition of another product"
	cmd.Long = `Import a run with all its events, from a file that refrain export or refrain run
--record has written, into a store. It keeps its ID; --as gives it another one. A file
that was changed or is incomplete is refused. "-" reads stdin. A run that was cut off
can be resumed here.

Any other file, and with --from every file, is converted into a definition. It may be
` + cmd.Long
	cmd.Example = `  refrain import run.jsonl
  refrain import run.jsonl --as r_copy --store sqlite:other.db
` + cmd.Example
	runstore.Flag(cmd.Flags(), &f.store)
	cmd.Flags().StringVar(&f.as, "as", "", "`ID` of the run in this store (default: the ID that it has)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("from") || args[0] != "-" && !cmd.Flags().Changed("as") && !holdsRun(args[0]) {
			return definition(cmd, args)
		}
		return runImport(cmd.Context(), e, f, args[0])
	}
	return cmd
}

// holdsRun reports whether a file begins as one with a run does: with a JSON
// object on its first line that is an event, or the head of an export.
func holdsRun(name string) bool {
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return false // what is read from a pipe is gone
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	line, err := runstore.ReadLine(bufio.NewReaderSize(f, 1<<16))
	var first struct{ Type, InvocationID string }
	return (err == nil || errors.Is(err, io.EOF)) && json.Unmarshal(line, &first) == nil && (first.Type == "run" || first.InvocationID != "")
}

// runImport takes a run from a file into the store.
func runImport(ctx context.Context, e *term.Env, f importFlags, name string) error {
	log, err := runstore.OpenLog(e, name)
	if err != nil {
		return err
	}
	run := &runstore.Run{File: log, Events: log.Events}
	if log.Head != nil {
		run.ID, run.Initial = log.Head.ID, log.Head.State
	}
	v, err := run.Sound()
	if err != nil {
		return term.Failure(fmt.Errorf("%s: %w; nothing was imported", name, err))
	}
	switch {
	case f.as != "":
		run.ID = f.as
	case run.ID == "":
		run.ID = "r_" + uuid.NewString()[:8] // a record does not say
	}
	if err := runstore.CheckID(run.ID); err != nil {
		if f.as == "" {
			err = fmt.Errorf("%s: %w; give it one with --as", name, err)
		}
		return term.UsageError(err)
	}
	if err := runstore.PrepareFolder(e, f.store); err != nil {
		return err
	}
	store, closeStore, err := runstore.MakeService(ctx, e, f.store)
	if err != nil {
		return err
	}
	defer closeStore()
	switch err := run.Save(ctx, store); {
	case errors.Is(err, session.ErrExists):
		return term.Failure(fmt.Errorf("there is a run %s already; import it with another ID by --as, or remove that one with refrain rm", run.ID))
	case err != nil:
		return term.Failure(fmt.Errorf("import %s: %w", name, err))
	}
	for i, seal := range v.Runs {
		if seal.Unsealed != "" {
			fmt.Fprintf(e.Stderr, "%s: unsealed: %s: %s\n", name, v.Named(i), seal.Unsealed)
		}
	}
	fmt.Fprintf(e.Stderr, "%s: %d events\n", name, len(run.Events))
	if _, err := fmt.Fprintln(e.Stdout, run.ID); err != nil {
		return term.Failure(err)
	}
	return nil
}
