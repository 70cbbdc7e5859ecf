// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"unicode/utf8"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
)

// MetadataContext is the key in the CustomMetadata of a model's answer under which the agent
// records the effect of a [ContextPolicy] other than full on the request. The value is a map
// with "policy", "sentChars", "savedChars", "sentContents" and "savedContents", and with a
// digest "digestChars", as in [Saving]. Numbers are float64, as JSON decodes them.
const MetadataContext = "refrain:context"

// Saving describes the effect of a context policy on one request. It counts the characters of
// texts, and of calls and their answers as JSON, but neither the system instruction nor the changes
// of callbacks.
type Saving struct {
	Policy ContextPolicy
	// SentChars are the characters of the conversation as it was sent, in
	// SentContents contents.
	SentChars, SentContents int
	// SavedChars are the characters that [ContextFull] would have sent in addition, in SavedContents
	// contents. They are negative if a digest is longer than the contents it replaces.
	SavedChars, SavedContents int
	// DigestChars are the characters of the digest; SentChars include them.
	DigestChars int
}

// SavingOf reads the entry [MetadataContext] of an event, new or from a store. It reports whether
// there is one; an answer from a cache has none.
func SavingOf(ev *session.Event) (Saving, bool) {
	m, ok := ev.CustomMetadata[MetadataContext].(map[string]any)
	if !ok || ev.CustomMetadata["cached"] == true {
		return Saving{}, false
	}
	number := func(key string) int {
		n, _ := m[key].(float64)
		return int(n)
	}
	policy, _ := m["policy"].(string)
	return Saving{
		Policy:    ContextPolicy(policy),
		SentChars: number("sentChars"), SentContents: number("sentContents"),
		SavedChars: number("savedChars"), SavedContents: number("savedContents"),
		DigestChars: number("digestChars"),
	}, true
}

func (s Saving) metadata() map[string]any {
	m := map[string]any{
		"policy":    string(s.Policy),
		"sentChars": float64(s.SentChars), "sentContents": float64(s.SentContents),
		"savedChars": float64(s.SavedChars), "savedContents": float64(s.SavedContents),
	}
	if s.DigestChars > 0 {
		m["digestChars"] = float64(s.DigestChars)
	}
	return m
}

// note writes the number of attempts and the savings of the policy into the metadata of a complete answer, once a turn.
func (r *run) note(ev *session.Event, tries *attempts) {
	policy := r.policy().Policy
	if ev.Partial || tries.noted || tries.requests == 1 && policy == ContextFull {
		return
	}
	tries.noted = true
	if tries.requests > 1 {
		drive.Annotate(ev, MetadataRetry, tries.metadata())
	}
	if policy != ContextFull {
		sent := r.history.size()
		saved := r.history.leftOut(drive.At(r.ctx))
		drive.Annotate(ev, MetadataContext, Saving{
			Policy: policy, SentChars: sent.chars, SentContents: sent.contents,
			SavedChars: saved.chars, SavedContents: saved.contents,
			DigestChars: r.history.tally.digest.chars,
		}.metadata())
	}
}

// size is the size of a conversation.
type size struct{ contents, chars int }

func (s *size) add(c *genai.Content) {
	s.contents++
	for _, p := range c.Parts {
		if p == nil {
			continue
		}
		s.chars += utf8.RuneCountInString(p.Text)
		if f := p.FunctionCall; f != nil {
			s.chars += utf8.RuneCountInString(f.Name) + utf8.RuneCountInString(asJSON(f.Args))
		}
		if f := p.FunctionResponse; f != nil {
			s.chars += utf8.RuneCountInString(f.Name) + utf8.RuneCountInString(asJSON(f.Response))
		}
	}
}

// tally counts the size of a history and of the contents it leaves out. It counts only on request.
type tally struct {
	sum     size
	counted int // number of contents that sum includes

	from   int  // index of the event that the history begins with
	asked  size // size of the user's message, if it is put before the history
	digest size // size of the digest after that message
	left   size // size of the contents that the policy leaves out
	known  bool // left has been computed
}

// tell adds the size of the digest, which is the last content so far.
func (t *tally) tell(digest size) {
	t.digest = digest
	t.sum = size{t.sum.contents + digest.contents, t.sum.chars + digest.chars}
	t.counted++
}

// anew makes the next call of size count all contents, because one in the middle has changed.
func (t *tally) anew() { t.sum, t.counted = size{}, 0 }

// size returns the size of the history. It counts each content once.
func (h *history) size() size {
	t := &h.tally
	for ; t.counted < len(h.contents); t.counted++ {
		t.sum.add(h.contents[t.counted])
	}
	return t.sum
}

// leftOut returns how much larger a history of all events, without the digest, would be.
func (h *history) leftOut(at drive.Place) size {
	evs, t := at.Events(), &h.tally
	if t.known {
		return t.left
	}
	t.known = true
	t.left = size{-t.digest.contents, -t.digest.chars}
	if t.from == 0 {
		return t.left
	}
	all, upTo := h.allBefore(at, evs)
	between := history{agent: h.agent, branch: h.branch, calls: make(map[string]int)}
	for i := min(upTo, t.from); i < max(upTo, t.from); i++ {
		if !at.Hides(evs, i) {
			between.add(evs.At(i))
		}
	}
	more, sign := between.size(), 1
	if upTo > t.from {
		sign = -1
	}
	t.left.contents += max(0, all.contents+sign*more.contents-t.asked.contents)
	t.left.chars += max(0, all.chars+sign*more.chars-t.asked.chars)
	return t.left
}

// allBefore returns the size of a history of all events up to the agent's last answer, as that
// answer's metadata records it. Each event is therefore counted once, however often the agent runs.
// Without an answer the size is zero.
func (h *history) allBefore(at drive.Place, evs session.Events) (all size, before int) {
	for i := evs.Len() - 1; i >= 0; i-- {
		ev := evs.At(i)
		if ev.Author != h.agent.Name() || ev.Branch != h.branch || at.Hides(evs, i) {
			continue
		}
		if s, ok := SavingOf(ev); ok {
			return size{s.SentContents + s.SavedContents, s.SentChars + s.SavedChars}, i
		}
	}
	return size{}, 0
}
