// SPDX-License-Identifier: Apache-2.0

package live

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// M1: a run of which nothing is heard says what it does, and for how long.
func TestSignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		p := &plain{out: io.Discard, err: &said}
		if err := p.started(Request{Session: "r_1", definition: "refine", Most: 10}); err != nil {
			t.Fatal(err)
		}
		var fold progress.Fold
		step := &session.Event{Address: "refine[3]/quality_analyzer", Iteration: 3, Mark: &mark.Mark{Kind: mark.KindStepStarted}}
		fold.Add(step)
		if err := p.event(step, nil, &fold); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second) // of the bubble's clock
		if err := p.event(&session.Event{}, []string{"a line"}, &fold); err != nil {
			t.Fatal(err)
		}
		time.Sleep(32 * time.Second) // not when the clock ticks
		p.close()
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		want := []string{"run r_1 started definition=refine max_iterations=10", "a line", "… still running: iteration 3, quality_analyzer (51s)"}
		if len(lines) != len(want) {
			t.Fatalf("it says\n%s", said.String())
		}
		for i, l := range lines {
			if _, text, _ := strings.Cut(l, " "); text != want[i] {
				t.Errorf("line %d is %q, want %q", i+1, text, want[i])
			}
		}
	})
}
