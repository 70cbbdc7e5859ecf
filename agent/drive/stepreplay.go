// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// findRun looks up the run that is about to begin in the log of a resumed run.
func (s *Step) findRun(outer *stepRun) {
	inv := s.inv
	rec, superseded, skipped := inv.run.Replay.beginRun(outer, inv.address)
	if inv.attempt += superseded; rec != nil {
		inv.attempt = rec.attempt
	}
	inv.logged, s.current.unreplayed = rec, skipped
}

// failOutOfOrder ends a step that begins too early: the step around it runs one thing at a time, and has not yet
// repeated a logged event that comes before this step. It returns false if the step may begin.
func (s *Step) failOutOfOrder() bool {
	if s.parent.agent == nil || !isSequential(s.parent.agent) || s.parent.Err() != nil {
		return false
	}
	next, now := s.current.unreplayed, "a run of "+string(s.inv.address)
	if next != nil && s.isSibling(next.Address) {
		now += ", so the order of the sub-agents has changed"
	}
	return s.failMissing(next, now)
}

// isSibling reports whether an address is that of another step of this step's parent, which still has the agent of
// that step.
func (s *Step) isSibling(at session.Address) bool {
	return at.Parent() == s.inv.address.Parent() && at.Agent() != s.inv.address.Agent() &&
		slices.ContainsFunc(s.parent.agent.SubAgents(), func(sub agent.Agent) bool { return sub.Name() == at.Agent() })
}

// resolveEvent returns the event to pass on for an event that the step's agent has yielded. In a resumed run this is
// the logged event, if there is one. It returns nil if the step must end.
func (s *Step) resolveEvent(ev *session.Event) *session.Event {
	rec := s.inv.logged
	if rec != nil && ev.Seq != 0 && ev == At(s.inv).Recorded() {
		known, _ := s.inv.run.Replay.match(rec, ev, false)
		return known
	}
	below := s.isBelow(ev)
	if below && s.batching.passThrough && ev.Seq == 0 {
		return ev // the step below has set its origin and normalized it
	}
	if !below || s.isReplayed(ev) {
		ev = s.setOrigin(ev)
	}
	if !below || !s.batching.passThrough {
		if err := ev.Normalize(); err != nil { // before other code reads it
			s.stopWith(err)
			return nil
		}
	}
	switch {
	case ev.Address != s.inv.address:
		return ev
	case ev.Partial:
		return s.callOnEvent(ev)
	}
	if rec == nil {
		return s.prepareEvent(ev)
	}
	known, err := s.inv.run.Replay.match(rec, ev, isSequential(s.cfg.Agent) && s.inv.Context.Err() == nil)
	switch {
	case err == nil && known == ev:
		return s.prepareEvent(ev)
	case err == nil:
		s.inv.setTemp(ev)
	case s.inv.Context.Err() == nil:
		s.stopWith(s.inv.run.Replay.diverge(err))
		return nil
	case ev.Mark == nil: // yielded because the step is canceled
		s.stopIfCanceled()
		return nil
	default:
		s.annotateCancel(ev)
		return ev
	}
	return known
}

// prepareEvent runs the callbacks on an event of the step that is not in the log, and checks the limits. It returns
// nil if the step must end.
func (s *Step) prepareEvent(ev *session.Event) *session.Event {
	if ev = s.callOnEvent(ev); ev == nil {
		return nil
	}
	err := s.inv.checkStateLimit(ev)
	if err == nil && ev.Mark == nil && s.inv.run.Logged != nil {
		err = s.inv.checkLogLimit(ev.Weight())
	}
	if err != nil {
		s.stopWith(err)
		return nil
	}
	s.annotateCancel(ev)
	return ev
}

// metadataCanceled is a key of the CustomMetadata of an event that its step yielded after it was canceled. A resumed
// step may yield another event instead.
const metadataCanceled = "refrain:canceled"

func (s *Step) annotateCancel(ev *session.Event) {
	if !s.inv.run.Marks || s.inv.Context.Err() == nil || TraitsOf(s.cfg.Agent, true).Continues {
		return
	}
	Annotate(ev, metadataCanceled, true)
}

// failMissing ends a step that has left out the logged event next. what says what the step did instead. It returns
// false if next is nil.
func (s *Step) failMissing(next *session.Event, what string) bool {
	if next == nil {
		return false
	}
	s.stopWith(s.inv.run.Replay.diverge(&agent.DivergedError{Address: next.Address, Want: describe(next), Got: what}))
	return true
}

// passUnreplayed handles the logged events of the step that the resumed run has not reached. If the run is canceled
// they stay where they are. If the step has failed, because its own context ended or one of several parallel steps
// failed, it yields them as they are in the log. In any other case the run diverges. It returns false if the run
// diverges or the consumer stops.
func (s *Step) passUnreplayed(rec *stepRun) bool {
	r := s.inv.run.Replay
	failed := s.current.result.Err != nil && s.parent.stepContext.Err() == nil
	switch {
	case s.inv.Context.Err() == nil && !(failed && tracksCalls(s.cfg.Agent)):
		return !s.failMissing(r.firstUnreplayed(rec), "the end of "+string(s.inv.address))
	case !failed:
		return true
	}
	for i := rec.from; i <= rec.to; i++ {
		if ev := r.deliver(rec, i); ev != nil && !s.deliver(ev) {
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
	around := s.parent.logged
	if around == nil || !s.parent.run.Replay.hasEnded(around, in.Address) {
		return nil, false
	}
	return s.RunAs(in, yield), true
}

// replay yields the logged events of a finished step, and sets its logged result.
func (s *Step) replay(rec *stepRun) {
	r, fin := s.inv.run.Replay, new(mark.StepFinished)
	if end := r.deliver(rec, rec.to); end != nil {
		_ = end.Mark.Decode(fin) // cannot fail, because the log has decoded it before
	}
	s.chargeUsage(fin.Usage)
	for i := rec.from; i <= rec.to; i++ {
		if ev := r.deliver(rec, i); ev != nil && (!s.deliver(ev) || !s.stopIfCanceled()) {
			return
		}
	}
	s.current.stopped = true
	s.current.result.Recorded, s.current.result.Err = fin, ErrorOf(fin)
}

// chargeUsage books the usage of the step in an earlier part of the run.
func (s *Step) chargeUsage(usage json.RawMessage) {
	if usage == nil {
		return
	}
	if u := decodeUsage(usage); u != (budget.Usage{}) {
		s.inv.budget.Book(u)
		s.inv.run.modelCalls.Add(u.Calls)
	}
}

// describe returns a short text that names an event.
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

// compareReplayed compares an event that a step yields again with the logged one. It ignores fields that differ in
// every run, such as times and sequence numbers. It returns nil if the events match.
func compareReplayed(recorded, repeated *session.Event) *agent.DivergedError {
	if sameMark(recorded, repeated) {
		return nil
	}
	if was, ok := recorded.CustomMetadata[metadataSourceHash].(string); ok && was == hashOf(repeated) {
		return nil
	}
	a, b := stableJSON(recorded), stableJSON(repeated)
	if bytes.Equal(a, b) {
		return nil
	}
	return &agent.DivergedError{Address: recorded.Address, Want: string(a), Got: string(b)}
}

// sameMark reports whether two events have the same mark and nothing else. Most events of a log are marks, and this
// is faster than to compare JSON.
func sameMark(a, b *session.Event) bool {
	bare := func(ev *session.Event) bool {
		return ev.Mark != nil && ev.Content == nil && ev.Actions.StateDelta == nil && ev.Actions.Exit == nil &&
			ev.CustomMetadata == nil
	}
	return bare(a) && bare(b) && a.Author == b.Author && a.Iteration == b.Iteration &&
		a.Mark.Kind == b.Mark.Kind && bytes.Equal(a.Mark.Data, b.Mark.Data)
}

// stableJSON returns an event as JSON, without the fields that differ in every run. All numbers have one type, as
// they have after the store has read them.
func stableJSON(ev *session.Event) []byte {
	first, err := json.Marshal(ev)
	if err != nil {
		return []byte(err.Error())
	}
	var m map[string]any
	if err := json.Unmarshal(first, &m); err != nil {
		return []byte(err.Error())
	}
	// The branch follows from the address.
	for _, key := range [...]string{"id", "timestamp", "seq", "invocationId", "attempt", "branch", "usageMetadata"} {
		delete(m, key)
	}
	if metadata, ok := m["customMetadata"].(map[string]any); ok {
		delete(metadata, metadataCallback)
		delete(metadata, metadataSourceHash)
		delete(metadata, metadataSample) // earlier versions did not write it
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
			if len(delta) == 0 || delta[mark.KeyNoted] != nil { // the runner has added it to a mark
				delete(actions, "stateDelta")
			}
		}
	}
	if logged, ok := m["mark"].(map[string]any); ok {
		if data, ok := logged["data"].(map[string]any); ok {
			// A warning depends on limits, which another definition may raise; a trend, an error and a proof describe scores.
			for _, key := range [...]string{"seconds", "elapsed", "events", "digest", "usage", "warning", "trend", "best_error", "proof"} {
				delete(data, key)
			}
			if logged["kind"] == string(mark.KindLoopStopped) {
				delete(data, "detail") // an earlier version may have worded it differently
			}
		}
	}
	text, err := json.Marshal(m)
	if err != nil {
		return []byte(err.Error())
	}
	return text
}
