// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/agent"
)

func fill(m map[string]int) { m["a"] = 1 }

// A person who debugs an agent needs the place of its panic, also if the Go runtime is what panics.
func TestPanicErrorNamesThePlace(t *testing.T) {
	for name, f := range map[string]func(){
		"a panic":       func() { panic("oh no") },
		"a nil map":     func() { fill(nil) },
		"a nil pointer": func() { var p *struct{ n [1 << 20]int }; p.n[9]++ },
	} {
		err := func() (err error) {
			defer agent.Recover(&err)
			f()
			return nil
		}()
		where := err.(*agent.PanicError).Where()
		if !strings.HasPrefix(where, "github.com/refrain-dev/refrain/agent_test.") || !strings.Contains(where, "panic_test.go:") {
			t.Errorf("%s: %q", name, where)
		}
	}
	if where := (&agent.PanicError{Value: "from a log"}).Where(); where != "" {
		t.Errorf("without a stack: %q", where)
	}
}
