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

// lifetime is how long a provider keeps what it is asked to keep, since it was last read.
const lifetime = 5 * time.Minute

// texts are those of a system instruction.
type texts struct {
	list    []string
	fixed   int  // bytes at the beginning of the joined texts that stay in the run
	changes bool // what comes next is behind a text that may change
}

// add adds a text that begins with so many bytes that stay.
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
	whole bool               // it is all of the instruction
	of    *template.Template // nil if it has no placeholders
	plain string             // what it is then
	keys  []string           // of the placeholders whose values may change
	moves bool               // a value changes from turn to turn
}

// newBeginning finds the beginning of an instruction in which only the fixed keys stay.
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
	case err != nil: // in a section: nothing is known to stay
	case len(of.Keys()) > 0:
		b.of = of
	default:
		b.plain, _ = of.Execute(func(string) (any, bool) { return nil, false })
	}
	return b
}

// bytes returns how many bytes at the beginning of a filled instruction stay in the run.
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

// hint completes the hint of the request: what later requests are expected to repeat. It is
// computed from the log and the definition alone, so that a resumed run sends what the run before would have
// sent. Fresh is the number of contents that only this request has.
//
// A later request of the run is expected if a loop around the agent may have another iteration; if iterations
// take longer than a provider keeps what it has, then only if two more are possible, because it costs twice as
// much to have it kept for an hour. The next turn is expected if the agent asked again at this point of the last
// iteration, or in the first one, if it has tools.
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
	if s := drive.At(r.ctx).Sample(); s != nil && r.turns == 1 && !r.fixed.moves { // all answers of a judge are to one request
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

// iterationsLeft returns how many iterations may follow in the nearest loop that can have one.
func iterationsLeft(l *drive.Loop) int {
	for ; l != nil; l = l.Outer {
		if l.MaxIterations == 0 {
			return 1 << 30
		}
		if left := int(l.MaxIterations) - l.Iteration; left > 0 {
			return left
		}
	}
	return 0
}

// expectsTurn reports whether the agent is expected to ask again when the request of a turn has been answered.
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

// pass is what the log tells of the iteration before the running one.
type pass struct {
	turns  int           // of the agent's last step in it; 0 if there was none
	period time.Duration // of an iteration; 0 in the first one of a nested loop
	long   bool          // there was an iteration before that, after which slow ones were known
}

// passBefore reads the iteration before the running one in the log, and the one before that. In the first
// iteration of a nested loop, they are those of the loop around it.
func (r *run) passBefore() (p pass) {
	nearest := drive.At(r.ctx).Loop()
	l := nearest
	for l != nil && l.Iteration < 2 {
		l = l.Outer
	}
	if l == nil {
		return p
	}
	var step session.Address           // of the agent
	var first, last, earlier time.Time // of the iteration before, and the first of the one before that
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

// keyOf is the name of an agent's requests in a session.
type keyOf struct{ session, key string }

// cacheKey names the requests of the agent in a run.
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
