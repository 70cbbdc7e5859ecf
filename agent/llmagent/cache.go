// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
)

// PromptCache says whether the agent asks its provider to cache the parts that its requests repeat. The empty
// value asks for a cache, and [PromptCacheOff] does not. Any other value asks for a cache with that retention
// time, in the provider's syntax, such as OpenAI's "24h".
type PromptCache string

// PromptCacheOff asks for no cache. A provider whose cache is automatic, such as OpenAI, caches requests
// nevertheless.
const PromptCacheOff PromptCache = "off"

// lifetime is how long a provider keeps cached text after it was last read.
const lifetime = 5 * time.Minute

// texts collects the texts of a system instruction.
type texts struct {
	list    []string
	fixed   int  // bytes at the beginning of the joined texts that do not change in the run
	changes bool // a text that may change has been added, so later texts are not fixed
}

// add adds a text whose first bytes, as many as fixed says, do not change in the run.
func (t *texts) add(text string, fixed int) {
	if text == "" {
		return
	}
	if !t.changes {
		if len(t.list) > 0 {
			t.fixed += len("\n\n")
		}
		t.fixed += fixed
		t.changes = fixed < len(text)
	}
	t.list = append(t.list, text)
}

// beginning is the part of an instruction before the first placeholder whose value may change in a run.
type beginning struct {
	whole bool               // the beginning is the whole instruction
	of    *template.Template // template of the beginning; nil if it has no placeholders
	plain string             // text of the beginning if it has no placeholders
	keys  []string           // keys of the placeholders whose values may change
	moves bool               // a value changes from turn to turn
}

// newBeginning returns the beginning of an instruction in which only the values of the fixed keys do not change.
func newBeginning(text string, t *template.Template, fixed []string) beginning {
	b := beginning{whole: true}
	cut := len(text)
	for _, ref := range t.Keys() {
		if ref.Name == "user_input" || ref.Name == "max_iterations" || slices.Contains(fixed, ref.Name) {
			continue
		}
		b.whole, cut = false, min(cut, ref.From)
		b.moves = b.moves || ref.Name == "elapsed" || ref.Name == "budget.remaining"
		b.keys = append(b.keys, ref.Name)
	}
	if b.whole {
		return b
	}
	of, err := template.Parse(text[:cut], template.Options{})
	switch {
	case err != nil: // the cut is inside a section of the template, so no part is known to be fixed
	case len(of.Keys()) > 0:
		b.of = of
	default:
		b.plain, _ = of.Execute(func(string) (any, bool) { return nil, false })
	}
	return b
}

// bytes returns the number of bytes at the beginning of a filled instruction that do not change in the run.
func (b *beginning) bytes(text string, lookup func(string) (any, bool)) int {
	if b.whole {
		return len(text)
	}
	start := b.plain
	if b.of != nil {
		var err error
		if start, err = b.of.Execute(lookup); err != nil {
			return 0
		}
	}
	n := 0
	for n < min(len(start), len(text)) && start[n] == text[n] {
		n++
	}
	return n
}

// hint completes the cache hint of the request, which says what later requests are expected to repeat. It uses only the
// log and the definition, so that a resumed run sends the same requests as the run before. Fresh is the number of
// contents that belong to this request only.
//
// A later request of the run is expected if an enclosing loop may have another iteration. If iterations take longer
// than the provider keeps cached text, then two more iterations must be possible, because keeping text for an hour
// costs twice as much. A next turn is expected if the agent asked again at this point of the last iteration. In the
// first iteration it is expected if the agent has tools.
func (r *run) hint(req *model.LLMRequest, fresh int) {
	c := r.cache
	if c == nil {
		return
	}
	if !r.looked {
		r.before, r.looked = r.passBefore(), true
	}
	turn, left := r.expectsTurn(req, r.turns), iterationsLeft(drive.At(r.ctx).Loop())
	slow, again := r.before.period > lifetime, r.turns > 1 && r.expectsTurn(req, r.turns-1)
	c.Later = turn || left > 0 && !slow || left > 1 || again || r.before.turns > 0 && (!slow || r.before.long)
	c.Hour = slow && left > 1
	steady := r.cfg.StaticInstruction != "" || !r.fixed.moves && r.history.wrote != drive.At(r.ctx).Address()
	wholly := req.Config != nil && c.Static == textBytes(req.Config.SystemInstruction)
	all := wholly && !slow && r.policy().Policy == ContextFull // the next iteration repeats everything
	c.Next = turn && steady || left > 0 && all
	c.Before = again && steady || r.before.turns > 0 && all
	if s := drive.At(r.ctx).Sample(); s != nil && r.turns == 1 && !r.fixed.moves { // all samples of a judge answer the same request
		c.Later, c.Next, c.Before = c.Later || s.More || s.Later(), c.Next || s.More, c.Before || s.Later()
	}
	c.Fresh = fresh
}

func textBytes(c *genai.Content) (n int) {
	if c != nil {
		for _, p := range c.Parts {
			if p != nil {
				n += len(p.Text)
			}
		}
	}
	return n
}

// iterationsLeft returns the number of further iterations in the nearest loop that can have one.
func iterationsLeft(l *drive.Loop) int {
	for ; l != nil; l = l.Outer {
		if l.MaxIterations() == 0 {
			return 1 << 30
		}
		if left := int(l.MaxIterations()) - l.Iteration; left > 0 {
			return left
		}
	}
	return 0
}

// expectsTurn reports whether the agent is expected to ask the model again after the answer of a turn.
func (r *run) expectsTurn(req *model.LLMRequest, turn int) bool {
	if n := r.before.turns; n > 0 {
		return turn != n
	}
	for name := range req.Tools {
		if !isExit(name) && name != transferName && name != answerName {
			return true
		}
	}
	return false
}

// pass is what the log says about the iteration before the running one.
type pass struct {
	turns  int           // turns of the agent's last step in it; 0 if there was none
	period time.Duration // duration of an iteration; 0 in the first one of a nested loop
	long   bool          // there were at least two iterations before, so it was known whether they are slow
}

// passBefore reads the last two finished iterations from the log. In the first iteration of a nested loop, these are
// iterations of an enclosing loop.
func (r *run) passBefore() (p pass) {
	nearest := drive.At(r.ctx).Loop()
	l := nearest
	for l != nil && l.Iteration < 2 {
		l = l.Outer
	}
	if l == nil {
		return p
	}
	var step session.Address           // step of the agent
	var first, last, earlier time.Time // times of the last iteration, and the first time of the one before
	evs := r.ctx.Session().Events()
	for i := evs.Len() - 1; i >= 0; i-- {
		ev := evs.At(i)
		n := passOf(ev, l)
		if ev.InvocationID != r.ctx.InvocationID() || n > 0 && n < l.Iteration-2 {
			break
		}
		switch n {
		case 0: // before the loop
		case l.Iteration - 1:
			if first = ev.Timestamp; last.IsZero() {
				last = first
			}
			switch {
			case !r.isAnswer(ev):
			case step == "" || step == ev.Address:
				step = ev.Address
				p.turns++
			case l != nearest: // an earlier step; the period is not needed
				return p
			}
		case l.Iteration - 2:
			earlier = ev.Timestamp
		}
	}
	if l != nearest {
		return p
	}
	p.long = l.Iteration > 2
	if p.period = last.Sub(first); !earlier.IsZero() {
		p.period = first.Sub(earlier)
	}
	return p
}

// isAnswer reports whether an event is an answer of the agent's model.
func (a *Agent) isAnswer(ev *session.Event) bool {
	return ev.Author == a.Name() && ev.Content != nil && ev.Content.Role == genai.RoleModel && ev.Mark == nil &&
		ev.LongRunningToolIDs == nil
}

// keyOf is the cache key of an agent's requests in a session.
type keyOf struct{ session, key string }

// cacheKey returns the key under which the provider caches the agent's requests in this session.
func (r *run) cacheKey() string {
	id := r.ctx.Session().ID()
	if last := r.key.Load(); last != nil && last.session == id {
		return last.key
	}
	sum := sha256.Sum256([]byte(id + "\x00" + r.Name()))
	made := &keyOf{id, "refrain-" + hex.EncodeToString(sum[:12])}
	r.key.Store(made)
	return made.key
}
