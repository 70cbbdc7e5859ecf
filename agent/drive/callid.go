// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// callScopes says which session names the calls of a run. A log that was copied into another
// session keeps the names of its calls, because the called services know them. A fork has its
// own names for calls that begin after its mark.
type callScopes struct {
	marks    []callScope
	beginSeq map[string]int64 // the event with which a step, or a call of a tool, began
}

type callScope struct {
	seq     int64
	session string
}

// observe takes in an event about the run as a whole.
func (o *callScopes) observe(ev *session.Event) error {
	s, err := ev.Mark.NamesCalls()
	if s != "" {
		o.marks = append(o.marks, callScope{ev.Seq, s})
	}
	return err
}

// readBegins reads when the steps of a recording, and their calls, began. Where calls have one name
// throughout, that does not matter.
func (o *callScopes) readBegins(x *replayLog) {
	if len(o.marks) < 2 {
		return
	}
	o.beginSeq = make(map[string]int64)
	for _, e := range x.events.all() {
		o.add(x.readEvent(e.seq))
	}
}

// add takes in an event of a step.
func (o *callScopes) add(ev *session.Event) {
	if ev.Mark != nil && ev.Mark.Kind == mark.KindStepStarted {
		o.begin(string(ev.Address), ev.Seq)
	}
	if ev.Content == nil || ev.Content.Role != genai.RoleModel {
		return
	}
	for _, p := range ev.Content.Parts {
		if p != nil && p.FunctionCall != nil {
			o.begin(string(ev.Address)+"\x00"+p.FunctionCall.ID, ev.Seq)
		}
	}
}

func (o *callScopes) begin(what string, seq int64) {
	if _, known := o.beginSeq[what]; !known {
		o.beginSeq[what] = seq
	}
}

// of returns the session that names a call: the session in which the log was when the call began.
func (o *callScopes) of(what string) (session string) {
	began, known := o.beginSeq[what]
	for _, m := range o.marks {
		if !known || m.seq < began || session == "" {
			session = m.session
		}
	}
	return session
}

// scopeOf is the session by which a call of the step is named; of one of a
// tool with its ID.
func scopeOf(ctx agent.InvocationContext, functionCall string) string {
	if inv := invocationOf(ctx); inv != nil && inv.run.Replay != nil {
		what := string(inv.address)
		if functionCall != "" {
			what += "\x00" + functionCall
		}
		if s := inv.run.Replay.scopes.of(what); s != "" {
			return s
		}
	}
	return ctx.Session().ID()
}

// callIDs holds the IDs that the function calls of a session have had, as hashes. A model's server may number
// its calls anew in each answer.
type callIDs struct {
	mu    sync.Mutex
	seed  maphash.Seed
	known map[uint64]struct{}
	next  int // index of the first event of the session that was not read
}

type callsKey struct{}

// ClaimCalls returns IDs for function calls of the step's model, which no other call of the session has or gets.
// They are the given ones, except those that are empty, that the session has had, or that are in the list
// twice. make makes another one for the call with an index; each n gives another ID.
func (p Place) ClaimCalls(given []string, make func(i, n int) string) []string {
	c := p.Cached(callsKey{}, newCalls).(*callIDs)
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.inv != nil && p.inv.run.Session != nil {
		c.read(p.inv.run.Session.Events())
	}
	ids := slices.Clone(given)
	for i, id := range given {
		for n := len(c.known); id == "" || !c.add(id); n++ {
			id = make(i, n)
		}
		ids[i] = id
	}
	return ids
}

func newCalls() any { return &callIDs{seed: maphash.MakeSeed(), known: make(map[uint64]struct{})} }

// read reads the events that have come since it was called last. If the log has become shorter, it reads all.
func (c *callIDs) read(evs session.Events) {
	if evs.Len() < c.next {
		c.next = 0
	}
	for ; c.next < evs.Len(); c.next++ {
		if ev := evs.At(c.next); ev.Content != nil {
			for _, p := range ev.Content.Parts {
				if p != nil && p.FunctionCall != nil {
					c.add(p.FunctionCall.ID)
				}
			}
		}
	}
}

// add reports whether an ID is new.
func (c *callIDs) add(id string) bool {
	h := maphash.String(c.seed, id)
	_, had := c.known[h]
	c.known[h] = struct{}{}
	return !had
}

// CallID returns the ID of the step's effect on the outside world. Give it to services that
// take an idempotency key. The ID is the same in each attempt, in a resumed run, and in a log
// that was copied into another session. Every other step and run has another ID. A fork has the
// same IDs for steps that began before the fork. For an agent that runs as a tool, CallID
// returns the [Place.ToolCallID] of the call.
func (p Place) CallID() string {
	if id, below, ok := p.toolCallOf(); ok && below == "" {
		return id
	} else if ok {
		return callID(id, below)
	}
	return callID(scopeOf(p.ctx, ""), p.ctx.InvocationID(), string(p.Address()))
}

// toolCallOf returns the ID of the call of a tool for which the step runs, and its address below the tool's agent.
// The address of that agent says how often it was called since the process began.
func (p Place) toolCallOf() (id, below string, ok bool) {
	at := p.Address()
	c, ok := p.ctx.Value(toolCallKey{}).(toolCall)
	if !ok || at == c.at || !at.Under(c.at) {
		return "", "", false
	}
	_, below, _ = strings.Cut(string(at[len(c.at)+1:]), "/")
	return c.id, below, true
}

// AttemptPath returns the name of the step's try. The name lists the attempts of the steps around it, outermost
// first, and its own, such as "1.2" for the second attempt within the first attempt of the step around
// it. If a person has a finished attempt repeated, "~2" follows, then "~3". A step that was cut off
// keeps its try when the run is resumed, although the log counts a further attempt. Together with
// [Place.CallID], Try names the step's work on another machine.
func (p Place) AttemptPath() string {
	if p.inv == nil {
		return "1"
	}
	var b strings.Builder
	p.inv.writeAttemptPath(&b)
	if r := p.inv.run.Replay; r != nil {
		if n := r.log.supersededRuns[p.inv.address]; n > 0 {
			fmt.Fprintf(&b, "~%d", n+1)
		}
	}
	return b.String()
}

// writeAttemptPath writes the attempts of the steps around a step, and its own.
func (i *invocation) writeAttemptPath(b *strings.Builder) {
	if i.parent != nil && i.parent.agent != nil {
		i.parent.writeAttemptPath(b)
		b.WriteByte('.')
	}
	b.WriteString(strconv.Itoa(max(1, i.countedAttempt)))
}

// CallAddress returns the address of the step that [Place.CallID] names, for people who look for
// it: [Place.Address], or for an agent that is a tool the address of the calling step.
func (p Place) CallAddress() session.Address {
	at := p.Address()
	if c, ok := p.ctx.Value(toolCallKey{}).(toolCall); ok && at.Under(c.at) {
		return c.at
	}
	return at
}

type toolCallKey struct{}

// toolCall describes the call of a tool for which a step runs.
type toolCall struct {
	id string
	at session.Address // of the step that calls it
}

// WithinToolCall returns a context in which agents make their call IDs from the ID of a tool's
// call. It is for tools that run agents.
func (p Place) WithinToolCall(functionCallID string) context.Context {
	return context.WithValue(p.ctx, toolCallKey{}, toolCall{id: p.ToolCallID(functionCallID), at: p.Address()})
}

// ToolCallID returns the [Place.CallID] of a function call of the step's model.
func (p Place) ToolCallID(functionCallID string) string {
	if id, below, ok := p.toolCallOf(); ok {
		return callID(id, below, functionCallID)
	}
	return callID(scopeOf(p.ctx, functionCallID), p.ctx.InvocationID(), string(p.Address()), functionCallID)
}

func callID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return "call-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}
