// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
)

// DefaultMaxLLMCalls is how often the agents of one run may ask a model if
// [RunConfig] does not say.
const DefaultMaxLLMCalls = 500

// ErrTooManyModelCalls ends a run whose agents ask models without end.
var ErrTooManyModelCalls = errors.New("too many model calls in one run")

// CountModelCall counts one call of a model in the run of ctx. An agent asks
// before it calls. It returns [ErrTooManyModelCalls] when the limit is reached.
func CountModelCall(ctx InvocationContext) error {
	inv := invocationOf(ctx)
	if inv == nil {
		return nil
	}
	limit := int64(DefaultMaxLLMCalls)
	if c := inv.run.RunConfig; c != nil && c.MaxLLMCalls != 0 {
		limit = int64(c.MaxLLMCalls)
	}
	if n := inv.run.modelCalls.Add(1); limit > 0 && n > limit {
		return fmt.Errorf("%w: the limit is %d; set agent.RunConfig.MaxLLMCalls to allow more", ErrTooManyModelCalls, limit)
	}
	return nil
}
