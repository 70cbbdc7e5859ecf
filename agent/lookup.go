// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"time"

	"github.com/refrain-dev/refrain/session"
)

// Lookup resolves the names that prompts, commands and other texts of an agent
// may use, for the step of ctx: keys of the state, and the names below. It
// reports false for a name that has no value now.
//
//	user_input                             what the user asked
//	iteration  max_iterations              of the nearest loop; the limit may be missing
//	remaining_iterations                   after this one
//	is_first_iteration  is_last_iteration
//	score  best.score                      the last iteration's score and the best one
//	prev.KEY  best.KEY                     a key of the state after the iteration before, and after the best
//	elapsed                                since the loop began, as "1m30s"
//	artifact.NAME                          the text of an artifact
func Lookup(ctx InvocationContext) func(name string) (any, bool) {
	state, loop := StateOf(ctx), LoopOf(ctx)
	return func(name string) (any, bool) {
		if v, err := state.Get(name); err == nil {
			return v, true
		}
		switch head, key, dotted := strings.Cut(name, "."); {
		case dotted && head == "artifact":
			return artifactText(ctx, key)
		case name == "user_input":
			return userInput(ctx)
		case loop == nil:
			return nil, false
		case dotted && head == "prev":
			v, ok := loop.Prev[key]
			return v, ok
		case dotted && head == "best" && key != "score":
			v, ok := loop.Best[key]
			return v, ok
		}
		return loop.lookup(name)
	}
}

func (l *Loop) lookup(name string) (any, bool) {
	limit := int(l.MaxIterations)
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

func deref(f *float64) (any, bool) {
	if f == nil {
		return nil, false
	}
	return *f, true
}

func userInput(ctx InvocationContext) (any, bool) {
	c := ctx.UserContent()
	if c == nil {
		return nil, false
	}
	ev := session.Event{}
	ev.Content = c
	return ev.Text(), true
}

func artifactText(ctx InvocationContext, name string) (any, bool) {
	a := ctx.Artifacts()
	if a == nil {
		return nil, false
	}
	got, err := a.Load(ctx, name)
	if err != nil || got.Part == nil {
		return nil, false
	}
	if got.Part.InlineData != nil {
		return string(got.Part.InlineData.Data), true
	}
	return got.Part.Text, true
}
