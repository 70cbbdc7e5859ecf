// SPDX-License-Identifier: Apache-2.0

package show

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/refrain-dev/refrain/progress"
)

// spool has the text of the iterations that the tree of a long run leaves out, so that show can write all iterations and
// holds few. The text is in a file without a name.
type spool struct {
	file  *os.File // nil: nothing was added
	size  int64
	parts map[*progress.Loop][]part
	gaps  []gap
	token string // occurs in no text of a run
	err   error  // the first
}

// part is the text of one iteration.
type part struct {
	number   int
	from, to int64
}

func newSpool() *spool {
	return &spool{parts: make(map[*progress.Loop][]part), token: "left out " + rand.Text()}
}

// add adds the text of an iteration of a loop.
func (p *spool) add(l *progress.Loop, number int, text []byte) {
	if p.file == nil && p.err == nil {
		if p.file, p.err = os.CreateTemp("", "refrain-show-"); p.err == nil {
			_ = os.Remove(p.file.Name()) // where an open file cannot be removed, close does it
		}
	}
	if p.err == nil {
		_, p.err = p.file.Write(text)
	}
	p.parts[l] = append(p.parts[l], part{number, p.size, p.size + int64(len(text))})
	p.size += int64(len(text))
}

// between yields the texts of the iterations of a loop between two numbers, in their order.
func (p *spool) between(l *progress.Loop, after, before int, each func(text []byte) error) error {
	all := p.parts[l]
	slices.SortStableFunc(all, func(a, b part) int { return cmp.Compare(a.number, b.number) })
	i, _ := slices.BinarySearchFunc(all, after+1, func(a part, n int) int { return cmp.Compare(a.number, n) })
	for ; i < len(all) && all[i].number < before && p.err == nil; i++ {
		text := make([]byte, all[i].to-all[i].from)
		if _, err := p.file.ReadAt(text, all[i].from); err != nil {
			return err
		}
		if err := each(text); err != nil {
			return err
		}
	}
	return p.err
}

func (p *spool) close() {
	if p.file != nil {
		_ = p.file.Close()
		_ = os.Remove(p.file.Name())
	}
}

// drop adds an iteration that leaves the tree, as JSON on one line.
func (p *spool) drop(loop *progress.Step, it *progress.Iteration) {
	for _, s := range it.Steps {
		p.markGaps(s)
	}
	var one, all bytes.Buffer
	enc := progress.NewJSON(&one)
	enc.SetEscapeHTML(false)
	err := enc.Encode(it)
	if err == nil {
		err = p.fill(&all, bytes.TrimSuffix(one.Bytes(), []byte("\n")))
	}
	if p.err == nil {
		p.err = err
	}
	p.add(loop.Loop, it.Number, all.Bytes())
	for _, s := range it.Steps {
		p.forget(s)
	}
}

// forget forgets the texts of the loops in a step, which are in another text now.
func (p *spool) forget(s *progress.Step) {
	for l := range s.Loops() {
		delete(p.parts, l.Loop)
	}
}

// gap stands in the tree for iterations between two others.
type gap struct {
	loop          *progress.Loop
	after, before int
}

// markGaps puts an iteration whose status is the token of a gap where the loops in a step lack iterations.
func (p *spool) markGaps(s *progress.Step) {
	if s == nil {
		return
	}
	for l := range s.Loops() {
		var its []*progress.Iteration
		for i, it := range l.Loop.Iterations {
			if i > 0 && len(p.parts[l.Loop]) > 0 {
				p.gaps = append(p.gaps, gap{l.Loop, l.Loop.Iterations[i-1].Number, it.Number})
				its = append(its, &progress.Iteration{Status: progress.Status(fmt.Sprint(p.token, len(p.gaps)-1, "."))})
			}
			its = append(its, it)
		}
		l.Loop.Iterations = its
	}
}

// fill writes JSON, and in the place of each gap its iterations.
func (p *spool) fill(w io.Writer, text []byte) error {
	for {
		before, rest, found := bytes.Cut(text, []byte(p.token))
		if !found {
			_, err := w.Write(text)
			return err
		}
		number, rest, _ := bytes.Cut(rest, []byte("."))
		n, err := strconv.Atoi(string(number))
		if err != nil {
			return err
		}
		before = before[:bytes.LastIndexByte(before, '{')] // the object has no other in it
		text = rest[bytes.IndexByte(rest, '}')+1:]
		if _, err := w.Write(before); err != nil {
			return err
		}
		line := before[bytes.LastIndexByte(before, '\n')+1:]
		indents := len(bytes.TrimSpace(line)) == 0 && len(line) > 0
		g, some := p.gaps[n], false
		var buf bytes.Buffer
		err = p.between(g.loop, g.after, g.before, func(one []byte) error {
			buf.Reset()
			if some {
				buf.WriteByte(',')
			}
			if some && indents {
				buf.WriteByte('\n')
				buf.Write(line)
			}
			some = true
			if !indents {
				buf.Write(one)
			} else if err := json.Indent(&buf, one, string(line), "  "); err != nil {
				return err
			}
			_, err := w.Write(buf.Bytes())
			return err
		})
		if err != nil {
			return err
		}
		if !some { // no iteration is left out here
			text = bytes.TrimLeft(bytes.TrimPrefix(text, []byte(",")), " \n")
		}
	}
}
