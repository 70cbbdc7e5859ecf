// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/internal/brief"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// find looks up what the log has of the run that is about to begin.
func (s *Step) find(around *record) {
	inv := s.inv
	rec, again, skipped := inv.run.Replay.run(around, inv.address)
	if inv.attempt += again; rec != nil {
		inv.attempt = rec.attempt
	}
	inv.record, s.skipped = rec, skipped
}

// early ends a step that begins before the one around it has come to all that it
// did before: something was skipped.
func (s *Step) early() bool {
	if s.parent.agent == nil || !serial(s.parent.agent) || s.parent.Err() != nil {
		return false
	}
	return s.missed(s.skipped, "a run of "+string(s.inv.address))
}

// told is an event that the step's agent has yielded, as it is handed on; nil
// ends the step.
func (s *Step) told(ev *session.Event) *session.Event {
	rec := s.inv.record
	if rec != nil && ev.Seq != 0 && ev == At(s.inv).Recorded() {
		known, _ := s.inv.run.Replay.again(rec, ev, false)
		return known
	}
	below := s.isBelow(ev)
	if below && s.joins.through && ev.Seq == 0 {
		return ev // the step below has stamped it and made it plain, and it is as it was
	}
	if !below || s.isSaidAgain(ev) {
		ev = s.stamp(ev)
	}
	if !below || !s.joins.through {
		if err := ev.Normalize(); err != nil { // before anybody else sees it
			s.fail(err)
			return nil
		}
	}
	switch {
	case ev.Address != s.inv.address:
		return ev
	case ev.Partial:
		return s.changed(ev)
	}
	if rec == nil {
		return s.fresh(ev)
	}
	known, err := s.inv.run.Replay.again(rec, ev, serial(s.cfg.Agent) && s.inv.Context.Err() == nil)
	switch {
	case err == nil && known == ev:
		return s.fresh(ev)
	case err == nil:
		s.inv.keepTemp(ev)
	case s.inv.Context.Err() == nil:
		s.fail(s.inv.run.Replay.diverge(err))
		return nil
	case ev.Mark == nil: // said because it is canceled
		s.check()
		return nil
	default:
		s.noteCancel(ev)
		return ev
	}
	return known
}

// fresh takes an event of the step that is not in the log yet; nil ends the step.
func (s *Step) fresh(ev *session.Event) *session.Event {
	if ev = s.changed(ev); ev == nil {
		return nil
	}
	err := s.inv.weigh(ev)
	if err == nil && ev.Mark == nil && s.inv.run.Logged != nil {
		err = s.inv.room(ev.Weight())
	}
	if err != nil {
		s.fail(err)
		return nil
	}
	s.noteCancel(ev)
	return ev
}

// metadataCanceled marks an event that its step yielded when it was canceled. A resumed step
// may yield another.
const metadataCanceled = "refrain:canceled"

func (s *Step) noteCancel(ev *session.Event) {
	if !s.inv.run.Marks || s.inv.Context.Err() == nil || continues(s.cfg.Agent) {
		return
	}
	Annotate(ev, metadataCanceled, true)
}

// missed ends a step that leaves out what it did before, unless that is nil.
func (s *Step) missed(next *session.Event, what string) bool {
	if next == nil {
		return false
	}
	s.fail(s.inv.run.Replay.diverge(&agent.DivergedError{Address: next.Address, Recorded: describe(next), Said: what}))
	return true
}

// rest takes what a step did before that it has not come to again. Only one that was
// cut off, or in which one of several at once has failed, can leave something: that
// happened, and is handed up as it was. It returns false if the run diverges, or ends.
func (s *Step) rest(rec *record) bool {
	r := s.inv.run.Replay
	failed := s.res.Err != nil && s.parent.own.Err() == nil
	switch {
	case s.inv.Context.Err() == nil && !(failed && watches(s.cfg.Agent)):
		return !s.missed(r.unread(rec), "the end of "+string(s.inv.address))
	case !failed:
		return true
	}
	for i := rec.from; i <= rec.to; i++ {
		if ev := r.handed(rec, i); ev != nil && !s.pass(ev) {
			return false
		}
	}
	return true
}

// Replay does what [Step.RunAs] does for a step that has finished in an earlier part of the
// run: it passes the recorded events to yield and returns the recorded result. For any other
// step it does nothing and returns false. No code of the agent runs, so in.Context is not
// needed.
func (s *Step) Replay(in *StepRun, yield func(*session.Event) bool) (res *StepResult, ok bool) {
	around := s.parent.record
	if around == nil || !s.parent.run.Replay.ended(around, in.Address) {
		return nil, false
	}
	return s.RunAs(in, yield), true
}

// replay hands up what the step said and ends it as it ended.
func (s *Step) replay(rec *record) {
	r, fin := s.inv.run.Replay, new(mark.StepFinished)
	if end := r.handed(rec, rec.to); end != nil {
		_ = end.Mark.Decode(fin) // the recording could
	}
	s.book(fin.Usage)
	for i := rec.from; i <= rec.to; i++ {
		if ev := r.handed(rec, i); ev != nil && (!s.pass(ev) || !s.check()) {
			return
		}
	}
	s.done = true
	s.res.Recorded, s.res.Err = fin, errorOf(fin)
}

// book counts again what was used in an earlier part of the run.
func (s *Step) book(usage json.RawMessage) {
	if usage == nil {
		return
	}
	if u := usageOf(usage); u != (budget.Usage{}) {
		s.inv.budget.Book(u)
		s.inv.run.modelCalls.Add(u.Calls)
	}
}

// describe names an event in few words.
func describe(ev *session.Event) string {
	if ev.Mark != nil {
		return fmt.Sprintf("%s of %s", ev.Mark.Kind, ev.Address)
	}
	what := fmt.Sprintf("an event of %s", ev.Address)
	if text := ev.Text(); text != "" {
		what += fmt.Sprintf(" that says %q", brief.Clip(text, 60))
	}
	return what
}

// compare holds what a step says again against what the log has. It does not
// look at what is new by nature, such as times and numbers.
func compare(recorded, said *session.Event) *agent.DivergedError {
	if sameMark(recorded, said) {
		return nil
	}
	if was, ok := recorded.CustomMetadata[metadataSaid].(string); ok && was == hashOf(said) {
		return nil
	}
	a, b := lasting(recorded), lasting(said)
	if bytes.Equal(a, b) {
		return nil
	}
	return &agent.DivergedError{Address: recorded.Address, Recorded: string(a), Said: string(b)}
}

// sameMark compares two events that are marks only, as most are.
func sameMark(a, b *session.Event) bool {
	bare := func(ev *session.Event) bool {
		return ev.Mark != nil && ev.Content == nil && ev.Actions.StateDelta == nil && ev.Actions.Exit == nil &&
			ev.CustomMetadata == nil
	}
	return bare(a) && bare(b) && a.Author == b.Author && a.Iteration == b.Iteration &&
		a.Mark.Kind == b.Mark.Kind && bytes.Equal(a.Mark.Data, b.Mark.Data)
}

// lasting is an event as JSON without what is new by nature. Numbers are all of
// one kind, as they are after a journey through a store.
func lasting(ev *session.Event) []byte {
	first, err := json.Marshal(ev)
	if err != nil {
		return []byte(err.Error())
	}
	var m map[string]any
	if err := json.Unmarshal(first, &m); err != nil {
		return []byte(err.Error())
	}
	for _, key := range [...]string{"id", "timestamp", "seq", "invocationId", "attempt", "branch", "usageMetadata"} { // the address tells the branch
		delete(m, key)
	}
	if metadata, ok := m["customMetadata"].(map[string]any); ok {
		delete(metadata, metadataCallback)
		delete(metadata, metadataSaid)
		delete(metadata, mark.MetadataWarning)
		if delete(metadata, MetadataTemp); len(metadata) == 0 {
			delete(m, "customMetadata")
		}
	}
	if actions, ok := m["actions"].(map[string]any); ok {
		if delta, ok := actions["stateDelta"].(map[string]any); ok {
			for k := range delta {
				if strings.HasPrefix(k, session.KeyPrefixTemp) {
					delete(delta, k)
				}
			}
			if len(delta) == 0 || delta[mark.KeyNoted] != nil { // the runner's, on a mark
				delete(actions, "stateDelta")
			}
		}
	}
	if said, ok := m["mark"].(map[string]any); ok {
		if data, ok := said["data"].(map[string]any); ok {
			// A warning depends on limits, which another definition may raise.
			for _, key := range [...]string{"seconds", "elapsed", "events", "digest", "usage", "warning"} {
				delete(data, key)
			}
		}
	}
	text, err := json.Marshal(m)
	if err != nil {
		return []byte(err.Error())
	}
	return text
}
