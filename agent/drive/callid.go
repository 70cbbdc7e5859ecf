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

// callScopes knows which session ID is part of the call IDs of a run. A log that was copied into another session
// keeps its call IDs, because the called services know them. A fork has call IDs of its own for calls that begin
// after its mark.
type callScopes struct {
	marks    []callScope
	beginSeq map[string]int64 // by step, or by call of a tool, the event with which it began
}

type callScope struct {
	seq     int64
	session string
}

// observe reads an event about the run as a whole.
func (o *callScopes) observe(ev *session.Event) error {
	s, err := ev.Mark.NamesCalls()
	if s != "" {
		o.marks = append(o.marks, callScope{ev.Seq, s})
	}
	return err
}

// readBegins reads with which events the steps of a log, and their calls, began. It does nothing if all calls of the
// log have one session ID.
func (o *callScopes) readBegins(x *replayLog) {
	if len(o.marks) < 2 {
		return
	}
	o.beginSeq = make(map[string]int64)
	for _, e := range x.events.all() {
		o.add(x.readEvent(e.seq))
	}
}

// add records the step or the calls that begin with an event.
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

// scopeOf returns the session ID that is part of the call ID of the step. For a call of a tool, functionCall is the
// ID of that call.
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

// callIDs holds the IDs that the function calls of a session have had, as hashes. They must be known because a
// model's server may use the same numbers again in each answer.
type callIDs struct {
	mu    sync.Mutex
	seed  maphash.Seed
	known map[uint64]struct{}
	next  int // index of the first event of the session that was not read
}

type callsKey struct{}

// ClaimCalls returns IDs for function calls of the step's model, which no other call of the session has or gets. It
// keeps the given IDs, except those that are empty, that the session has had, or that are in the list twice. make
// makes an ID for the i-th call instead, and must return another ID for each n.
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

// read reads the events that were added since its last call. If the log has become shorter, it reads all events.
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

// add adds an ID, and reports whether it is new.
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

// toolCallOf returns the ID of the tool call for which the step runs, and the step's address below the tool's agent.
// It leaves out the address of that agent, because its number counts the calls since the process began.
func (p Place) toolCallOf() (id, below string, ok bool) {
	at := p.Address()
	c, ok := p.ctx.Value(toolCallKey{}).(toolCall)
	if !ok || at == c.at || !at.Under(c.at) {
		return "", "", false
	}
	_, below, _ = strings.Cut(string(at[len(c.at)+1:]), "/")
	return c.id, below, true
}

// AttemptPath returns the name of the step's attempt. The name lists the attempts of the steps around it, outermost
// first, and its own, such as "1.2" for the second attempt within the first attempt of the step around it. If a
// person has a finished attempt repeated, "~2" follows, then "~3". A step that was cut off keeps its name when the
// run is resumed, although the log counts a further attempt. Together with [Place.CallID], AttemptPath names the
// step's work on another machine.
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
