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

// request is the usage of a step's requests that the log has no answers for.
type request struct {
	last    budget.Usage // as expected before the request left
	earlier budget.Usage
}

// Requested returns the mark of a request that is about to leave. expected is the usage that it is expected to have,
// and unanswered that of the step's earlier requests in this process for which the log has no answer. The step must
// yield the mark before it sends the request. A resumed run that finds neither the answer nor the step's end counts
// both.
func Requested(expected, unanswered budget.Usage) (*mark.Mark, error) {
	var data mark.Requested
	data.Usage, _ = json.Marshal(expected) // numbers: there is no error
	if unanswered != (budget.Usage{}) {
		data.Unanswered, _ = json.Marshal(unanswered)
	}
	return mark.New(mark.KindRequested, data)
}

// request notes that a request has left.
func (x *recording) request(ev *session.Event) error {
	var data mark.Requested
	if err := ev.Mark.Decode(&data); err != nil {
		return err
	}
	if x.asked == nil {
		x.asked = make(map[session.Address]*request)
	}
	at := cmp.Or(session.Address(data.At), ev.Address)
	x.asked[at] = &request{last: usageOf(data.Usage), earlier: usageOf(data.Unanswered)}
	return nil
}

// settle takes the requests off the list whose usage an event has: those of its step, and those of agents in its tool calls.
func (x *recording) settle(ev *session.Event, fin *mark.StepFinished) {
	q := x.asked[ev.Address]
	switch {
	case fin.Usage != nil:
		x.drop(ev.Address)
		delete(x.asked, ev.Address)
	case ev.Mark != nil:
	case ev.Content != nil && ev.Content.Role == genai.RoleUser || ev.CustomMetadata[MetadataSpent] != nil:
		x.drop(ev.Address)
		x.wasteAt(ev.Address, spentIn(ev))
	case q != nil && Answers(ev):
		more := max(0, x.used(ev).Calls-1) // attempts that failed, which the answer counts
		q.last, q.earlier.Calls = budget.Usage{}, max(0, q.earlier.Calls-more)
	}
}

// drop forgets the requests of steps below an address.
func (x *recording) drop(at session.Address) {
	for below := range x.asked {
		if below != at && below.Under(at) {
			delete(x.asked, below)
		}
	}
}

// unanswered books the estimates of the requests whose process ended before their usage was known.
func (x *recording) unanswered() {
	for at, q := range x.asked {
		x.wasteAt(at, q.last.Add(q.earlier))
	}
	clear(x.asked)
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
	if p.inv.within == nil {
		p.inv.within = new(toolLog)
	}
	l := p.inv.within
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
	if p.inv == nil || p.inv.within == nil {
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
	l := p.inv.within
	l.mu.Lock()
	defer l.mu.Unlock()
	return err == nil && l.yield != nil && l.yield(&session.Event{Mark: m}, nil)
}

// AddSpent adds what an agent in a tool call of this step has used.
func (p Place) AddSpent(u budget.Usage) {
	if p.inv == nil || p.inv.within == nil {
		return
	}
	l := p.inv.within
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spent = l.spent.Add(u)
}

// InToolCall reports whether the step runs in a tool call of another step. The log then has none of its events.
func (p Place) InToolCall() bool {
	_, _, ok := p.within()
	return ok
}

// spentIn returns the usage that an event with tool answers has under [MetadataSpent].
func spentIn(ev *session.Event) (u budget.Usage) {
	if v := ev.CustomMetadata[MetadataSpent]; v != nil {
		if data, err := json.Marshal(v); err == nil {
			u = usageOf(data)
		}
	}
	return u
}
