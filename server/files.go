// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/limited"
)

// Limits of comparisons of files.
const (
	filesMost    = pageMost         // the most files in a list
	filesColumns = 8                // how many iterations are shown, besides the best one
	diffMost     = 256 << 10        // the most bytes of the difference of one file
	diffLines    = 2000             // the most lines of the difference of one file
	diffColumns  = 1000             // the most characters of a line
	patchMost    = 32 << 20         // the most bytes of a patch
	compareTime  = 20 * time.Second // how long a comparison may take
	compareMost  = 2                // how many comparisons run at once
)

var errCompareTime = errors.New("it takes too long")

// treePair has two trees of a run's workspace, from and to, which are to be compared.
type treePair struct {
	run      *runlog.Run
	start    workspace.Hash // the tree at the start of the run
	stored   *workspace.Stored
	from, to workspace.Hash
}

// withTrees calls answer with the trees at the two places of a run that the query names. The default places are the start and
// the end of the run. It waits until fewer than compareMost comparisons run, and limits the time to compareTime.
func (s *Server) withTrees(r *http.Request, answer func(context.Context, *treePair) error) error {
	ctx, cancel := context.WithTimeoutCause(r.Context(), compareTime, errCompareTime)
	defer cancel()
	leave, err := waitForPlace(ctx, s.places.diffs)
	if err != nil {
		return filesProblem(err)
	}
	defer leave()
	c, err := s.treesOf(ctx, r)
	if err == nil {
		err = answer(ctx, c)
	}
	return filesProblem(err)
}

// treesOf finds the two trees that a request compares. It fails if the run has no workspace or its files are not here.
func (s *Server) treesOf(ctx context.Context, r *http.Request) (*treePair, error) {
	id, q := r.PathValue("id"), r.URL.Query()
	started, err := s.runs.Started(ctx, id)
	if err != nil {
		return nil, err
	}
	p, err := program.Decode(started)
	var def *definition.Definition
	if err == nil {
		def, err = p.Definition()
	}
	if err != nil || def.Workspace == nil {
		return nil, problem.New(http.StatusNotFound, "no_workspace", "The run has no workspace",
			"its definition has no field workspace, so its files are not kept")
	}
	if s.cfg.ReadOnly { // an exported log of somebody else may name any folder of this machine
		return nil, problem.New(http.StatusNotFound, "files_not_here", "The files of the run are not here", "an exported run has none")
	}
	run, err := s.runs.ReadLog(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if err := p.Nearby(); err != nil {
		return nil, err
	}
	c := &treePair{run: run}
	if c.stored, err = workspace.OpenStored(ctx, runfiles.Store(p.Root), id); err != nil {
		return nil, err
	}
	if c.start, err = c.stored.Start(ctx); err != nil {
		return nil, err
	}
	c.from = c.start
	if from := q.Get("from"); from != "" {
		seq, err := seqAt(run, from, q.Get("loop"))
		if err != nil {
			return nil, err
		}
		c.from = c.at(seq)
	}
	seq, err := seqAt(run, q.Get("to"), q.Get("loop"))
	if err != nil {
		return nil, err
	}
	c.to = c.at(seq)
	return c, run.Wholes.Err
}

// at returns the tree of the workspace after an event of the run.
func (c *treePair) at(seq int64) workspace.Hash {
	h, _ := runfiles.Value(c.run.StateAfter(seq)[runfiles.Key])
	return cmp.Or(h, c.start)
}

// filesProblem returns err as a problem that says why files cannot be shown, or err itself if it is of another kind.
func filesProblem(err error) error {
	switch {
	case errors.Is(err, workspace.ErrNoGit):
		return problem.New(http.StatusServiceUnavailable, "no_git", "The server has no git", "%v", err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, workspace.ErrUnknownTree):
		return problem.New(http.StatusNotFound, "files_not_here", "The files of the run are not here",
			"no command has worked on them yet, they were removed with refrain rm, or they are on another machine")
	case errors.Is(err, errCompareTime):
		return problem.New(http.StatusServiceUnavailable, "files_slow", "The files cannot be compared now", "%v; ask again", err)
	}
	return err
}

// changesOf returns at most the first filesMost changes, with the file names as printableName writes them.
func changesOf(all []workspace.Change) []workspace.Change {
	list := []workspace.Change{}
	for _, one := range all[:min(len(all), filesMost)] {
		one.Path = printableName(one.Path)
		list = append(list, one)
	}
	return list
}

// files lists the files that differ between two places.
func (s *Server) files(w http.ResponseWriter, r *http.Request) error {
	return s.withTrees(r, func(ctx context.Context, c *treePair) error {
		changes, err := c.stored.Files(ctx, c.from, c.to)
		if err != nil {
			return err
		}
		var added, removed int64
		for _, one := range changes {
			added, removed = added+one.Added, removed+one.Removed
		}
		return s.SendMasked(w, http.StatusOK, map[string]any{"from": c.from, "to": c.to, "total": len(changes), "added": added,
			"removed": removed, "files": changesOf(changes)})
	})
}

// filesBy lists the files that the last iterations of a loop, and its best one, have changed, each compared with the iteration
// that it started from.
func (s *Server) filesBy(w http.ResponseWriter, r *http.Request) error {
	type iteration struct {
		Number int                `json:"number"`
		From   int                `json:"from"`
		Best   bool               `json:"best,omitzero"`
		Undone bool               `json:"undone,omitzero"`
		Total  int                `json:"total"`
		Files  []workspace.Change `json:"files"`
	}
	return s.withTrees(r, func(ctx context.Context, c *treePair) error {
		loop, err := loopOf(progress.TreeOf(progress.LastRun(c.run.Log())), r.URL.Query())
		if err != nil {
			return err
		}
		trees := make(map[int]workspace.Hash) // by iteration; a cache, because the next iteration mostly starts from the same tree
		after := func(n int) workspace.Hash {
			if trees[n] == "" {
				trees[n] = c.at(progress.IterationSeq(c.run.Current(), loop.Address, n))
			}
			return trees[n]
		}
		best, list := loop.Loop.Best(), []iteration{}
		for i, it := range loop.Loop.Iterations {
			if it.Record == nil || it != best && i < len(loop.Loop.Iterations)-filesColumns {
				continue
			}
			changes, err := c.stored.Files(ctx, after(it.From), after(it.Number))
			if err != nil {
				return err
			}
			list = append(list, iteration{it.Number, it.From, it == best, it.RolledBack, len(changes), changesOf(changes)})
		}
		return s.SendMasked(w, http.StatusOK, map[string]any{"loop": loop.Address, "iterations": list})
	})
}

// fileDiff sends the lines that have changed in one file.
func (s *Server) fileDiff(w http.ResponseWriter, r *http.Request) error {
	name, ok := parsePrintableName(r.URL.Query().Get("path"))
	if !ok {
		return problem.Bad("give the path of a file, as the list of the files has it")
	}
	return s.withTrees(r, func(ctx context.Context, c *treePair) error {
		text := limited.Head{Most: diffMost, Full: errorWhenFull}
		change, err := c.stored.File(ctx, c.from, c.to, name, &text)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return problem.New(http.StatusNotFound, "file_not_changed", "The file has not changed there", "%s", printableName(name))
		case err != nil && !text.Cut():
			return err
		}
		lines, cut := diffOf(text.String())
		markWords(lines)
		return s.SendMasked(w, http.StatusOK, struct {
			workspace.Change
			Lines []diffLine `json:"lines"`
			Cut   bool       `json:"cut,omitzero"`
		}{changesOf([]workspace.Change{change})[0], lines, cut || text.Cut()})
	})
}

// patch sends the difference as a patch for git apply. Without from in the query, the patch begins at the base of the workspace,
// as does the patch that the run hands over.
func (s *Server) patch(w http.ResponseWriter, r *http.Request) error {
	return s.withTrees(r, func(ctx context.Context, c *treePair) (err error) {
		if r.URL.Query().Get("from") == "" {
			if c.from, err = c.stored.Base(ctx); err != nil {
				return err
			}
		}
		text := limited.Head{Most: patchMost, Full: errorWhenFull}
		err = c.stored.Diff(ctx, c.from, c.to, &text)
		const instead = "on the machine of the run, refrain show %s --diff 0..N --files writes what has changed up to iteration N"
		switch {
		case text.Cut():
			return problem.New(http.StatusUnprocessableEntity, "patch_too_large", "The patch is too large",
				"it has more than %d MiB; "+instead, patchMost>>20, c.run.ID)
		case err != nil:
			return err
		case credential.Masked(text.String()) != text.String(): // a patch with a masked secret would not apply
			return problem.New(http.StatusUnprocessableEntity, "patch_has_secret", "The patch contains a key or a password", instead, c.run.ID)
		}
		w.Header().Set("Content-Type", "text/x-diff")
		w.Header().Set("Content-Disposition", `attachment; filename="`+url.PathEscape(c.run.ID)+`.patch"`)
		_, err = io.WriteString(w, text.String())
		return err
	})
}

// errorWhenFull returns the error with which a text that is full ends the writing into it.
func errorWhenFull() error { return io.ErrShortWrite }

// diffLine is a line of a difference. Op is " " for a line in both files, "+" for an added line, "-" for a removed line, "@"
// for the position of the next lines, and "\" for a file that ends without a line end.
type diffLine struct {
	Op   string `json:"op"`
	Old  int64  `json:"old,omitzero"` // the number of the line in the old file, counted from 1
	New  int64  `json:"new,omitzero"` // the number of the line in the new file, counted from 1
	Text string `json:"text"`
	// Words are the pieces of Text if the line was replaced. Each piece is in both lines, or only in this one.
	Words []progress.Edit `json:"words,omitzero"`
}

// diffOf returns the lines of a patch of one file, without the file names. cut is true if it has omitted lines beyond diffLines.
func diffOf(patch string) (lines []diffLine, cut bool) {
	lines = []diffLine{}
	var before, after int64
	for line := range strings.SplitSeq(strings.TrimSuffix(patch, "\n"), "\n") {
		if strings.HasPrefix(line, "@@ ") {
			before, after = hunkLines(line)
			_, around, _ := strings.Cut(line[3:], "@@")
			lines = append(lines, diffLine{Op: "@", Old: before, New: after, Text: printableLine(strings.TrimPrefix(around, " "))})
			continue
		}
		if len(lines) == 0 || line == "" { // the file names stand before the first hunk
			continue
		}
		if len(lines) >= diffLines {
			return lines, true
		}
		l := diffLine{Op: line[:1], Text: printableLine(line[1:])}
		if l.Op == " " || l.Op == "-" {
			l.Old = before
			before++
		}
		if l.Op == " " || l.Op == "+" {
			l.New = after
			after++
		}
		lines = append(lines, l)
	}
	return lines, false
}

// markWords sets the Words of lines that were replaced. In each group of changes it compares the first removed line with the
// first added line, the second with the second, and so on.
func markWords(lines []diffLine) {
	run := func(from int, op string) (n int) {
		for from+n < len(lines) && lines[from+n].Op == op {
			n++
		}
		return n
	}
	for i := 0; i < len(lines); {
		removed := run(i, "-")
		added := run(i+removed, "+")
		for n := range min(removed, added) {
			before, after := &lines[i+n], &lines[i+removed+n]
			// The secrets are masked before the lines are cut into pieces, because a piece of a secret is not recognized as one.
			edits := progress.DiffWords(credential.Masked(before.Text), credential.Masked(after.Text))
			common := func(e progress.Edit) bool { return e.Op == progress.Kept && strings.TrimSpace(e.Text) != "" }
			if !slices.ContainsFunc(edits, common) {
				continue
			}
			for _, e := range edits {
				if e.Op != progress.Put {
					before.Words = append(before.Words, e)
				}
				if e.Op != progress.Left {
					after.Words = append(after.Words, e)
				}
			}
		}
		i += max(removed+added, 1)
	}
}

// hunkLines returns the first line numbers of a hunk in the old and in the new file, from a line such as "@@ -3,4 +5,6 @@".
func hunkLines(line string) (before, after int64) {
	f := strings.Fields(line)
	if len(f) < 3 {
		return 0, 0
	}
	number := func(s string) int64 {
		s, _, _ = strings.Cut(s[1:], ",")
		n, _ := strconv.ParseInt(s, 10, 64)
		return n
	}
	return number(f[1]), number(f[2])
}

// printableLine returns a line of a file for display. It writes characters that are invisible or change the direction of text as
// in Go, such as \x1b, and shortens the line to diffColumns.
func printableLine(s string) string {
	var out strings.Builder
	for _, c := range brief.Clip(strings.ToValidUTF8(s, "\uFFFD"), diffColumns) {
		if c == '\t' || unicode.IsPrint(c) {
			out.WriteRune(c)
			continue
		}
		out.WriteString(strings.Trim(strconv.QuoteRuneToASCII(c), "'"))
	}
	return out.String()
}

// printableName returns the name of a file for display. It quotes the name as in Go if the name contains invisible characters, is
// not valid UTF-8, or begins with a quote.
func printableName(name string) string {
	odd := func(c rune) bool { return c == unicode.ReplacementChar || !unicode.IsPrint(c) }
	if strings.HasPrefix(name, `"`) || strings.ContainsFunc(name, odd) {
		return strconv.Quote(name)
	}
	return name
}

// parsePrintableName returns the name of a file from the form that printableName returns. ok is false if there is no such name.
func parsePrintableName(shown string) (name string, ok bool) {
	if !strings.HasPrefix(shown, `"`) {
		return shown, shown != ""
	}
	name, err := strconv.Unquote(shown)
	return name, err == nil && name != ""
}
