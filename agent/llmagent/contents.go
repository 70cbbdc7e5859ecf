// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"weak"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// history is the conversation as this agent's model sees it. It grows with the
// log: each event is looked at once while the agent runs.
type history struct {
	agent    *Agent
	view     *session.View // nil for sessions of another kind
	branch   string
	next     int // index of the first event not looked at
	contents []*genai.Content
	calls    map[string]int // call ID -> index of the content that holds it
	late     late
	bare     map[*genai.Content]bare // of contents with calls whose IDs are not sent

	tally   tally
	counted counted
}

func (a *Agent) newHistory(ctx agent.InvocationContext) *history {
	view := session.ViewBehind(ctx.Session())
	full := a.policy().Policy == ContextFull
	if full {
		if h := a.kept.take(view, ctx.Branch()); h != nil {
			return h
		}
	}
	h := &history{agent: a, branch: ctx.Branch(), calls: make(map[string]int), late: late{at: -1}}
	if full {
		h.view = view
	}
	from, asked := a.first(ctx, ctx.Session().Events())
	if asked != nil {
		h.add(asked)
		h.tally.asked = h.size()
	}
	if d := a.digest(ctx); d != nil {
		h.contents = append(h.contents, d.content)
		h.tally.tell(d.size)
	}
	h.next = from
	h.tally.from = from
	return h
}

// keptHistory is the whole history that the agent built last, for its next run
// in the same session, as in the next iteration of a loop. It is held weakly: an
// agent may outlive its sessions, and a lost history is built again.
type keptHistory struct {
	mu   sync.Mutex
	last weak.Pointer[history]
}

// take returns the history kept for a view and a branch, which is the caller's
// until he puts it back; nil if there is none.
func (k *keptHistory) take(view *session.View, branch string) *history {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := k.last.Value()
	if h == nil || view == nil || h.view != view || h.branch != branch {
		return nil
	}
	k.last = weak.Pointer[history]{}
	return h
}

func (k *keptHistory) put(h *history) {
	if h.view == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = weak.Make(h)
}

// update takes in what was said since, and returns the conversation. The slice
// is the caller's, with room for one more; what is in it is shared and must not
// be changed.
func (h *history) update(evs session.Events) []*genai.Content {
	for ; h.next < evs.Len(); h.next++ {
		h.add(evs.At(h.next))
	}
	return h.withoutIDs(h.lateLast())
}

// visible reports whether an agent in a branch sees an event.
func visible(ev *session.Event, branch string) bool {
	if ev.Content == nil || ev.Content.Role == "" || len(ev.Content.Parts) == 0 || ev.Mark != nil {
		return false
	}
	return hears(branch, ev.Branch)
}

// hears reports whether an agent in a branch hears of what is said in another.
func hears(branch, said string) bool {
	return said == "" || branch == "" || said == branch || strings.HasPrefix(branch, said) && branch[len(said)] == '.'
}

func (h *history) add(ev *session.Event) {
	if !visible(ev, h.branch) {
		return
	}
	c := withoutQuestions(ev)
	if ev.Author != h.agent.Name() && ev.Author != "user" {
		c = retell(ev.Author, c)
	}
	if c = withoutEmpty(c); c == nil {
		return
	}
	h.late.hear(ev, c)
	pieces := h.split(c)
	if pieces == nil {
		h.take(c)
	}
	for _, piece := range pieces {
		h.take(piece)
	}
}

// take adds a content all of whose answers are to calls of one content.
func (h *history) take(c *genai.Content) {
	if h.answer(c) {
		return
	}
	for _, p := range c.Parts {
		if p.FunctionCall != nil && p.FunctionCall.ID != "" {
			h.calls[p.FunctionCall.ID] = len(h.contents)
		}
	}
	h.contents = append(h.contents, c)
}

// answer puts tool answers right behind the calls that they answer, since
// providers refuse anything between, and a later answer to one call in the
// earlier one's place; see lateLast. An answer to no call is left out. It reports whether c is
// dealt with.
func (h *history) answer(c *genai.Content) bool {
	var ids []string
	for _, p := range c.Parts {
		if p.FunctionResponse != nil {
			ids = append(ids, p.FunctionResponse.ID)
		}
	}
	if len(ids) == 0 {
		return false
	}
	at, ok := h.calls[ids[0]]
	if !ok {
		return true
	}
	if at == len(h.contents)-1 { // as it nearly always is
		return false
	}
	h.late.at = at
	next := h.contents[at+1]
	if !hasAnswers(next) {
		h.contents = append(h.contents[:at+1:at+1], append([]*genai.Content{c}, h.contents[at+1:]...)...)
		h.tally.anew()
		for id, i := range h.calls {
			if i > at {
				h.calls[id] = i + 1
			}
		}
		return true
	}
	merged := &genai.Content{Role: next.Role, Parts: append([]*genai.Part{}, next.Parts...)}
	for _, p := range c.Parts {
		merged.Parts = mergeAnswer(merged.Parts, p)
	}
	h.contents[at+1] = merged
	h.tally.anew()
	return true
}

func hasAnswers(c *genai.Content) bool {
	for _, p := range c.Parts {
		if p.FunctionResponse != nil {
			return true
		}
	}
	return false
}

func mergeAnswer(parts []*genai.Part, p *genai.Part) []*genai.Part {
	if p.FunctionResponse != nil {
		for i, old := range parts {
			if old.FunctionResponse != nil && old.FunctionResponse.ID == p.FunctionResponse.ID {
				parts[i] = p
				return parts
			}
		}
	}
	return append(parts, p)
}

// retell words what another agent said as context, as ADK does.
func retell(author string, c *genai.Content) *genai.Content {
	parts := []*genai.Part{{Text: "For context:"}}
	for _, p := range c.Parts {
		switch {
		case p == nil || p.Thought:
		case p.FunctionCall != nil:
			parts = append(parts, &genai.Part{Text: "[" + author + "] called tool `" + p.FunctionCall.Name +
				"` with parameters: " + asJSON(p.FunctionCall.Args)})
		case p.FunctionResponse != nil:
			parts = append(parts, &genai.Part{Text: "[" + author + "] `" + p.FunctionResponse.Name +
				"` tool returned result: " + asJSON(p.FunctionResponse.Response)})
		case p.Text != "":
			parts = append(parts, &genai.Part{Text: "[" + author + "] said: " + p.Text})
		default:
			other := *p
			other.ThoughtSignature = nil // it is the other model's own
			if !isEmpty(&other) {
				parts = append(parts, &other)
			}
		}
	}
	if len(parts) == 1 {
		return nil
	}
	return &genai.Content{Role: genai.RoleUser, Parts: parts}
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// withoutEmpty leaves out parts with nothing in them; nil if none is left.
func withoutEmpty(c *genai.Content) *genai.Content {
	if c == nil {
		return nil
	}
	kept := make([]*genai.Part, 0, len(c.Parts))
	for _, p := range c.Parts {
		if p != nil && !isEmpty(p) {
			kept = append(kept, p)
		}
	}
	switch len(kept) {
	case 0:
		return nil
	case len(c.Parts):
		return c
	}
	return &genai.Content{Role: c.Role, Parts: kept}
}

func isEmpty(p *genai.Part) bool {
	return p.Text == "" && p.FunctionCall == nil && p.FunctionResponse == nil && p.InlineData == nil &&
		p.FileData == nil && p.CodeExecutionResult == nil && p.ExecutableCode == nil && len(p.ThoughtSignature) == 0
}

// isAside reports whether a content is about how the conversation goes and not
// about its matter: a question to a person, the answer, or a transfer.
func isAside(c *genai.Content) bool {
	aside := func(name string) bool { return name == toolconfirmation.FunctionCallName || name == transferName }
	return slices.ContainsFunc(c.Parts, func(p *genai.Part) bool {
		return p != nil && (p.FunctionCall != nil && aside(p.FunctionCall.Name) ||
			p.FunctionResponse != nil && aside(p.FunctionResponse.Name))
	})
}
