// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"slices"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
)

// waiting is an agent that waits before all else it does, and after it. It is for the
// root, around which no loop waits.
func waiting(cfg agent.Config, before, after time.Duration) agent.Config {
	if before > 0 {
		wait := func(ctx agent.Context) (*genai.Content, error) { return nil, sleep(ctx, before) }
		cfg.BeforeAgentCallbacks = append([]agent.BeforeAgentCallback{wait}, cfg.BeforeAgentCallbacks...)
	}
	if after > 0 {
		wait := func(ctx agent.Context) (*genai.Content, error) { return nil, sleep(ctx, after) }
		cfg.AfterAgentCallbacks = append(slices.Clone(cfg.AfterAgentCallbacks), wait)
	}
	return cfg
}

// sleep waits, and no longer than the context lasts.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
