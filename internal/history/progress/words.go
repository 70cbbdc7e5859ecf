// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// wordsFor is what an event says, in words: data without any is named.
func wordsFor(ev *session.Event) string {
	if text := ev.Text(); text != "" || !ev.Speaks() {
		return text
	}
	var names []string
	for _, p := range ev.Content.Parts {
		switch {
		case p == nil || p.Thought:
		case p.InlineData != nil:
			names = append(names, fmt.Sprintf("%s, %d bytes", p.InlineData.MIMEType, len(p.InlineData.Data)))
		case p.FileData != nil:
			names = append(names, p.FileData.FileURI)
		}
	}
	return "(" + strings.Join(names, "; ") + ")"
}

// words is what the iterations of an outermost loop have said; nil is nothing.
type words struct {
	cur, last, best, final *session.Event
}

// hear takes down what was said in a loop.
func (f *Fold) hear(ev *session.Event) {
	at := ev.Address
	if name, _, in := strings.Cut(string(at), "["); in {
		w := f.wordsOf(session.Address(name))
		w.cur = session.Answer(w.cur, ev)
		return
	}
	// Right below a loop, and in none of its iterations, is its finalizer.
	for a := at.Parent(); a != ""; a = a.Parent() {
		if w, ok := f.said[a]; ok {
			w.final = session.Answer(w.final, ev)
			return
		}
	}
}

func (f *Fold) wordsOf(loop session.Address) *words {
	w, ok := f.said[loop]
	if !ok {
		w = new(words)
		if f.said == nil {
			f.said = make(map[session.Address]*words)
		}
		f.said[loop] = w
	}
	return w
}

// end closes an iteration.
func (w *words) end(it loop.IterationRecord) {
	if it.Complete && w.cur != nil { // silence does not take back what was said
		w.last = w.cur
	}
	if it.Best {
		w.best = w.cur
	}
	w.cur = nil
}

// result is what the loop hands back. If it is not what was said last, the loop
// says it again after its record, and that counts.
func (w *words) result(from loop.Source) *session.Event {
	switch from {
	case loop.FromFinalizer:
		return w.final
	case loop.FromBest:
		return w.best
	case loop.FromLast:
		return w.last
	}
	return w.cur
}
