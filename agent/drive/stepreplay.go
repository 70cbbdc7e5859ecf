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

// findRun looks up what the log has of the run that is about to begin.
func (s *Step) findRun(around *stepRun) {
	inv := s.inv
	rec, again, skipped := inv.run.Replay.beginRun(around, inv.address)
	if inv.attempt += again; rec != nil {
		inv.attempt = rec.attempt
	}
	inv.logged, s.current.unreplayed = rec, skipped
}

// failOutOfOrder ends a step that begins before the one around it has come to all that it
// did before: something was skipped.
func (s *Step) failOutOfOrder() bool {
	if s.parent.agent == nil || !isSequential(s.parent.agent) || s.parent.Err() != nil {
		return false
	}
	next, now := s.current.unreplayed, "a run of "+string(s.inv.address)
	if next != nil && s.isBeside(next.Address) {
		now += ", so the order of the sub-agents has changed"
	}
	return s.failMissing(next, now)
}

// isBeside reports whether an address is that of a step beside this one, which the parent still has.
func (s *Step) isBeside(at session.Address) bool {
	return at.Parent() == s.inv.address.Parent() && at.Agent() != s.inv.address.Agent() &&
		slices.ContainsFunc(s.parent.agent.SubAgents(), func(sub agent.Agent) bool { return sub.Name() == at.Agent() })
}

// resolveEvent is an event that the step's agent has yielded, as it is handed on; nil
// ends the step.
func (s *Step) resolveEvent(ev *session.Event) *session.Event {
	rec := s.inv.logged
	if rec != nil && ev.Seq != 0 && ev == At(s.inv).Recorded() {
		known, _ := s.inv.run.Replay.match(rec, ev, false)
		return known
	}
	below := s.isBelow(ev)
	if below && s.batching.passThrough && ev.Seq == 0 {
		return ev // the step below has stamped it and made it plain, and it is as it was
	}
	if !below || s.isReplayed(ev) {
		ev = s.setOrigin(ev)
	}
	if !below || !s.batching.passThrough {
		if err := ev.Normalize(); err != nil { // before anybody else sees it
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
	case ev.Mark == nil: // said because it is canceled
		s.stopIfCanceled()
		return nil
	default:
		s.annotateCancel(ev)
		return ev
	}
	return known
}

// prepareEvent takes an event of the step that is not in the log yet; nil ends the step.
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

// metadataCanceled marks an event that its step yielded when it was canceled. A resumed step
// may yield another.
const metadataCanceled = "refrain:canceled"

func (s *Step) annotateCancel(ev *session.Event) {
	if !s.inv.run.Marks || s.inv.Context.Err() == nil || isContinuer(s.cfg.Agent) {
		return
	}
	Annotate(ev, metadataCanceled, true)
}

// failMissing ends a step that leaves out what it did before, unless that is nil.
func (s *Step) failMissing(next *session.Event, what string) bool {
	if next == nil {
		return false
	}
	s.stopWith(s.inv.run.Replay.diverge(&agent.DivergedError{Address: next.Address, Recorded: describe(next), Said: what}))
	return true
}

// passUnreplayed takes what a step did before that it has not come to again. Only one that was
// cut off, or in which one of several at once has failed, can leave something: that
// happened, and is handed up as it was. It returns false if the run diverges, or ends.
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

// replay hands up what the step said and ends it as it ended.
func (s *Step) replay(rec *stepRun) {
	r, fin := s.inv.run.Replay, new(mark.StepFinished)
	if end := r.deliver(rec, rec.to); end != nil {
		_ = end.Mark.Decode(fin) // the recording could
	}
	s.chargeUsage(fin.Usage)
	for i := rec.from; i <= rec.to; i++ {
		if ev := r.deliver(rec, i); ev != nil && (!s.deliver(ev) || !s.stopIfCanceled()) {
			return
		}
	}
	s.current.stopped = true
	s.current.result.Recorded, s.current.result.Err = fin, errorOf(fin)
}

// chargeUsage counts again what was used in an earlier part of the run.
func (s *Step) chargeUsage(usage json.RawMessage) {
	if usage == nil {
		return
	}
	if u := decodeUsage(usage); u != (budget.Usage{}) {
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

// compareReplayed holds what a step says again against what the log has. It does not
// look at what is new by nature, such as times and numbers.
func compareReplayed(recorded, said *session.Event) *agent.DivergedError {
	if sameMark(recorded, said) {
		return nil
	}
	if was, ok := recorded.CustomMetadata[metadataSourceHash].(string); ok && was == hashOf(said) {
		return nil
	}
	a, b := stableJSON(recorded), stableJSON(said)
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

// stableJSON is an event as JSON without what is new by nature. Numbers are all of
// one kind, as they are after a journey through a store.
func stableJSON(ev *session.Event) []byte {
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
			if len(delta) == 0 || delta[mark.KeyNoted] != nil { // the runner's, on a mark
				delete(actions, "stateDelta")
			}
		}
	}
	if said, ok := m["mark"].(map[string]any); ok {
		if data, ok := said["data"].(map[string]any); ok {
			// A warning depends on limits, which another definition may raise; a trend, an error and a proof are words about scores.
			for _, key := range [...]string{"seconds", "elapsed", "events", "digest", "usage", "warning", "trend", "best_error", "proof"} {
				delete(data, key)
			}
			if said["kind"] == string(mark.KindLoopStopped) {
				delete(data, "detail") // in words that may be those of an earlier version
			}
		}
	}
	text, err := json.Marshal(m)
	if err != nil {
		return []byte(err.Error())
	}
	return text
}
