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

// What is shown of files, how long a comparison may take, and how many are made at once.
const (
	filesMost    = pageMost
	filesColumns = 8         // iterations beside each other
	diffMost     = 256 << 10 // bytes of the difference of one file
	diffLines    = 2000
	diffColumns  = 1000 // characters of a line
	patchMost    = 32 << 20
	compareTime  = 20 * time.Second
	compareMost  = 2
)

var errCompareTime = errors.New("it takes too long")

// compared are two trees of a run's workspace.
type compared struct {
	run      *runlog.Run
	start    workspace.Hash
	stored   *workspace.Stored
	from, to workspace.Hash
}

// comparing answers with the difference between two places of a run: from its start to its end, if the query
// names none.
func (s *Server) comparing(r *http.Request, answer func(context.Context, *compared) error) error {
	ctx, cancel := context.WithTimeoutCause(r.Context(), compareTime, errCompareTime)
	defer cancel()
	leave, err := turn(ctx, s.diffs)
	if err != nil {
		return filesProblem(err)
	}
	defer leave()
	c, err := s.compared(ctx, r)
	if err == nil {
		err = answer(ctx, c)
	}
	return filesProblem(err)
}

func (s *Server) compared(ctx context.Context, r *http.Request) (*compared, error) {
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
	if s.cfg.ReadOnly { // the log of a stranger may name any folder
		return nil, problem.New(http.StatusNotFound, "files_not_here", "The files of the run are not here", "an exported run has none")
	}
	run, err := s.runs.ReadLog(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if err := p.Nearby(); err != nil {
		return nil, err
	}
	c := &compared{run: run}
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

// at is the tree after an event of the run.
func (c *compared) at(seq int64) workspace.Hash {
	h, _ := runfiles.Value(c.run.StateAfter(seq)[runfiles.Key])
	return cmp.Or(h, c.start)
}

// filesProblem says why files cannot be shown.
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

// changesOf returns the first of the changes, with the names as they are shown.
func changesOf(all []workspace.Change) []workspace.Change {
	list := []workspace.Change{}
	for _, one := range all[:min(len(all), filesMost)] {
		one.Path = shownName(one.Path)
		list = append(list, one)
	}
	return list
}

// files lists the files that differ between two places.
func (s *Server) files(w http.ResponseWriter, r *http.Request) error {
	return s.comparing(r, func(ctx context.Context, c *compared) error {
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

// filesBy lists what the last iterations of a loop, and its best, have changed against those that they were written
// from.
func (s *Server) filesBy(w http.ResponseWriter, r *http.Request) error {
	type iteration struct {
		Number int                `json:"number"`
		From   int                `json:"from"`
		Best   bool               `json:"best,omitzero"`
		Undone bool               `json:"undone,omitzero"`
		Total  int                `json:"total"`
		Files  []workspace.Change `json:"files"`
	}
	return s.comparing(r, func(ctx context.Context, c *compared) error {
		loop, err := loopOf(progress.TreeOf(progress.LastRun(c.run.Log())), r.URL.Query())
		if err != nil {
			return err
		}
		trees := make(map[int]workspace.Hash) // by iteration; most are also the one that the next was written from
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

// fileDiff is what has changed in one file.
func (s *Server) fileDiff(w http.ResponseWriter, r *http.Request) error {
	name, ok := nameShown(r.URL.Query().Get("path"))
	if !ok {
		return problem.Bad("give the path of a file, as the list of the files has it")
	}
	return s.comparing(r, func(ctx context.Context, c *compared) error {
		text := limited.Head{Most: diffMost, Full: short}
		change, err := c.stored.File(ctx, c.from, c.to, name, &text)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return problem.New(http.StatusNotFound, "file_not_changed", "The file has not changed there", "%s", shownName(name))
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

// patch is the difference as git apply takes it; without from, that of the result, as the run hands it over.
func (s *Server) patch(w http.ResponseWriter, r *http.Request) error {
	return s.comparing(r, func(ctx context.Context, c *compared) (err error) {
		if r.URL.Query().Get("from") == "" {
			if c.from, err = c.stored.Base(ctx); err != nil {
				return err
			}
		}
		text := limited.Head{Most: patchMost, Full: short}
		err = c.stored.Diff(ctx, c.from, c.to, &text)
		const instead = "on the machine of the run, refrain show %s --diff 0..N --files writes what has changed up to iteration N"
		switch {
		case text.Cut():
			return problem.New(http.StatusUnprocessableEntity, "patch_too_large", "The patch is too large",
				"it has more than %d MiB; "+instead, patchMost>>20, c.run.ID)
		case err != nil:
			return err
		case credential.Masked(text.String()) != text.String(): // without the secret the patch would be another one
			return problem.New(http.StatusUnprocessableEntity, "patch_has_secret", "The patch contains a key or a password", instead, c.run.ID)
		}
		w.Header().Set("Content-Type", "text/x-diff")
		w.Header().Set("Content-Disposition", `attachment; filename="`+url.PathEscape(c.run.ID)+`.patch"`)
		_, err = io.WriteString(w, text.String())
		return err
	})
}

// short ends what writes into a text that is full.
func short() error { return io.ErrShortWrite }

// diffLine is a line of a difference: one that is in both files (" "), was added ("+") or removed ("-"), says
// where the next ones are ("@"), or that a file ends without a line end ("\").
type diffLine struct {
	Op   string `json:"op"`
	Old  int64  `json:"old,omitzero"` // number in the file before
	New  int64  `json:"new,omitzero"`
	Text string `json:"text"`
	// Words are Text in pieces, if the line was replaced: what the other line has too, and what it has not.
	Words []progress.Edit `json:"words,omitzero"`
}

// diffOf reads the lines of a patch of one file.
func diffOf(patch string) (lines []diffLine, cut bool) {
	lines = []diffLine{}
	var before, after int64
	for line := range strings.SplitSeq(strings.TrimSuffix(patch, "\n"), "\n") {
		if strings.HasPrefix(line, "@@ ") {
			before, after = hunkAt(line)
			_, around, _ := strings.Cut(line[3:], "@@")
			lines = append(lines, diffLine{Op: "@", Old: before, New: after, Text: shownLine(strings.TrimPrefix(around, " "))})
			continue
		}
		if len(lines) == 0 || line == "" { // before the first hunk are the names
			continue
		}
		if len(lines) >= diffLines {
			return lines, true
		}
		l := diffLine{Op: line[:1], Text: shownLine(line[1:])}
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

// markWords finds what differs within lines that were replaced: the first removed one by the first added one, and so on.
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
			// The pieces of a secret would not be known as one.
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

// hunkAt reads where a hunk begins: "@@ -3,4 +5,6 @@".
func hunkAt(line string) (before, after int64) {
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

// shownLine is a line of a file in which a character that cannot be seen, or that turns the direction of a text, is
// written as in Go: \x1b.
func shownLine(s string) string {
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

// shownName is the name of a file: quoted as in Go if it has anything in it that cannot be seen, is no UTF-8, or
// could be taken for a quoted one.
func shownName(name string) string {
	odd := func(c rune) bool { return c == unicode.ReplacementChar || !unicode.IsPrint(c) }
	if strings.HasPrefix(name, `"`) || strings.ContainsFunc(name, odd) {
		return strconv.Quote(name)
	}
	return name
}

// nameShown is the name of a file that is shown like that.
func nameShown(shown string) (name string, ok bool) {
	if !strings.HasPrefix(shown, `"`) {
		return shown, shown != ""
	}
	name, err := strconv.Unquote(shown)
	return name, err == nil && name != ""
}
