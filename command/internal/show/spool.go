// SPDX-License-Identifier: Apache-2.0

package show

import (
	"bufio"
	"cmp"
	"io"
	"os"
	"slices"

	"github.com/refrain-dev/refrain/internal/history/progress"
)

// spool has the text of the iterations that the tree of a long run leaves out, so that show can write all iterations and
// holds few. The text is in a file without a name.
type spool struct {
	file  *os.File // nil: nothing was added
	out   *bufio.Writer
	size  int64
	parts map[*progress.Loop][]part
	err   error // the first
}

// part is the text of one iteration.
type part struct {
	number   int
	from, to int64
}

func newSpool() *spool { return &spool{parts: make(map[*progress.Loop][]part)} }

// add adds the text of an iteration of a loop, which write writes.
func (p *spool) add(l *progress.Loop, number int, write func(w io.Writer) error) {
	if p.file == nil && p.err == nil {
		if p.file, p.err = os.CreateTemp("", "refrain-show-"); p.err == nil {
			_ = os.Remove(p.file.Name()) // where an open file cannot be removed, close does it
			p.out = bufio.NewWriterSize(p, 1<<16)
		}
	}
	if p.err != nil {
		return
	}
	from := p.size + int64(p.out.Buffered())
	p.err = write(p.out)
	p.parts[l] = append(p.parts[l], part{number, from, p.size + int64(p.out.Buffered())})
}

// Write appends to the file.
func (p *spool) Write(text []byte) (int, error) {
	n, err := p.file.WriteAt(text, p.size)
	p.size += int64(n)
	return n, err
}

// between yields the texts of the iterations of a loop between two numbers, in their order.
func (p *spool) between(l *progress.Loop, after, before int, each func(text io.Reader) error) error {
	all := p.parts[l]
	if p.err != nil || len(all) == 0 {
		return p.err
	}
	if err := p.out.Flush(); err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b part) int { return cmp.Compare(a.number, b.number) })
	i, _ := slices.BinarySearchFunc(all, after+1, func(a part, n int) int { return cmp.Compare(a.number, n) })
	for ; i < len(all) && all[i].number < before; i++ {
		if err := each(io.NewSectionReader(p.file, all[i].from, all[i].to-all[i].from)); err != nil {
			return err
		}
	}
	return nil
}

func (p *spool) close() {
	if p.file != nil {
		_ = p.file.Close()
		_ = os.Remove(p.file.Name())
	}
}

// drop adds an iteration that leaves the tree, as JSON on one line.
func (p *spool) drop(loop *progress.Step, it *progress.Iteration) {
	p.add(loop.Loop, it.Number, func(w io.Writer) error {
		j := &treeJSON{w: w, spool: p}
		j.iteration(it)
		return j.err
	})
	p.forget(it.Steps)
}

// forget forgets the texts of the loops in steps, which are in another text now.
func (p *spool) forget(steps []*progress.Step) {
	for _, s := range steps {
		for l := range s.Loops() {
			delete(p.parts, l.Loop)
		}
	}
}
