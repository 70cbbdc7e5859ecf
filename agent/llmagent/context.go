// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"fmt"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
)

// Context says how much of what was said before a model sees. What the choice
// saves is in each answer: see [SavingOf].
type Context struct {
	// Policy is one of the policies below; empty is [ContextFull].
	Policy ContextPolicy
	// Last is how many iterations [ContextLast] shows, the running one
	// included.
	Last int
}

// ContextPolicy is a choice of what a model sees.
type ContextPolicy string

// The policies. Outside a loop, those that speak of iterations show all.
const (
	// ContextFull shows the whole session, as ADK does.
	ContextFull ContextPolicy = "full"
	// ContextIteration shows the user's message and the running iteration.
	ContextIteration ContextPolicy = "iteration"
	// ContextLast shows the user's message and the last iterations.
	ContextLast ContextPolicy = "last"
	// ContextNone shows the last that the user or another agent said, and what
	// the agent itself has said since.
	ContextNone ContextPolicy = "none"
)

func (c Context) check() error {
	switch c.Policy {
	case "", ContextFull, ContextIteration, ContextNone:
		return nil
	case ContextLast:
		if c.Last < 1 {
			return fmt.Errorf("context policy %q needs Last, how many iterations to show", c.Policy)
		}
		return nil
	}
	return fmt.Errorf("unknown context policy %q; use full, iteration, last or none", c.Policy)
}

func (a *Agent) policy() Context {
	c := a.cfg.Context
	if c.Policy == "" {
		c.Policy = ContextFull
		if a.cfg.IncludeContents == IncludeContentsNone {
			c.Policy = ContextNone
		}
	}
	return c
}

// first is the index of the first event that the policy shows, and the user's
// message if it is to be shown before that. It looks at events from the newest
// back and stops at the first that is too old: its cost does not grow with the
// log.
func (a *Agent) first(ctx agent.InvocationContext, evs session.Events) (from int, asked *session.Event) {
	policy, l := a.policy(), agent.LoopOf(ctx)
	switch {
	case policy.Policy == ContextNone:
		return a.firstOfTurn(ctx, evs), nil
	case policy.Policy == ContextFull || l == nil:
		return 0, nil
	}
	oldest := l.Iteration
	if policy.Policy == ContextLast {
		oldest -= policy.Last - 1
	}
	from = evs.Len()
	for from > 0 {
		ev := evs.At(from - 1)
		// Marks, and what other branches say, come in between.
		if ev.InvocationID != ctx.InvocationID() || visible(ev, ctx.Branch()) && !iterationOf(ev, l, oldest) {
			break
		}
		from--
	}
	if c := ctx.UserContent(); c != nil {
		return from, &session.Event{Author: "user", LLMResponse: model.LLMResponse{Content: withRole(c, genai.RoleUser)}}
	}
	return from, nil
}

// iterationOf reports whether an event belongs to an iteration of the loop that
// is not older than the oldest.
func iterationOf(ev *session.Event, l *agent.Loop, oldest int) bool {
	rest, ok := strings.CutPrefix(string(ev.Address), string(l.Address)+"[")
	if !ok {
		return false
	}
	digits, _, ok := strings.Cut(rest, "]")
	n := 0
	for _, d := range digits {
		if d < '0' || d > '9' {
			return false
		}
		n = n*10 + int(d-'0')
	}
	return ok && n >= oldest
}

// firstOfTurn is the index of the last visible event by the user or another
// agent.
func (a *Agent) firstOfTurn(ctx agent.InvocationContext, evs session.Events) int {
	for i := evs.Len() - 1; i >= 0; i-- {
		if ev := evs.At(i); ev.Author != a.Name() && visible(ev, ctx.Branch()) && !isAside(ev.Content) {
			return i
		}
	}
	return 0
}
