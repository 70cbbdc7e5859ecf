// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"fmt"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/tool"
)

// DefaultInitTimeout is how long the opening of a model or of a server of tools
// may take if nobody says better.
const DefaultInitTimeout = 30 * time.Second

// InitError says that an agent did not get in time what it needs before its
// first message: its model, or a server of tools.
type InitError struct {
	// Agent is who needs it, by name; empty for all.
	Agent string
	// What did not answer, such as model "openai/gpt-5-mini".
	What string
	// After is how long it was waited for.
	After time.Duration
}

// Error begins with the words that programs look for.
func (e *InitError) Error() string {
	s := fmt.Sprintf("Agent initialization timed out, cannot process message: %s was not ready after %s", e.What, briefly(e.After))
	if e.Agent != "" {
		s += fmt.Sprintf(" (agent %q)", e.Agent)
	}
	return s
}

// Unwrap returns context.DeadlineExceeded.
func (e *InitError) Unwrap() error { return context.DeadlineExceeded }

// openInTime opens a model and gives up on one that hangs, even if it does not
// look at its context.
func (b *builder) openInTime(ctx context.Context, a *Agent, name string) (model.LLM, error) {
	late := &InitError{Agent: a.Name, What: fmt.Sprintf("model %q", name), After: b.cfg.InitTimeout}
	ctx, cancel := context.WithTimeoutCause(ctx, b.cfg.InitTimeout, late)
	defer cancel()
	type opened struct {
		llm model.LLM
		err error
	}
	done := make(chan opened, 1)
	go func() {
		llm, err := b.openModel(ctx, name)
		done <- opened{llm, err}
	}()
	select {
	case o := <-done:
		if o.err != nil && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return o.llm, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// punctual is a server of tools that has to be there in time.
type punctual struct {
	tool.Toolset
	late *InitError
}

// Tools asks the server, which is started when it is asked first.
func (p *punctual) Tools(ctx agent.ReadonlyContext) ([]tool.Tool, error) {
	bounded, cancel := context.WithTimeoutCause(ctx, p.late.After, p.late)
	defer cancel()
	tools, err := p.Toolset.Tools(boundedContext{ctx, bounded})
	if err != nil && ctx.Err() == nil && bounded.Err() != nil {
		return nil, p.late
	}
	return tools, err
}

// boundedContext is a context of an agent with less time.
type boundedContext struct {
	agent.ReadonlyContext
	bounded context.Context
}

func (c boundedContext) Deadline() (time.Time, bool) { return c.bounded.Deadline() }
func (c boundedContext) Done() <-chan struct{}       { return c.bounded.Done() }
func (c boundedContext) Err() error                  { return c.bounded.Err() }
func (c boundedContext) Value(key any) any           { return c.bounded.Value(key) }
