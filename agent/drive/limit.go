// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"fmt"

	"github.com/refrain-dev/refrain/agent"
)

// CountModelCall counts one model call of the run. Call it before the model. It returns
// [agent.ErrTooManyModelCalls] if the call would exceed the limit.
func (p Place) CountModelCall() error {
	inv := p.inv
	if inv == nil {
		return nil
	}
	limit := int64(agent.DefaultMaxLLMCalls)
	if c := inv.run.RunConfig; c != nil && c.MaxLLMCalls != 0 {
		limit = int64(c.MaxLLMCalls)
	}
	if n := inv.run.modelCalls.Add(1); limit > 0 && n > limit {
		return fmt.Errorf("%w: the limit is %d; raise it with max_model_calls, in Go agent.RunConfig.MaxLLMCalls",
			agent.ErrTooManyModelCalls, limit)
	}
	return nil
}
