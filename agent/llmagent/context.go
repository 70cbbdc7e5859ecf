// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"fmt"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
)

// ContextConfig says how much of the conversation a model sees. Each answer records how much the choice
// saves; see [SavingOf].
type ContextConfig struct {
	// Policy is one of the policies below; empty is [ContextFull].
	Policy ContextPolicy
	// Last is the number of iterations that [ContextLast] and [ContextDigest] show, the running one
	// included; for a digest 0 means the running one alone.
	Last int
	// BestChars is the largest number of characters that [ContextDigest] quotes of the best
	// iteration's output; 0 means [DefaultBestChars].
	BestChars int
}

// ContextPolicy says which part of the conversation a model sees.
type ContextPolicy string

// The policies. Outside loops, the policies about iterations show everything.
const (
	// ContextFull shows the whole session, as ADK does.
	ContextFull ContextPolicy = "full"
	// ContextIteration shows the user's message and the running iteration.
	ContextIteration ContextPolicy = "iteration"
	// ContextLast shows the user's message and the last iterations.
	ContextLast ContextPolicy = "last"
	// ContextDigest shows the user's message, the last iterations, and a digest of those before.
	// The program writes the digest as one text of role user. It has a line for each iteration,
	// with its score, whether it was accepted, and the beginnings of its outputs; one line for all
	// older iterations; one for each enclosing loop; and the output of the best iteration, or
	// without scores of the last complete one, unless it is shown anyway. The digest of a loop has
	// at most 7000 characters plus BestChars, for any number of iterations. Outputs are the state
	// keys that the iteration wrote, and the last texts of agents that write no key.
	ContextDigest ContextPolicy = "digest"
	// ContextNone shows the last message of the user or of another agent, and the agent's own later
	// contents.
	ContextNone ContextPolicy = "none"
)

func (c ContextConfig) check() error {
	switch c.Policy {
	case "", ContextFull, ContextIteration, ContextNone:
		return nil
	case ContextDigest:
		if c.Last < 0 || c.BestChars < 0 {
			return fmt.Errorf("context policy %q: Last %d and BestChars %d cannot be less than 0", c.Policy, c.Last,
				c.BestChars)
		}
		return nil
	case ContextLast:
		if c.Last < 1 {
			return fmt.Errorf("context policy %q needs Last, how many iterations to show", c.Policy)
		}
		return nil
	}
	return fmt.Errorf("unknown context policy %q; use full, iteration, last, digest or none", c.Policy)
}

// fullIterations returns the number of iterations that the model sees in full, the running one included.
func (c ContextConfig) fullIterations() int {
	if c.Policy == ContextIteration {
		return 1
	}
	return max(1, c.Last)
}

func (a *Agent) policy() ContextConfig {
	c := a.cfg.Context
	if c.Policy == "" {
		c.Policy = ContextFull
		if a.cfg.IncludeContents == IncludeContentsNone {
			c.Policy = ContextNone
		}
	}
	return c
}

// first returns the index of the first event that the policy shows, and the user's message if that must come before it.
// It reads events from the newest back and stops at the first that is too old, so that its cost does not grow with the
// log.
func (a *Agent) first(ctx agent.InvocationContext, evs session.Events) (from int, asked *session.Event) {
	policy, l, here := a.policy(), drive.At(ctx).AsAsked(), drive.At(ctx).Address()
	fresh := l.Fresh()
	oldest := 0
	switch {
	case policy.Policy == ContextNone:
		return a.firstOfTurn(ctx, evs), nil
	case policy.Policy == ContextFull && fresh != nil:
		l, oldest = fresh, fresh.Since
	case policy.Policy == ContextFull || l == nil:
		return 0, nil
	default:
		oldest = max(l.Since, l.Iteration-policy.fullIterations()+1)
	}
	from = evs.Len()
	for from > 0 {
		ev := evs.At(from - 1)
		// Skip marks and events of other branches.
		if ev.InvocationID != ctx.InvocationID() ||
			visible(ev, ctx.Branch()) && !iterationOf(ev, l, oldest) && !ev.Address.Under(here) {
			break
		}
		from--
	}
	if c := ctx.UserContent(); c != nil {
		return from, &session.Event{Author: "user", LLMResponse: model.LLMResponse{Content: withRole(c,
			genai.RoleUser)}}
	}
	return from, nil
}

// iterationOf reports whether an event belongs to the iteration oldest of the loop, or to a later one.
func iterationOf(ev *session.Event, l *drive.Loop, oldest int) bool {
	n := passOf(ev, l)
	return n > 0 && n >= oldest
}

// passOf returns the iteration of the loop that an event belongs to; 0 if it belongs to none.
func passOf(ev *session.Event, l *drive.Loop) int {
	rest, ok := strings.CutPrefix(string(ev.Address), string(l.Address)+"[")
	if !ok {
		return 0
	}
	digits, _, ok := strings.Cut(rest, "]")
	n := 0
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0
		}
		n = n*10 + int(d-'0')
	}
	if !ok {
		return 0
	}
	return n
}

// firstOfTurn returns the index of the last visible event of the user or of another agent; 0 if there is none.
func (a *Agent) firstOfTurn(ctx agent.InvocationContext, evs session.Events) int {
	for i := evs.Len() - 1; i >= 0; i-- {
		if ev := evs.At(i); ev.Author != a.Name() && visible(ev, ctx.Branch()) && !isAside(ev.Content) && !drive.At(ctx).Hides(evs, i) {
			return i
		}
	}
	return 0
}
