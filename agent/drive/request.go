// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"cmp"
	"encoding/json"
	"sync"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// requestUsage is the usage of a step's requests that the log has no answers for.
type requestUsage struct {
	last    budget.Usage // as expected before the request left
	earlier budget.Usage
}

// Requested returns the mark of a request that is about to leave. expected is the usage that it is expected to have,
// and unanswered that of the step's earlier requests in this process for which the log has no answer. The step must
// yield the mark before it sends the request. A resumed run that finds neither the answer nor the step's end counts
// both.
func Requested(expected, unanswered budget.Usage) (*mark.Mark, error) {
	var data mark.Requested
	data.Usage, _ = json.Marshal(expected) // cannot fail, because all fields are numbers
	if unanswered != (budget.Usage{}) {
		data.Unanswered, _ = json.Marshal(unanswered)
	}
	return mark.New(mark.KindRequested, data)
}

// addRequest records a request that a step was about to send.
func (x *replayLog) addRequest(ev *session.Event) error {
	var data mark.Requested
	if err := ev.Mark.Decode(&data); err != nil {
		return err
	}
	if x.requests == nil {
		x.requests = make(map[session.Address]*requestUsage)
	}
	at := cmp.Or(session.Address(data.At), ev.Address)
	x.requests[at] = &requestUsage{last: decodeUsage(data.Usage), earlier: decodeUsage(data.Unanswered)}
	return nil
}

// settleRequests removes the requests whose usage an event has: the request of its step, and those of agents in its
// tool calls.
func (x *replayLog) settleRequests(ev *session.Event, fin *mark.StepFinished) {
	q := x.requests[ev.Address]
	switch {
	case fin.Usage != nil:
		x.dropRequestsBelow(ev.Address)
		delete(x.requests, ev.Address)
	case ev.Mark != nil:
	case ev.Content != nil && ev.Content.Role == genai.RoleUser || ev.CustomMetadata[MetadataSpent] != nil:
		x.dropRequestsBelow(ev.Address)
		x.addUnaccountedAt(ev.Address, spentIn(ev))
	case q != nil && Answers(ev):
		more := max(0, x.usageOf(ev).Calls-1) // attempts that failed, which the answer counts
		q.last, q.earlier.Calls = budget.Usage{}, max(0, q.earlier.Calls-more)
	}
}

// dropRequestsBelow forgets the requests of steps below an address.
func (x *replayLog) dropRequestsBelow(at session.Address) {
	for below := range x.requests {
		if below != at && below.Under(at) {
			delete(x.requests, below)
		}
	}
}

// chargeUnanswered books the estimates of the requests whose process ended before their usage was known.
func (x *replayLog) chargeUnanswered() {
	for at, q := range x.requests {
		x.addUnaccountedAt(at, q.last.Add(q.earlier))
	}
	clear(x.requests)
}

// MetadataSpent is a key of the CustomMetadata of the event with a step's tool answers. Its value is the budget.Usage of
// the agents that ran in these calls, because the log does not have their events.
const MetadataSpent = "refrain:spent"

// toolLog writes the requests of agents that run in tool calls into the log of the step that makes the calls.
type toolLog struct {
	mu    sync.Mutex
	yield func(*session.Event, error) bool // nil when the calls are over
	spent budget.Usage
}

// LogToolCalls lets [Place.LogRequest] and [Place.AddSpent] reach the log while the step runs tools. The step must not
// yield before it calls end, which returns the usage of the agents in the tools.
func (p Place) LogToolCalls(yield func(*session.Event, error) bool) (end func() budget.Usage) {
	if p.inv == nil || !p.Marks() {
		return func() budget.Usage { return budget.Usage{} }
	}
	if p.inv.toolCalls == nil {
		p.inv.toolCalls = new(toolLog)
	}
	l := p.inv.toolCalls
	l.mu.Lock()
	l.yield, l.spent = yield, budget.Usage{}
	l.mu.Unlock()
	return func() budget.Usage {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.yield = nil
		return l.spent
	}
}

// LogRequest logs the mark of a request that a step in a tool call of this step is about to send. It returns false if the
// request must not be sent, because the calling step has ended.
func (p Place) LogRequest(ev *session.Event) bool {
	if p.inv == nil || p.inv.toolCalls == nil {
		return true
	}
	var data mark.Requested
	if ev.Mark.Decode(&data) != nil {
		return false
	}
	if data.At == "" {
		data.At = string(ev.Address)
	}
	m, err := mark.New(mark.KindRequested, data)
	l := p.inv.toolCalls
	l.mu.Lock()
	defer l.mu.Unlock()
	return err == nil && l.yield != nil && l.yield(&session.Event{Mark: m}, nil)
}

// AddSpent adds what an agent in a tool call of this step has used.
func (p Place) AddSpent(u budget.Usage) {
	if p.inv == nil || p.inv.toolCalls == nil {
		return
	}
	l := p.inv.toolCalls
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spent = l.spent.Add(u)
}

// InToolCall reports whether the step runs in a tool call of another step. The log then has none of its events.
func (p Place) InToolCall() bool {
	_, _, ok := p.toolCallOf()
	return ok
}

// spentIn returns the usage that an event with tool answers has under [MetadataSpent].
func spentIn(ev *session.Event) (u budget.Usage) {
	if v := ev.CustomMetadata[MetadataSpent]; v != nil {
		if data, err := json.Marshal(v); err == nil {
			u = decodeUsage(data)
		}
	}
	return u
}
