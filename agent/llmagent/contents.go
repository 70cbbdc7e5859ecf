// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// history is the conversation as this agent's model sees it. It grows with the log. It reads each event once, and adds
// each content to the conversation once.
type history struct {
	agent       *Agent
	view        *session.View // nil if the history ends with the agent's run
	branch      string
	next        int   // index of the first event that has not been read
	seen        int64 // sequence number of the last event that has been read
	contents    []*genai.Content
	calls       map[string]int   // call ID -> index of the content that holds it
	added       []*genai.Content // contents that tools added to the last request only
	instruction *genai.Content   // the instruction of the last request, if it follows the conversation
	late        late
	asked       *history                // the history before the running sample of a judge; nil without one
	bare        map[*genai.Content]bare // bare forms of contents with calls whose IDs are not sent

	sent   bareList         // contents without the agent's own IDs
	shared []*genai.Content // the slice of sent that requests share; each request has a beginning of it

	tally   tally
	counted sizeMemo
	wrote   session.Address // the step that last changed a value of the instruction
}

// newHistory returns the history that the run keeps for the agent, or else a new one.
func (a *Agent) newHistory(ctx agent.InvocationContext) *history {
	if a.policy().Policy == ContextFull {
		limit := math.MaxInt
		if drive.At(ctx).Sample().Later() {
			limit = drive.At(ctx).Events().Len()
		}
		if h := a.keptIn(ctx).take(session.ViewBehind(ctx.Session()), ctx.Branch(), limit); h != nil {
			return h
		}
	}
	return a.emptyHistory(ctx)
}

// emptyHistory returns a history that has read no event. Depending on the policy it begins with the user's message and
// a digest.
func (a *Agent) emptyHistory(ctx agent.InvocationContext) *history {
	h := &history{agent: a, branch: ctx.Branch(), calls: make(map[string]int), late: late{at: -1}}
	if a.policy().Policy == ContextFull {
		h.view = session.ViewBehind(ctx.Session())
	}
	evs := drive.At(ctx).Events()
	from, asked := a.first(ctx, evs)
	if asked != nil {
		h.add(asked)
		h.tally.asked = h.size()
	}
	if d := a.digest(ctx); d != nil {
		h.contents = append(h.contents, d.content)
		h.tally.tell(d.size)
	}
	if h.next = from; from > 0 {
		h.seen = evs.At(from - 1).Seq
	}
	h.tally.from = from
	return h
}

// keptHistory holds the last full history of an agent in a run, for the agent's next step, such as in the next
// iteration of a loop.
type keptHistory struct {
	mu   sync.Mutex
	last *history
}

// keptKey is the key of a kept history. A leg that begins from the loop's start has its own.
type keptKey struct {
	*Agent
	fresh session.Address
	since int
}

func (a *Agent) keptIn(ctx agent.InvocationContext) *keptHistory {
	key := keptKey{Agent: a}
	if l := drive.At(ctx).Loop().Fresh(); l != nil {
		key.fresh, key.since = l.Address, l.Since
	}
	return drive.At(ctx).Cached(key, func() any { return new(keptHistory) }).(*keptHistory)
}

// take returns the history kept for a view and a branch, or nil. It has read at most limit events. The caller owns the
// history until it puts it back.
func (k *keptHistory) take(view *session.View, branch string, limit int) *history {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := k.last
	if h == nil || view == nil || h.view != view || h.branch != branch || h.next > limit {
		return nil
	}
	k.last = nil
	return h
}

// keep stores a history for the agent's next step. If the step was a sample of a judge, keep stores the history from
// before the sample, because another sample must not see it.
func (h *history) keep(ctx agent.InvocationContext) {
	if h.view == nil {
		return
	}
	if h.asked != nil {
		h = h.asked
	}
	k := h.agent.keptIn(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last == nil || k.last.next <= h.next {
		k.last = h
	}
}

// copy returns a history with the same contents, which then grows independently.
func (h *history) copy() *history {
	c := *h
	c.contents, c.calls, c.late.at = slices.Clone(h.contents), maps.Clone(h.calls), -1
	c.bare, c.shared = nil, nil
	c.anew()
	return &c
}

// update reads the new events and returns the conversation. Other requests share the returned slice and its contents,
// so nobody may change them. The slice has no spare capacity.
//
// If the log does not continue the events that the history has read, update builds the history again.
func (h *history) update(ctx agent.InvocationContext) []*genai.Content {
	at := drive.At(ctx)
	evs, sample := at.Events(), at.Sample()
	if n := evs.Len(); n < h.next || h.next > 0 && evs.At(h.next-1).Seq != h.seen {
		*h = *h.agent.emptyHistory(ctx)
	}
	for ; h.next < evs.Len(); h.next++ {
		ev := evs.At(h.next)
		if sample != nil && h.asked == nil && h.view != nil && ev.Address.Under(sample.At) {
			h.asked = h.copy()
		}
		h.seen = ev.Seq
		if !at.Hides(evs, h.next) {
			h.add(ev)
		}
		for _, key := range h.agent.fixed.keys {
			if _, ok := ev.Actions.StateDelta[key]; ok {
				h.wrote = ev.Address
			}
		}
	}
	if h.late.at >= 0 {
		var l bareList
		return slices.Clip(h.withoutIDs(&l, h.lateLast()))
	}
	return h.share(h.withoutIDs(&h.sent, h.contents))
}

// share returns list as a slice that requests share. If list continues the slice from last time, share extends that
// slice. It makes a new one if a model has written into the slice, or if a pair of call and answer has changed.
func (h *history) share(list []*genai.Content) []*genai.Content {
	if n := len(h.shared); n > len(list) || !slices.Equal(h.shared, list[:n]) {
		h.shared = nil
	}
	h.shared = append(h.shared, list[len(h.shared):]...)
	return slices.Clip(h.shared)
}

// anew makes the next update process all contents again, because one in the middle has changed.
func (h *history) anew() {
	h.sent = bareList{}
	h.tally.anew()
}

// visible reports whether an agent in a branch sees an event.
func visible(ev *session.Event, branch string) bool {
	if ev.Content == nil || ev.Content.Role == "" || len(ev.Content.Parts) == 0 {
		return false
	}
	if ev.Mark != nil && ev.Mark.Kind != mark.KindRunStarted { // the mark of a run's start has the user's message
		return false
	}
	return hears(branch, ev.Branch)
}

// hears reports whether an agent in one branch sees the events of another branch.
func hears(branch, said string) bool {
	return said == "" || branch == "" || said == branch || strings.HasPrefix(branch, said) && branch[len(said)] == '.'
}

// add adds the content of an event, unless the agent does not see it or it is empty.
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

// take adds a content whose answers, if it has any, all belong to calls of one content.
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

// answer moves tool answers directly after the calls that they answer, because providers refuse anything between them.
// A later answer to the same call replaces the earlier one; see lateLast. An answer to an unknown call is left out.
// answer reports whether c needs no further handling.
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
	if at == len(h.contents)-1 { // the usual case
		return false
	}
	h.late.at = at
	next := h.contents[at+1]
	if !hasAnswers(next) {
		h.contents = append(h.contents[:at+1:at+1], append([]*genai.Content{c}, h.contents[at+1:]...)...)
		h.anew()
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
	h.anew()
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

const forContext = "For context:"

// retell returns another agent's content rewritten as context, as ADK does.
func retell(author string, c *genai.Content) *genai.Content {
	if len(c.Parts) == 1 && c.Parts[0] != nil && !c.Parts[0].Thought && isText(c.Parts[0]) && c.Parts[0].Text != "" {
		return newTexts(genai.RoleUser, forContext, "["+author+"] said: "+c.Parts[0].Text)
	}
	parts := []*genai.Part{{Text: forContext}}
	for _, p := range c.Parts {
		switch {
		case p == nil || p.Thought:
		case p.FunctionCall != nil:
			parts = append(parts, &genai.Part{Text: "[" + author + "] called tool `" + p.FunctionCall.Name +
				"` with parameters: " + argsJSON(p.FunctionCall)})
		case p.FunctionResponse != nil:
			parts = append(parts, &genai.Part{Text: "[" + author + "] `" + p.FunctionResponse.Name +
				"` tool returned result: " + asJSON(p.FunctionResponse.Response)})
		case p.Text != "":
			parts = append(parts, &genai.Part{Text: "[" + author + "] said: " + p.Text})
		default:
			other := *p
			other.ThoughtSignature = nil // the signature is valid only for the other model
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

// argsJSON returns the arguments of a call as JSON. It treats nil and an empty map alike, because a stored event does
// not distinguish them.
func argsJSON(c *genai.FunctionCall) string {
	if len(c.Args) == 0 {
		return "{}"
	}
	return asJSON(c.Args)
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// withoutEmpty returns a content without its empty parts; nil if no part is left.
func withoutEmpty(c *genai.Content) *genai.Content {
	if c == nil {
		return nil
	}
	nothing := func(p *genai.Part) bool { return p == nil || isEmpty(p) }
	switch {
	case len(c.Parts) > 0 && !slices.ContainsFunc(c.Parts, nothing):
		return c
	case !slices.ContainsFunc(c.Parts, func(p *genai.Part) bool { return !nothing(p) }):
		return nil
	}
	return &genai.Content{Role: c.Role, Parts: slices.DeleteFunc(slices.Clone(c.Parts), nothing)}
}

func isEmpty(p *genai.Part) bool {
	return p.Text == "" && p.FunctionCall == nil && p.FunctionResponse == nil && p.InlineData == nil &&
		p.FileData == nil && p.CodeExecutionResult == nil && p.ExecutableCode == nil && len(p.ThoughtSignature) == 0
}

// isAside reports whether a content is about the course of the conversation and not about its subject: a question to a
// person, the answer to it, or a transfer.
func isAside(c *genai.Content) bool {
	aside := func(name string) bool { return name == toolconfirmation.FunctionCallName || name == transferName }
	return slices.ContainsFunc(c.Parts, func(p *genai.Part) bool {
		return p != nil && (p.FunctionCall != nil && aside(p.FunctionCall.Name) ||
			p.FunctionResponse != nil && aside(p.FunctionResponse.Name))
	})
}
