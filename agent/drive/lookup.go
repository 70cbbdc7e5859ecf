// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/internal/driver"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/session"
)

// BuiltIn lists the names that [Place.Lookup] knows, except those with a KEY or a NAME in them.
var BuiltIn = []string{
	"user_input", "iteration", "max_iterations", "remaining_iterations", "is_first_iteration", "is_last_iteration",
	"score", "best.score", "rejected.reason", "elapsed", "budget.remaining",
}

// BuiltInHeads lists the words before the first dot of the names that [Place.Lookup] knows. No key of the state can be one of
// these words, or a name of [BuiltIn] without a dot.
var BuiltInHeads = []string{"best", "prev", "rejected", "budget", "artifact"}

// Lookup returns the value of a name that prompts, commands and other texts of an agent can
// use: a key of the state, or one of the names below. It returns false if the name has no value
// now.
//
//	user_input                             the user's message
//	iteration  max_iterations              of the nearest loop; max_iterations has no value without a limit
//	remaining_iterations                   after this one
//	is_first_iteration  is_last_iteration
//	score  best.score                      the score of the previous iteration, and the best one
//	prev.KEY  best.KEY                     a key of the state after the previous and after the best iteration; for a
//	                                       finalizer the best one is the one that fits the stop reason
//	rejected.reason  rejected.KEY          of the previous iteration, if it was not accepted
//	elapsed                                time since the loop began, such as "1m30s"
//	budget.remaining                       what model calls can still use, such as "12 calls, 3400 tokens, 0.52 cost"
//	artifact.NAME                          the text of an artifact; an error if it has no text or cannot be read
func (p Place) Lookup(name string) (any, bool) {
	if v, err := valueAt(p.ctx.Session(), p.Address(), name); err == nil {
		return v, true
	}
	return lookup(p.ctx, p.AsAsked(), name)
}

// LookupAt returns a function that does what [Place.Lookup] will do for the step at an address
// in loop l, which does not run yet.
func (p Place) LookupAt(l *Loop, at session.Address) func(name string) (any, bool) {
	state := driver.StateAt(p.ctx.Session(), at)
	return func(name string) (any, bool) {
		if v, err := state.Get(name); err == nil {
			return v, true
		}
		return lookup(p.ctx, l, name)
	}
}

// lookup returns the values of names that are not keys of the state.
func lookup(ctx agent.InvocationContext, loop *Loop, name string) (any, bool) {
	switch head, key, dotted := strings.Cut(name, "."); {
	case dotted && head == "artifact":
		return artifactText(ctx, key)
	case name == "user_input":
		return userInput(ctx)
	case name == "budget.remaining":
		return budgetText(At(ctx).Budget().Remaining())
	case loop == nil:
		return nil, false
	case dotted && head == "prev":
		v, ok := loop.Prev[key]
		return v, ok
	case dotted && head == "best" && key != "score":
		v, ok := loop.Best[key]
		return v, ok
	case dotted && head == "rejected":
		return loop.Rejected.lookup(key)
	}
	return loop.lookup(name)
}

// lookup returns the values of the names that describe the loop.
func (l *Loop) lookup(name string) (any, bool) {
	limit := int(l.MaxIterations())
	switch name {
	case "iteration":
		return l.Iteration, true
	case "max_iterations":
		return limit, limit > 0
	case "remaining_iterations":
		return max(limit-l.Iteration, 0), limit > 0
	case "is_first_iteration":
		return l.Iteration == 1, true
	case "is_last_iteration":
		return limit > 0 && l.Iteration >= limit, true
	case "score":
		return deref(l.Score)
	case "best.score":
		return deref(l.BestScore)
	case "elapsed":
		return time.Since(l.Started).Round(time.Second).String(), !l.Started.IsZero()
	}
	return nil, false
}

func (r *RejectedIteration) lookup(key string) (any, bool) {
	switch {
	case r == nil:
		return nil, false
	case key == "reason":
		return r.Reason, true
	}
	v, ok := r.State[key]
	return v, ok
}

// budgetText returns a text with what is left of a budget; false if nothing is limited.
func budgetText(left budget.Remaining) (any, bool) {
	var parts []string
	if left.Calls != nil {
		unit := " calls"
		if *left.Calls == 1 {
			unit = " call"
		}
		parts = append(parts, strconv.FormatInt(*left.Calls, 10)+unit)
	}
	if left.Tokens != nil {
		parts = append(parts, strconv.FormatInt(*left.Tokens, 10)+" tokens")
	}
	if left.Cost != nil {
		cost := math.Floor(*left.Cost*1e4+1e-6) / 1e4 // rounded down
		parts = append(parts, strconv.FormatFloat(cost, 'f', -1, 64)+" cost")
	}
	return strings.Join(parts, ", "), parts != nil
}

// TextOf returns a value of the state as a text: a string as it is, an empty text for nil, and JSON for any other value.
func TextOf(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}

func deref(f *float64) (any, bool) {
	if f == nil {
		return nil, false
	}
	return *f, true
}

func userInput(ctx agent.InvocationContext) (any, bool) {
	c := ctx.UserContent()
	if c == nil {
		return nil, false
	}
	ev := session.Event{}
	ev.Content = c
	return ev.Text(), true
}

// lookupError is a value that makes template.Fill fail for a text that uses the value.
type lookupError struct{ error }

func (lookupError) Unfillable()     {}
func (e lookupError) Unwrap() error { return e.error }

// artifactText returns the text of an artifact. If the artifact has no text or cannot be read, the value is a
// lookupError. It returns false if the artifact does not exist.
func artifactText(ctx agent.InvocationContext, name string) (any, bool) {
	a := ctx.Artifacts()
	if a == nil {
		return nil, false
	}
	got, err := a.Load(ctx, name)
	switch {
	case errors.Is(err, artifact.ErrNotFound):
		return nil, false
	case err != nil:
		return lookupError{fmt.Errorf("artifact %q: %w", name, err)}, true
	case got.Part == nil:
		return nil, false
	}
	if d := got.Part.InlineData; d != nil {
		if !utf8.Valid(d.Data) {
			return lookupError{fmt.Errorf("artifact %q cannot be inserted into a text, because its type is %s; save it as text", name, d.MIMEType)},
				true
		}
		return string(d.Data), true
	}
	return got.Part.Text, true
}

// KeyPrefixConversation is the prefix of the state keys in which steps keep the conversation that they continue. Such keys
// are part of the state but not of an output, so outputs are compared without them. A definition cannot write them.
const KeyPrefixConversation = "conversation:"

// State returns the session's state as the step sees it, with the iteration: keys of its own
// loops. In a callback or a tool call it includes what that call has set.
func (p Place) State() session.State {
	return driver.StateAt(p.ctx.Session(), p.Address())
}

// valueAt returns the value of a key in the state that driver.StateAt returns. It saves the allocation of that state.
func valueAt(s session.Session, at session.Address, key string) (any, error) {
	switch s := s.(type) {
	case driver.Call:
		if val, changed, err := s.Changed(key); changed {
			return val, err
		}
		return valueAt(s.Unwrap(), at, key)
	case stepSession:
		if v, hidden := s.loop.valueBefore(key); hidden {
			return v.get()
		}
		return valueAt(s.Session, at, key)
	}
	return driver.StateAt(s, at).Get(key)
}

// StateAt returns the session's state as a step at another address sees it.
func (p Place) StateAt(at session.Address) session.State { return driver.StateAt(p.ctx.Session(), at) }

// StateMap returns the given keys that StateAt has, or if all is true every key. The map may be
// shared, so do not change it.
func (p Place) StateMap(at session.Address, keys []string, all bool) map[string]any {
	s := p.StateAt(at)
	if all {
		return stateMap(s)
	}
	m := make(map[string]any, len(keys))
	for _, k := range keys {
		if v, err := s.Get(k); err == nil {
			m[k] = v
		}
	}
	return m
}

// StateSize returns the [session.StateSize] of StateAt.
func (p Place) StateSize(at session.Address) int64 { return stateSize(p.StateAt(at)) }

// sizedState is a state that caches its map and its size, as that of a [session.View] does.
type sizedState interface {
	Map() map[string]any
	Size() int64
}

func stateMap(s session.State) map[string]any {
	if m, ok := s.(sizedState); ok {
		return m.Map()
	}
	return maps.Collect(s.All())
}

func stateSize(s session.State) int64 {
	if m, ok := s.(sizedState); ok {
		return m.Size()
	}
	return session.StateSize(maps.Collect(s.All()))
}

// EndIteration removes the iteration: keys of the iterations at and below an address. It is for
// loops.
func (p Place) EndIteration(pass session.Address) { driver.EndIteration(p.ctx.Session(), pass) }
