// SPDX-License-Identifier: Apache-2.0

package show

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/definition/runfiles"
	"github.com/refrain-dev/refrain/internal/brief"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/workspace"
)

// Files tells how the files of a workspace changed: since the start of the run, or between two iterations.
type Files struct {
	From    workspace.Hash     `json:"from"`
	To      workspace.Hash     `json:"to"`
	Changes []workspace.Change `json:"changes"`

	patch []byte
}

// filesOf compares two versions of a run's files: those of two iterations, or those of the start and the end of the run.
func filesOf(ctx context.Context, r *runstore.Run, main *progress.Step, two bool, from, to int) (*Files, error) {
	root, err := runstore.FilesRoot(r.Events)
	if err != nil {
		return nil, err
	}
	stored, err := workspace.OpenStored(ctx, runfiles.Store(root), r.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no files of run %s are kept here, because its definition has no workspace, no step has begun, or the files "+
			"were not exported with the run; export them with refrain export --files", r.ID)
	}
	if err != nil {
		return nil, err
	}
	start, err := stored.Start(ctx)
	if err != nil {
		return nil, err
	}
	at := func(seq int64) workspace.Hash {
		h, _ := runfiles.Value(r.StateAfter(seq)[runfiles.Key])
		return cmp.Or(h, start)
	}
	f := &Files{From: start, To: at(r.Events[len(r.Events)-1].Seq), Changes: []workspace.Change{}}
	if two {
		a, err := seqOf(r, main, from)
		if err != nil {
			return nil, err
		}
		b, err := seqOf(r, main, to)
		if err != nil {
			return nil, err
		}
		f.From, f.To = at(a), at(b)
	}
	changes, err := stored.Files(ctx, f.From, f.To)
	if err != nil {
		return nil, err
	}
	f.Changes = append(f.Changes, changes...)
	if two {
		var patch bytes.Buffer
		err = stored.Diff(ctx, f.From, f.To, &patch)
		f.patch = patch.Bytes()
	}
	return f, err
}

// print writes the patch between two iterations, or the list of the files since the start. On a
// terminal it writes no control characters of the files.
func (f *Files) print(w io.Writer, terminal bool) {
	switch {
	case len(f.Changes) == 0:
		fmt.Fprintln(w, "no difference")
	case f.patch != nil && !terminal:
		_, _ = w.Write(f.patch) // bufio keeps the error for Flush
	case f.patch != nil:
		for line := range strings.SplitSeq(strings.TrimSuffix(string(f.patch), "\n"), "\n") {
			fmt.Fprintln(w, brief.Clean(line))
		}
	default:
		for _, c := range f.Changes {
			size := fmt.Sprintf("+%d -%d", c.Added, c.Removed)
			if c.Binary {
				size = "binary"
			}
			fmt.Fprintf(w, "%s %s  %s\n", c.Status, brief.Clean(c.Path), size)
		}
	}
}
