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

// Question is a question of a loop to its judge about one version. The loop can ask it several times, and again after
// it has gone back to the version. The answers are independent: the agents of each answer see the log before the
// first answer, the state and the loop of that time, and what their own step has added.
type Question struct {
	first        session.Address
	loop         Loop
	valuesBefore map[string]earlierValue // by key that an answer has written: the value before
	state        map[string]any          // of the version, if it is compared with another version
	other        map[string]any          // of the other version; nil if the question compares nothing
}

// earlierValue is the value of a key at an earlier time.
type earlierValue struct {
	value any
	known bool // the key had a value
}

// Question returns the question that the step at an address is the first to answer. It is for loops.
func (l *Loop) Question(first session.Address) *Question {
	q := &Question{first: first, loop: *l, valuesBefore: make(map[string]earlierValue)}
	q.loop.Sample = nil
	return q
}

// Compare makes the question a comparison of two versions, whose states it is given. The agents that answer see the
// second version as the best one. It is for loops.
func (q *Question) Compare(state, other map[string]any) {
	q.state, q.other, q.loop.Best = state, other, other
}

// Sample returns the answer that the step at an address is about to give; more reports that another one is expected.
func (q *Question) Sample(at session.Address, more bool) *Sample {
	s := &Sample{First: q.first, At: at, More: more, compares: q.other != nil}
	if at != q.first || q.other != nil {
		s.loop = &q.loop
		were := maps.Clone(q.valuesBefore)
		s.valuesBefore.Store(&were)
	}
	return s
}

// Swapped does what Sample does for a question about two versions, and swaps them: the agents see the state of the
// second version, and the first version as the best one.
func (q *Question) Swapped(at session.Address, more bool) *Sample {
	s, were := q.Sample(at, more), maps.Clone(q.valuesBefore)
	for key := range q.state {
		were[key] = earlierValue{}
	}
	for key, v := range q.other {
		were[key] = earlierValue{v, true}
	}
	l := q.loop
	l.Best, s.loop = q.state, &l
	s.valuesBefore.Store(&were)
	return s
}

// Note records the present values of the keys that an event of an answer is about to write. It leaves out keys that
// sessions share (app: and user:), because a log does not have their earlier values. These keys keep their present
// values, as they do when a loop goes back to an earlier version. It is for loops.
func (q *Question) Note(p Place, ev *session.Event) {
	temp, _ := ev.CustomMetadata[MetadataTemp].(map[string]any)
	for _, delta := range [...]map[string]any{ev.Actions.StateDelta, temp} {
		for key := range delta {
			shared := strings.HasPrefix(key, session.KeyPrefixApp) || strings.HasPrefix(key, session.KeyPrefixUser)
			if _, known := q.valuesBefore[key]; !known && !shared {
				v, err := p.StateAt(ev.Address).Get(key)
				q.valuesBefore[key] = earlierValue{v, err == nil}
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

	compares     bool                                    // it compares two versions
	loop         *Loop                                   // as the step of the first answer saw it; nil for that step
	valuesBefore atomic.Pointer[map[string]earlierValue] // keys that other answers wrote and this one did not; nil for the first answer
}

// Wrote makes the keys that an event of the step writes visible to the agents of the step. It is for loops.
func (s *Sample) Wrote(ev *session.Event) {
	temp, _ := ev.CustomMetadata[MetadataTemp].(map[string]any)
	s.show(maps.Keys(ev.Actions.StateDelta))
	s.show(maps.Keys(temp))
}

// show makes the present values of keys visible to the agents of the step.
func (s *Sample) show(keys iter.Seq[string]) {
	if !s.Later() {
		return
	}
	for {
		old := s.valuesBefore.Load()
		were := maps.Clone(*old) // agents may read it now
		for key := range keys {
			delete(were, key)
		}
		if s.valuesBefore.CompareAndSwap(old, &were) {
			return
		}
	}
}

func (v earlierValue) get() (any, error) {
	if !v.known {
		return nil, session.ErrStateKeyNotExist
	}
	return v.value, nil
}

// valueBefore returns the value that a key had before the answers of other steps wrote it; hidden reports that they did.
func (l *Loop) valueBefore(key string) (v earlierValue, hidden bool) {
	for ; l != nil && !hidden; l = l.Outer {
		if l.Sample.Later() {
			v, hidden = (*l.Sample.valuesBefore.Load())[key]
		}
	}
	return v, hidden
}

// AsAsked returns the nearest loop as the step's agents see it. For a later answer of the loop's judge this is the
// loop at the time of the first answer. It returns nil outside loops.
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

// Events returns the log as the step's agents see it. That is the whole log, unless the step gives a later answer of
// a judge. Then it is the log before the first answer, and the events of the own step. If the answer compares two
// versions, it is the log before the loop, and the events of the own step, so the agents do not see how one of the
// versions was made.
func (p Place) Events() session.Events {
	evs := p.ctx.Session().Events()
	for l := p.Loop(); l != nil; l = l.Outer {
		if l.Sample.Later() {
			evs = l.Sample.eventsFor(evs, p.ctx.InvocationID(), l.Address)
		}
	}
	return evs
}

// eventsFor returns the events that the agents of a later answer see: see [Place.Events].
func (s *Sample) eventsFor(evs session.Events, run string, loop session.Address) session.Events {
	n, cut := evs.Len(), -1
	for i := n - 1; i >= 0; i-- {
		ev := evs.At(i)
		switch {
		case ev.InvocationID != run || !s.compares && cut >= 0 && ev.Address.Under(loop) && !ev.Address.Under(s.First):
			i = 0
		case ev.Address.Under(s.First) || s.compares && ev.Address.Under(loop): // events of parallel branches may be between
			cut = i
		}
	}
	if cut < 0 {
		return evs
	}
	seen := &answerEvents{evs, cut, nil}
	for i := cut; i < n; i++ {
		if ev := evs.At(i); ev.Address.Under(s.At) || seen.added != nil && ev.Author == "user" {
			seen.added = append(seen.added, ev)
		}
	}
	return seen
}

// answerEvents is a log that has the first events of another log, and then some of its later events.
type answerEvents struct {
	session.Events
	history int // number of the first events of Events that are seen
	added   []*session.Event
}

func (e *answerEvents) Len() int { return e.history + len(e.added) }

func (e *answerEvents) At(i int) *session.Event {
	if i < e.history {
		return e.Events.At(i)
	}
	return e.added[i-e.history]
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

// stamp notes in an event which questions of judges it answers.
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

// Hides reports whether the i-th event of a log is hidden from the step's agents, because it belongs to an answer of
// a judge. The agents see the events of their own answer. Of several other answers about a version they see only the
// last one, because the state has its values. They never see an answer that was given after the loop went back to the
// version.
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

// supersededAnswer reports whether another step has answered the question after the step to which the i-th event
// belongs.
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
