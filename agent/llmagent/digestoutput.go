// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
)

// iterationOutput is what an iteration has put out: the state keys that it wrote, and the last texts of agents
// that write none.
type iterationOutput struct {
	it      drive.IterationSummary
	outputs []digestOutput
}

// digestOutput is one output of an iteration.
type digestOutput struct {
	name string // name of the state key, or of the agent that said it
	said bool   // text of an agent, not the value of a state key
	seq  int64
	text string
	json string // text of the event whose JSON is the value of the key; "" if there is none
}

// outputIn reads the output from the events of an iteration that a branch can see. If several agents
// wrote a key, the last one in the log counts, because a resumed run may reach them in another
// order.
func outputIn(it drive.IterationSummary, branch string) iterationOutput {
	type place struct {
		name string
		said bool
	}
	at := make(map[place]*session.Event)
	put := func(p place, ev *session.Event) {
		if was := at[p]; was == nil || was.Seq <= ev.Seq {
			at[p] = ev
		}
	}
	for _, ev := range it.Events {
		if !hears(branch, ev.Branch) {
			continue
		}
		for k := range ev.Actions.StateDelta {
			if isOutput(k) {
				put(place{name: k}, ev)
			}
		}
		if ev.Author != "user" && ev.Mark == nil && ev.Speaks() {
			put(place{ev.Author, true}, ev)
		}
	}
	outputs := make([]digestOutput, 0, len(at))
	for p, ev := range at {
		o := digestOutput{name: p.name, said: p.said, seq: ev.Seq}
		switch v := ev.Actions.StateDelta[p.name]; {
		case p.said:
			o.text = wordsOf(ev)
		case v == nil: // the key was deleted
			continue
		default:
			if o.text = drive.TextOf(v); ev.Speaks() {
				if said, err := session.PlainJSON([]byte(ev.Text())); err == nil && reflect.DeepEqual(said, v) {
					o.json = wordsOf(ev)
				}
			}
		}
		outputs = append(outputs, o)
	}
	// Sort by name, because parallel branches have no stable order. For one name, the text of an agent comes last.
	slices.SortFunc(outputs, func(a, b digestOutput) int {
		switch {
		case a.name != b.name || a.said == b.said:
			return strings.Compare(a.name, b.name)
		case a.said:
			return 1
		}
		return -1
	})
	it.Events = nil // the events are not needed any more
	m := iterationOutput{it: it}
	for _, o := range outputs {
		// Leave out a text that repeats the value of a key, or an earlier text, as the result of a loop does.
		again := func(other digestOutput) bool {
			return (other.text == o.text || other.json == o.text) && (!other.said || other.seq < o.seq)
		}
		if !o.said || !slices.ContainsFunc(outputs, again) {
			m.outputs = append(m.outputs, o)
		}
	}
	return m
}

// isOutput reports whether a state key outlives its iteration and its run.
func isOutput(key string) bool {
	return !strings.HasPrefix(key, session.KeyPrefixTemp) && !strings.HasPrefix(key, session.KeyPrefixIteration)
}

// wordsOf returns the text of an event, with a description of pictures and the like.
func wordsOf(ev *session.Event) string {
	var text strings.Builder
	text.WriteString(ev.Text())
	for _, p := range ev.Content.Parts {
		switch {
		case p == nil || p.Thought:
		case p.InlineData != nil:
			text.WriteString(fmt.Sprintf("[%s, %d bytes]", p.InlineData.MIMEType, len(p.InlineData.Data)))
		case p.FileData != nil:
			text.WriteString(fmt.Sprintf("[%s, %s]", p.FileData.MIMEType, p.FileData.FileURI))
		}
	}
	said, _ := session.Plain(text.String()) // the form in the log, and that of a state key with the same text
	return said.(string)
}

// line returns the outcome and the outputs of the iteration on one line. Prev is the output of the iteration before.
func (m *iterationOutput) line(prev iterationOutput) string {
	var b strings.Builder
	b.WriteString(outcome(m.it))
	sep, n := "; ", 0
	for i, o := range m.outputs {
		if i == maxOutputs || n > digestLine {
			fmt.Fprintf(&b, " and %d more", len(m.outputs)-i)
			break
		}
		text := sep + o.title() + " " + o.brief(prev)
		b.WriteString(text)
		sep, n = ", ", n+chars(text)
	}
	b.WriteString(".\n")
	return b.String()
}

// title names the output.
func (o digestOutput) title() string {
	name := o.name
	if !isPlain(name) {
		name = quoteLines(name, maxName)
	}
	if o.said {
		name += " said"
	}
	return name
}

// brief returns the beginning of the output, or "(unchanged)" if the iteration before had the same.
func (o digestOutput) brief(prev iterationOutput) string {
	for _, was := range prev.outputs {
		if was.name == o.name && was.said == o.said && was.text == o.text {
			return "(unchanged)"
		}
	}
	if n := chars(o.text); n > excerpt {
		return fmt.Sprintf("%s (%d characters)", quoteLines(o.text, excerpt), n)
	}
	return quoteLines(o.text, excerpt)
}

// write writes the outputs, at most limit characters in all. The shorter ones are complete, and the longer ones share
// the rest equally.
func (m *iterationOutput) write(b *strings.Builder, limit int) {
	outputs := m.outputs[:min(len(m.outputs), maxOutputs)]
	costs, shares := make([]int, len(outputs)), make([]int, len(outputs))
	order := make([]int, len(outputs))
	for i, o := range outputs {
		costs[i], order[i] = blockChars(o.text), i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(costs[i], costs[j]) })
	for n, i := range order {
		shares[i] = min(costs[i], limit/(len(order)-n))
		limit -= shares[i]
	}
	for i, o := range outputs {
		text, whole, all := block(o.text, shares[i])
		b.WriteString(o.title())
		if !whole {
			fmt.Fprintf(b, ", the first %d of %d characters", all.kept, all.chars)
		}
		b.WriteString(":\n")
		b.WriteString(text)
	}
	switch more := len(m.outputs) - len(outputs); {
	case len(outputs) == 0:
		b.WriteString("nothing that is kept.\n")
	case more > 0:
		fmt.Fprintf(b, "And %d more.\n", more)
	}
}
