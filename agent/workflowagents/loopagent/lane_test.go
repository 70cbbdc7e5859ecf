// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"runtime/debug"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/loop"
)

// A loop whose steps can be left behind has one goroutine for all of them: of 1,000 loops of ten
// steps each that are under way, 1,000 wait with a stack that has grown, and not 10,000.
func TestStepsShareAGoroutine(t *testing.T) {
	goroutine := func() string {
		name, _, _ := strings.Cut(string(debug.Stack()), "[")
		return name
	}
	in := make(map[string]int)
	step := func(name string) agent.Agent {
		return does(t, name, func(_ agent.InvocationContext, say say) error {
			in[goroutine()]++
			say(words(name))
			return nil
		})
	}
	var rec *loop.StopRecord
	mustPlay(t, loopOf(t, "l", 4, into(&rec), step("a"), step("b"), step("c")))
	if len(in) != 1 || in[goroutine()] != 0 {
		t.Errorf("the runs of steps by goroutine: %v, want all 12 in one that is not the loop's", in)
	}
}
