// SPDX-License-Identifier: Apache-2.0

//go:build unix

package definition_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// A run whose process dies at any event, in branches too, comes to the same files as one that does not; the finalizer
// sees those of the best iteration.
func TestTreesAfterADeathAtAnyEvent(t *testing.T) {
	if err := workspace.CheckGit(t.Context()); err != nil {
		t.Skip(err)
	}
	const branches = `
name: refine
max_iterations: 3
workspace: {}
score: points
sub_agents:
  - name: panel
    type: parallel
    sub_agents:
      - name: one
        type: sequential
        sub_agents:
          - {name: first, command: [sh, -c, "echo $0 >> one; rm -f half", "{{iteration}}"]}
          - {name: second, command: [sh, -c, "test ! -e half; echo $0 >> one", "{{iteration}}"]}
      - {name: two, command: [sh, -c, "test ! -e one || test $0 != 1; echo $0 >> two", "{{iteration}}"]}
  - {name: rate, set: {points: "[5, 9, 1][iteration - 1]"}}
  - {name: end, output_key: loop_output, command: [sh, -c, "tail -n 1 one two > end; cat one two"]}
`
	const copies = `
name: attempts
max_iterations: 2
workspace: {}
score: points
sub_agents:
  - name: coder
    best_of: 2
    command: [sh, -c, "n=${REFRAIN_WORKSPACE%/tree}; echo $(($0 * (3 - ${n##*_}) + ${n##*_})) >> points; rm -f half; echo ${n##*_}", "{{iteration}}"]
    output_key: said
  - {name: tests, command: [sh, -c, "test ! -e half; tail -n 1 points"], json: true, output_key: points}
  - {name: end, output_key: loop_output, command: [sh, -c, "cat points; echo $0", "{{said}}"]}
shapes: {said: {pattern: "[0-9]"}}
`
	for _, tt := range []struct{ name, text, want string }{
		{"branches", branches, "1\n1\n2\n2\n1\n2"},
		{"copies", copies, "3\n5\n1"}, // both are worth 3 at first, then the first one more
	} {
		t.Run(tt.name, func(t *testing.T) { diesAnywhere(t, tt.text, tt.want) })
	}
}

func diesAnywhere(t *testing.T, text, want string) {
	live := func(cut int) (ended bool, result string, tree any) {
		var ends []func() error
		closeAll := func() {
			for _, end := range ends {
				if err := end(); err != nil {
					t.Error(err)
				}
			}
			ends = nil
		}
		h := newHouse(t, text, definition.BuildConfig{Root: t.TempDir(), Cleanup: func(f func() error) { ends = append(ends, f) }})
		n := 0
		h.after = func(*session.Event) bool { n++; return n == cut }
		err := h.run()
		closeAll()
		ended = err == nil
		if !ended {
			if !errors.Is(err, errDied) {
				t.Fatal(err)
			}
			h.after = nil
			if err := h.run(); err != nil && !errors.Is(err, runner.ErrFinished) {
				t.Fatalf("resumed after %d events: %v", cut, err)
			}
			closeAll()
		}
		space, _ := h.state(runfiles.Key).(map[string]any)
		return ended, h.result(), space["tree"]
	}
	_, result, tree := live(0)
	if result != want || tree == nil {
		t.Fatalf("the run hands back %q, want %q; tree %v", result, want, tree)
	}
	step := longtest.N(23, 4)
	for cut := 1 + rand.IntN(step); ; cut += step {
		ended, gotResult, gotTree := live(cut)
		if ended {
			break
		}
		if diff := cmp.Diff([]any{result, tree}, []any{gotResult, gotTree}); diff != "" {
			t.Errorf("died after %d events (-want +got):\n%s", cut, diff)
		}
	}
}
