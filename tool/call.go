// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"fmt"
	"runtime/debug"

	"github.com/refrain-dev/refrain/agent"
)

// Call runs a tool for one call of the model. A panic in it becomes an [*agent.PanicError], whose
// stack is in the error but not in the text that the model gets.
func Call(ctx Context, f Function, args map[string]any) (result map[string]any, err error) {
	defer func() {
		if r := recover(); r != nil {
			result = nil
			err = fmt.Errorf("tool %q: %w", f.Name(), &agent.PanicError{Value: r, Stack: debug.Stack()})
		}
	}()
	if args == nil {
		args = map[string]any{}
	}
	return f.Run(ctx, args)
}
