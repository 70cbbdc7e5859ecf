// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
)

// exportFlags are the flags of refrain export for a run.
type exportFlags struct {
	store, out   string
	audit, force bool
}

// newExportRun is refrain export: of a run and, with --to, of a definition.
func newExportRun(e *env) *cobra.Command {
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
	cmd.ValidArgsFunction = completeRuns(e, 1)
	storeFlag(cmd.Flags(), &f.store)
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
func runExport(ctx context.Context, e *env, f exportFlags, word string) error {
	run, err := openRun(ctx, e, f.store, word)
	if err != nil {
		return err
	}
	defer run.close()
	if run.file != nil && run.file.head != nil {
		_, found, err := run.chained()
		if err == nil && found != nil {
			err = fmt.Errorf("%s: %s: a file that was changed is not exported anew", word, found)
		}
		if err != nil {
			return &exitError{exitFailed, err}
		}
	}
	if f.out == "" || f.out == "-" {
		if _, err := run.export(exactly(e.stdout), f.audit); err != nil {
			return &exitError{exitFailed, fmt.Errorf("export run %s: %w", run.id, err)}
		}
		return nil
	}
	flags := os.O_CREATE | os.O_WRONLY | os.O_EXCL
	if f.force {
		flags = os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	}
	file, err := os.OpenFile(f.out, flags, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return &exitError{exitUsage, fmt.Errorf("-o %s: there is such a file; choose another name, or write over it with --force", f.out)}
	}
	if err != nil {
		return &exitError{exitUsage, fmt.Errorf("-o: %w", err)}
	}
	hash, err := run.export(file, f.audit)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return &exitError{exitFailed, errors.Join(fmt.Errorf("export run %s: %w", run.id, err), os.Remove(f.out))}
	}
	fmt.Fprintf(e.stderr, "%s: %d events of %s", f.out, len(run.events), run.id)
	if f.audit {
		fmt.Fprintf(e.stderr, ", %s", hash)
	}
	fmt.Fprintln(e.stderr)
	return nil
}

// export writes the run, and returns the hash of all.
func (r *oneRun) export(w io.Writer, audit bool) (hash string, err error) {
	sum := progress.Summarize(r.events)
	head := exportHead{
		Type: "run", Schema: exportSchema, ID: r.id, Name: sum.Name, Status: string(sum.Status),
		Events: int64(len(r.events)), State: r.initial, Audit: audit, Sealed: true, Refrain: version(),
	}
	c, err := newChain(r.id, r.initial)
	if err != nil {
		return "", err
	}
	buf := bufio.NewWriterSize(w, 1<<16)
	enc := newJSON(buf)
	if err := enc.Encode(head); err != nil {
		return "", err
	}
	for ev := range r.wholes.all(r.events) {
		if err := c.add(ev); err != nil {
			return "", err
		}
		line := any(ev)
		if audit {
			line = hashed{ev, c.last}
		}
		if err := enc.Encode(line); err != nil {
			return "", fmt.Errorf("event %d: %w", ev.Seq, err)
		}
	}
	if r.wholes.err != nil {
		return "", r.wholes.err
	}
	if err := enc.Encode(exportTail{Type: "end", Events: head.Events, Chain: c.last}); err != nil {
		return "", err
	}
	return c.last, buf.Flush()
}

// hashed is an event with the hash of the chain up to it.
type hashed struct {
	*session.Event
	Chain string `json:"chain"`
}
