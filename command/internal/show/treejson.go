// SPDX-License-Identifier: Apache-2.0

package show

import (
	"bufio"
	"bytes"
	"io"

	"github.com/refrain-dev/refrain/internal/history/progress"
)

// treeJSON writes a tree as JSON, step by step, with the iterations that it has left out. encoding/json writes what has a fixed size;
// it would hold the rest as a whole.
type treeJSON struct {
	w     io.Writer
	spool *spool
	buf   bytes.Buffer
	comma bool  // the next member or element follows another
	err   error // the first
}

// absent hides a member of an embedded struct, which is written by hand.
type absent = *struct{}

// report writes the report of a run, and its tree as the last member.
func (j *treeJSON) report(s *Shown) {
	tree := s.Tree
	j.object(struct {
		*Shown
		Tree absent `json:"tree,omitempty"`
	}{Shown: s}, func() {
		if tree == nil {
			return
		}
		j.member("tree")
		j.object(struct {
			*progress.Tree
			Root absent `json:"root,omitempty"`
		}{Tree: tree}, func() {
			if tree.Root != nil {
				j.member("root")
				j.step(tree.Root)
			}
		})
	})
}

func (j *treeJSON) step(s *progress.Step) {
	j.object(struct {
		*progress.Step
		Steps absent `json:"steps,omitempty"`
		Loop  absent `json:"loop,omitempty"`
	}{Step: s}, func() {
		if len(s.Steps) > 0 {
			j.member("steps")
			j.steps(s.Steps)
		}
		if s.Loop != nil {
			j.member("loop")
			j.loop(s.Loop)
		}
	})
}

func (j *treeJSON) steps(all []*progress.Step) {
	j.array(func() {
		for _, s := range all {
			j.element()
			j.step(s)
		}
	})
}

func (j *treeJSON) loop(l *progress.Loop) {
	j.object(struct {
		*progress.Loop
		Iterations absent `json:"iterations,omitempty"`
		Finalizer  absent `json:"finalizer,omitempty"`
	}{Loop: l}, func() {
		if len(l.Iterations) > 0 {
			j.member("iterations")
			j.array(func() { j.iterations(l) })
		}
		if l.Finalizer != nil {
			j.member("finalizer")
			j.step(l.Finalizer)
		}
	})
}

// iterations writes the iterations of a loop, those that the tree has left out in their places.
func (j *treeJSON) iterations(l *progress.Loop) {
	for i, it := range l.Iterations {
		if i > 0 && j.err == nil {
			j.err = j.spool.between(l, l.Iterations[i-1].Number, it.Number, func(text io.Reader) error {
				j.element()
				_, err := io.Copy(j.w, text)
				return err
			})
		}
		j.element()
		j.iteration(it)
	}
}

func (j *treeJSON) iteration(it *progress.Iteration) {
	j.object(struct {
		*progress.Iteration
		Steps absent `json:"steps,omitempty"`
	}{Iteration: it}, func() {
		j.member("steps")
		j.steps(it.Steps)
	})
}

// object writes the members of v and those that more writes.
func (j *treeJSON) object(v any, more func()) {
	if j.err != nil {
		return
	}
	j.buf.Reset()
	enc := progress.NewJSON(&j.buf)
	enc.SetEscapeHTML(false)
	if j.err = enc.Encode(v); j.err != nil {
		return
	}
	text := bytes.TrimSuffix(j.buf.Bytes(), []byte("\n"))
	j.write(text[:len(text)-1])
	j.comma = len(text) > len("{}")
	more()
	j.write([]byte("}"))
	j.comma = true
}

func (j *treeJSON) array(elements func()) {
	j.write([]byte("["))
	j.comma = false
	elements()
	j.write([]byte("]"))
	j.comma = true
}

// member begins a member of an object, whose value follows.
func (j *treeJSON) member(name string) {
	j.element()
	j.write([]byte(`"` + name + `":`))
}

// element begins an element of an array.
func (j *treeJSON) element() {
	if j.comma {
		j.write([]byte(","))
	}
	j.comma = true
}

func (j *treeJSON) write(text []byte) {
	if j.err == nil {
		_, j.err = j.w.Write(text)
	}
}

// indenter breaks JSON into lines as json.Indent does, and holds none of it.
type indenter struct {
	w             *bufio.Writer
	depth         int
	text, escaped bool // within a text, after a backslash
	opened        bool // the last byte has opened an object or an array
}

func (n *indenter) Write(p []byte) (int, error) {
	for _, c := range p {
		if n.opened && c != '}' && c != ']' {
			n.line()
		}
		opened := n.opened
		n.opened = false
		switch {
		case n.text:
			n.text, n.escaped = n.escaped || c != '"', !n.escaped && c == '\\'
		case c == '"':
			n.text = true
		case c == '{' || c == '[':
			n.depth++
			n.opened = true
		case c == '}' || c == ']':
			if n.depth--; !opened {
				n.line()
			}
		}
		if err := n.w.WriteByte(c); err != nil {
			return 0, err
		}
		switch {
		case n.text || n.opened:
		case c == ',':
			n.line()
		case c == ':':
			_ = n.w.WriteByte(' ') // bufio keeps the error for the next call
		}
	}
	return len(p), nil
}

// line begins a line.
func (n *indenter) line() {
	_ = n.w.WriteByte('\n')
	for range n.depth {
		_, _ = n.w.WriteString("  ")
	}
}
