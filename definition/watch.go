// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"slices"

	"github.com/refrain-dev/refrain/loop"
)

// watch returns what shows that the score of a loop may not be honest: tests that its steps count, and files that they
// change. It is nil if they do neither.
func (a *Agent) watch() *loop.Watch {
	w := new(loop.Watch)
	add := func(to *[]string, key string) {
		if !slices.Contains(*to, key) {
			*to = append(*to, key)
		}
	}
	for sub := range a.All {
		if sub.works() && a.def != nil && a.def.Workspace != nil {
			add(&w.Files, a.workspaceKey()) // the loop's own is the first
			add(&w.Files, sub.workspaceKey())
		}
		if sub.Command != nil && sub.Command.Tests != "" && sub.OutputKey != "" && sub.OutputKey != LoopOutput && !sub.tool {
			add(&w.Tests, sub.OutputKey)
		}
	}
	if w.Files == nil && w.Tests == nil {
		return nil
	}
	return w
}
