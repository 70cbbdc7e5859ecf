// SPDX-License-Identifier: Apache-2.0

package show

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// printState writes a state with a line for each key. A text of several lines stands below its key.
func printState(w io.Writer, state map[string]any, behind bool) {
	if behind {
		fmt.Fprintln(w, "\nState:")
	}
	for _, key := range slices.Sorted(maps.Keys(state)) {
		text, isText := state[key].(string)
		if isText && strings.Contains(text, "\n") {
			fmt.Fprintln(w, brief.Clean(key)+":")
			term.Indented(w, text, "  ")
			continue
		}
		fmt.Fprintf(w, "%s: %s\n", brief.Clean(key), brief.Clean(valueText(state[key])))
	}
}

// valueText returns a value on one line.
func valueText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("(%T)", v)
	}
	return string(text)
}

// printDiff writes changes: ~ for a changed key, + for a new key, and - for a removed key. Within texts, [-old words-] were
// replaced by {+new words+}. Keys whose texts show the same are shown together, at the place of the
// first key.
func printDiff(w io.Writer, changes []progress.Change) {
	if len(changes) == 0 {
		fmt.Fprintln(w, "no difference")
	}
	alike := make(map[string][]string) // keys by what their texts show
	for _, c := range changes {
		if c.Before != nil && c.After != nil && c.Words != nil {
			text := strings.TrimSpace(wordDiff(c.Words))
			alike[text] = append(alike[text], brief.Clean(c.Key))
		}
	}
	for _, c := range changes {
		key := brief.Clean(c.Key)
		switch {
		case c.Before == nil:
			fmt.Fprintf(w, "+ %s: %s\n", key, brief.Clean(valueText(c.After)))
		case c.After == nil:
			fmt.Fprintf(w, "- %s: %s\n", key, brief.Clean(valueText(c.Before)))
		case c.Words != nil:
			text := wordDiff(c.Words)
			if keys := alike[strings.TrimSpace(text)]; keys[0] == key {
				fmt.Fprintf(w, "~ %s:\n", strings.Join(keys, ", "))
				term.Indented(w, text, "    ")
			}
		default:
			fmt.Fprintf(w, "~ %s: %s → %s\n", key, brief.Clean(valueText(c.Before)),
				brief.Clean(valueText(c.After)))
		}
	}
}

// around is the number of unchanged characters that are shown on each side of a change.
const around = 60

// wordDiff returns a changed text, with the changes in brackets and the unchanged text shortened.
func wordDiff(edits []progress.Edit) string {
	var b strings.Builder
	for i, e := range edits {
		switch e.Op {
		case progress.Left:
			b.WriteString("[-" + e.Text + "-]")
		case progress.Put:
			b.WriteString("{+" + e.Text + "+}")
		default:
			b.WriteString(shorten(e.Text, i > 0, i < len(edits)-1))
		}
	}
	return b.String()
}

// shorten removes the middle of an unchanged text. It also removes the beginning if no change comes before, and the end if no
// change follows.
func shorten(s string, before, behind bool) string {
	r := []rune(s)
	keep := 0
	if before {
		keep += around
	}
	if behind {
		keep += around
	}
	if len(r) <= keep+10 {
		return s
	}
	var b strings.Builder
	if before {
		b.WriteString(string(r[:around]))
	}
	b.WriteString("…")
	if behind {
		b.WriteString(string(r[len(r)-around:]))
	}
	return b.String()
}

// Files tells how the files of a workspace changed: since the start of the run, or between two iterations.
type Files struct {
	From    workspace.Hash     `json:"from"`
	To      workspace.Hash     `json:"to"`
	Changes []workspace.Change `json:"changes"`

	patch []byte
}

// filesOf compares two versions of a run's files: those of two iterations, or those of the start and the end of the run.
func filesOf(ctx context.Context, r *runstore.Run, main *progress.Step, two bool, from, to int) (*Files, error) {
	root, err := runstore.FilesRoot(r.All())
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
	f := &Files{From: start, To: at(r.Last().Seq), Changes: []workspace.Change{}}
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
