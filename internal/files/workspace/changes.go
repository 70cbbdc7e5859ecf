// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Change is a file that differs between two trees. A renamed file appears as a deleted and an added one.
type Change struct {
	Path string `json:"path"` // with slashes
	// Status is A for an added file, D for a deleted one, M for another content or mode, and T if a file
	// has become a link or the reverse.
	Status string `json:"status"`
	// Mode and WasMode are 100644 for a file, 100755 for an executable one, and 120000 for a link; Mode
	// is 000000 for a file that is deleted, and WasMode for one that is added.
	Mode    string `json:"-"`
	WasMode string `json:"-"`
	// Added and Removed are lines; 0 for a binary file.
	Added   int64 `json:"added"`
	Removed int64 `json:"removed"`
	Binary  bool  `json:"binary,omitzero"`

	blob, wasBlob string
}

// Files lists the files that differ between two trees, by path.
func (t *Tree) Files(ctx context.Context, a, b Hash) ([]Change, error) {
	return t.git.compare(ctx, a, b)
}

// compare lists the files that differ; with names, only those files and the files in folders of these names.
func (g *git) compare(ctx context.Context, a, b Hash, names ...string) ([]Change, error) {
	if err := g.both(ctx, a, b); err != nil {
		return nil, err
	}
	changes, err := g.files(ctx, a, b, names...)
	if err != nil {
		return nil, fmt.Errorf("compare %s with %s: %w", a, b, err)
	}
	return changes, nil
}

// Diff writes the difference between two trees as a patch that git apply accepts, with binary files.
func (t *Tree) Diff(ctx context.Context, a, b Hash, w io.Writer) error {
	return t.git.diff(ctx, a, b, w)
}

func (g *git) diff(ctx context.Context, a, b Hash, w io.Writer, names ...string) error {
	if err := g.both(ctx, a, b); err != nil {
		return err
	}
	args := append([]string{"diff-tree", "-r", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff",
		"--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/", string(a), string(b), "--"}, names...)
	if err := g.pipe(ctx, nil, w, args...); err != nil {
		return fmt.Errorf("compare %s with %s: %w", a, b, err)
	}
	return nil
}

func (g *git) both(ctx context.Context, a, b Hash) error {
	for _, h := range []Hash{a, b} {
		if err := g.known(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

func (g *git) files(ctx context.Context, a, b Hash, names ...string) ([]Change, error) {
	args := []string{"diff-tree", "-r", "-z", "--no-renames", "--no-ext-diff", "--no-textconv"}
	of := append([]string{string(a), string(b), "--"}, names...)
	raw, err := g.run(ctx, slices.Concat(args, []string{"--raw", "--no-abbrev"}, of)...)
	if err != nil {
		return nil, err
	}
	var changes []Change
	at := make(map[string]int)
	for meta, name := range entries(raw) {
		f := strings.Fields(strings.TrimPrefix(meta, ":"))
		if len(f) != 5 {
			return nil, fmt.Errorf("git diff-tree returned %q", meta)
		}
		at[name] = len(changes)
		changes = append(changes, Change{Path: name, Status: f[4], WasMode: f[0], Mode: f[1], wasBlob: f[2], blob: f[3]})
	}
	if len(changes) == 0 {
		return nil, nil
	}
	counts, err := g.run(ctx, slices.Concat(args, []string{"--numstat"}, of)...)
	if err != nil {
		return nil, err
	}
	for _, entry := range list(counts) {
		f := strings.SplitN(entry, "\t", 3)
		i, ok := at[f[len(f)-1]]
		if len(f) != 3 || !ok {
			return nil, fmt.Errorf("git diff-tree returned %q", entry)
		}
		if f[0] == "-" {
			changes[i].Binary = true
			continue
		}
		changes[i].Added, _ = strconv.ParseInt(f[0], 10, 64)
		changes[i].Removed, _ = strconv.ParseInt(f[1], 10, 64)
	}
	return changes, nil
}

// entries yields the pairs of a raw difference: the metadata of a file, and its name.
func entries(raw []byte) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for len(raw) > 0 {
			meta, rest, _ := bytes.Cut(raw, []byte{0})
			name, rest, ok := bytes.Cut(rest, []byte{0})
			if !ok || !yield(string(meta), string(name)) {
				return
			}
			raw = rest
		}
	}
}
