// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/refrain-dev/refrain/session"
)

// Question is what a loop asks its judge about one version, once or several times, and once more when the loop has
// gone back to the version. The agents that answer see what those of the first answer saw: the log before it, the
// state and the loop as they were, and what their own step has added. So the answers are independent.
type Question struct {
	first session.Address
	loop  Loop
	were  map[string]earlier // keys that answers have written, by their values before
	state map[string]any     // of the version, if it is compared with another one
	other map[string]any     // the state of that one; nil if nothing is compared
}

// earlier is the value of a key at an earlier time.
type earlier struct {
	value any
	known bool // the key had one
}

// Question returns the question that the step at an address is the first to answer. It is for loops.
func (l *Loop) Question(first session.Address) *Question {
	q := &Question{first: first, loop: *l, were: make(map[string]earlier)}
	q.loop.Sample = nil
	return q
}

// Compare makes the question one about two versions, of which it is given the states: for the agents that answer, the second
// is the best. It is for loops.
func (q *Question) Compare(state, other map[string]any) {
	q.state, q.other, q.loop.Best = state, other, other
}

// Sample returns the answer that the step at an address is about to give; more reports that another one is expected.
func (q *Question) Sample(at session.Address, more bool) *Sample {
	s := &Sample{First: q.first, At: at, More: more, pair: q.other != nil}
	if at != q.first || q.other != nil {
		s.loop = &q.loop
		were := maps.Clone(q.were)
		s.were.Store(&were)
	}
	return s
}

// Swapped is like Sample for a question about two versions, and swaps them: the agents see the state of the second one, and the
// first as the best.
func (q *Question) Swapped(at session.Address, more bool) *Sample {
	s, were := q.Sample(at, more), maps.Clone(q.were)
	for key := range q.state {
		were[key] = earlier{}
	}
	for key, v := range q.other {
		were[key] = earlier{v, true}
	}
	l := q.loop
	l.Best, s.loop = q.state, &l
	s.were.Store(&were)
	return s
}

// Note takes down what an event of an answer is about to write, but for keys that sessions share: a log does not tell what
// these were before it, so they stay as they are, as they do when a loop goes back to an earlier version. It is for loops.
func (q *Question) Note(p Place, ev *session.Event) {
	temp, _ := ev.CustomMetadata[MetadataTemp].(map[string]any)
	for _, delta := range [...]map[string]any{ev.Actions.StateDelta, temp} {
		for key := range delta {
			shared := strings.HasPrefix(key, session.KeyPrefixApp) || strings.HasPrefix(key, session.KeyPrefixUser)
			if _, known := q.were[key]; !known && !shared {
				v, err := p.StateAt(ev.Address).Get(key)
				q.were[key] = earlier{v, err == nil}
			}
		}
	}
}

// Sample is one of the answers to a [Question].
type Sample struct {
	// First is the address of the step that answered first, and At that of the step that answers now.
	First, At session.Address
	// More reports that another answer is expected after this one.
	More bool

	pair bool                               // it compares two versions
	loop *Loop                              // as the first answer's step saw it; nil for that step
	were atomic.Pointer[map[string]earlier] // keys of other answers that this one has not written; nil for the first one
}

// Wrote lets the agents of the step see the keys that an event of the step writes. It is for loops.
func (s *Sample) Wrote(ev *session.Event) {
	temp, _ := ev.CustomMetadata[MetadataTemp].(map[string]any)
	s.shows(maps.Keys(ev.Actions.StateDelta))
	s.shows(maps.Keys(temp))
}

// shows lets the agents of the step see keys as they are.
func (s *Sample) shows(keys iter.Seq[string]) {
	if !s.Later() {
		return
	}
	for {
		old := s.were.Load()
		were := maps.Clone(*old) // agents may read it now
		for key := range keys {
			delete(were, key)
		}
		if s.were.CompareAndSwap(old, &were) {
			return
		}
	}
}

func (v earlier) get() (any, error) {
	if !v.known {
		return nil, session.ErrStateKeyNotExist
	}
	return v.value, nil
}

// before returns the value that a key had before the answers of other steps wrote it; hidden reports that they did.
func (l *Loop) before(key string) (v earlier, hidden bool) {
	for ; l != nil && !hidden; l = l.Outer {
		if l.Sample.Later() {
			v, hidden = (*l.Sample.were.Load())[key]
		}
	}
	return v, hidden
}

// AsAsked returns the nearest loop as the step's agents see it: for a later answer of the loop's judge, as it was for
// the first one. It returns nil outside loops.
func (p Place) AsAsked() *Loop {
	l := p.Loop()
	if l != nil && l.Sample.Later() {
		return l.Sample.loop
	}
	return l
}

// Sample returns the outermost answer of a judge that the step is part of, or nil.
func (p Place) Sample() (s *Sample) {
	for l := p.Loop(); l != nil; l = l.Outer {
		if l.Sample != nil {
			s = l.Sample
		}
	}
	return s
}

// Later reports whether the answer is not the first one.
func (s *Sample) Later() bool { return s != nil && s.loop != nil }

// Events returns the log as the step's agents see it: all of it, or for a later answer of a judge the events before
// the first answer and those of the own step. Who compares two versions sees the events before the loop, and not the one that
// made one of the two.
func (p Place) Events() session.Events {
	evs := p.ctx.Session().Events()
	for l := p.Loop(); l != nil; l = l.Outer {
		if l.Sample.Later() {
			evs = l.Sample.of(evs, p.ctx.InvocationID(), l.Address)
		}
	}
	return evs
}

// of returns the events that an answer of a judge is about, and its own.
func (s *Sample) of(evs session.Events, run string, loop session.Address) session.Events {
	n, cut := evs.Len(), -1
	for i := n - 1; i >= 0; i-- {
		ev := evs.At(i)
		switch {
		case ev.InvocationID != run || !s.pair && cut >= 0 && ev.Address.Under(loop) && !ev.Address.Under(s.First):
			i = 0
		case ev.Address.Under(s.First) || s.pair && ev.Address.Under(loop): // events of parallel branches may be between
			cut = i
		}
	}
	if cut < 0 {
		return evs
	}
	seen := &answerEvents{evs, cut, nil}
	for i := cut; i < n; i++ {
		if ev := evs.At(i); ev.Address.Under(s.At) || seen.own != nil && ev.Author == "user" {
			seen.own = append(seen.own, ev)
		}
	}
	return seen
}

// answerEvents are the first events of a log and some later ones.
type answerEvents struct {
	session.Events
	cut int
	own []*session.Event
}

func (e *answerEvents) Len() int { return e.cut + len(e.own) }

func (e *answerEvents) At(i int) *session.Event {
	if i < e.cut {
		return e.Events.At(i)
	}
	return e.own[i-e.cut]
}

func (e *answerEvents) All() iter.Seq[*session.Event] {
	return func(yield func(*session.Event) bool) {
		for i := 0; i < e.Len() && yield(e.At(i)); i++ {
		}
	}
}

// metadataSample is a key of the CustomMetadata of an event of a judge's answer. Its value lists the addresses of the
// steps that answered first, for the innermost loop first.
const metadataSample = "refrain:sample"

// stamp notes in an event which questions it answers.
func (l *Loop) stamp(ev *session.Event) {
	var firsts []any
	for ; l != nil; l = l.Outer {
		if l.Sample != nil {
			firsts = append(firsts, string(l.Sample.First))
		}
	}
	if firsts != nil && ev.Content != nil && !ev.Partial {
		Annotate(ev, metadataSample, firsts)
	}
}

// Hides reports whether an event of a log is hidden from the step's agents, because it belongs to one of several answers of
// a judge. Of the answers about a version others see the last one, whose values are in the state, but none that was given
// after the loop went back to the version.
func (p Place) Hides(evs session.Events, i int) bool {
	ev := evs.At(i)
	firsts, _ := ev.CustomMetadata[metadataSample].([]any)
	for _, v := range firsts {
		first, _ := v.(string)
		if p.answers(session.Address(first), ev) {
			continue
		}
		step, ok := answerOf(ev.Address, first)
		if !ok || supersededAnswer(evs, i, first, step) {
			return true
		}
	}
	return false
}

// answers reports whether an event belongs to the same answer as the step.
func (p Place) answers(first session.Address, ev *session.Event) bool {
	for l := p.Loop(); l != nil; l = l.Outer {
		if s := l.Sample; s != nil && s.First == first && ev.Address.Under(s.At) && ev.InvocationID == p.ctx.InvocationID() {
			return true
		}
	}
	return false
}

// answerOf returns the address of the step that gave an answer in the iteration of the first one; ok is false for an
// answer that was given in another iteration.
func answerOf(at session.Address, first string) (step string, ok bool) {
	rest, ok := strings.CutPrefix(string(at), first)
	if !ok {
		return "", false
	}
	number, _, _ := strings.Cut(rest, "/")
	return first + number, number == "" || number[0] == '#'
}

// supersededAnswer reports whether another step has answered after the one to which the i-th event belongs.
func supersededAnswer(evs session.Events, i int, first, step string) bool {
	loop, run := session.Address(first).Parent(), evs.At(i).InvocationID
	for j := i + 1; j < evs.Len(); j++ {
		ev := evs.At(j)
		if ev.InvocationID != run || ev.Content == nil || ev.Mark != nil || !ev.Address.Under(loop) {
			continue
		}
		firsts, _ := ev.CustomMetadata[metadataSample].([]any)
		if !slices.Contains(firsts, any(first)) {
			return false
		}
		if at, ok := answerOf(ev.Address, first); !ok || at != step {
			return ok
		}
	}
	return false
}
