// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

const doubtfulLoop = `
name: mend
max_iterations: 4
score: {key: mark, holdout: hidden}
sub_agents:
  - {name: tests, command: [sh, -c, "echo \"{\\\"passed\\\": $((9 - $0)), \\\"failed\\\": 0, \\\"skipped\\\": $(($0 / 3))}\"", "{{iteration}}"], tests: counts, output_key: tests}
  - {name: hidden, value: "10 - iteration % 3", output_key: hidden}
  - {name: rate, value: "state.tests.score * double(iteration)", output_key: mark}
`

// findings are those of a log, by iteration.
func (h *house) findings() map[int][]loop.Finding {
	h.Helper()
	all := make(map[int][]loop.Finding)
	for ev := range h.view().Events().All() {
		var rec loop.IterationRecord
		if ev.Mark == nil || ev.Mark.Kind != mark.KindIterationFinished {
			continue
		}
		if err := ev.Mark.Decode(&rec); err != nil {
			h.Fatal(err)
		}
		if _, twice := all[rec.Number]; twice {
			h.Errorf("iteration %d has ended twice", rec.Number)
		}
		all[rec.Number] = rec.Findings
	}
	return all
}

// A run that dies after any of its events, as between a step that counts tests and its mark, finds the same when it goes on.
func TestFindingsAfterADeathAtAnyEvent(t *testing.T) {
	whole := newHouse(t, doubtfulLoop, definition.BuildConfig{Root: t.TempDir()})
	if err := whole.run(); err != nil {
		t.Fatal(err)
	}
	want := whole.findings()
	if len(want) != 4 || len(want[1]) != 0 || len(want[2]) != 2 || len(want[3]) != 1 || want[2][1].Kind != loop.FindingHoldout {
		t.Fatalf("%+v", want)
	}
	for k := range len(whole.events) - 1 {
		h := newHouse(t, doubtfulLoop, definition.BuildConfig{Root: t.TempDir()})
		n := 0
		h.after = func(*session.Event) bool { n++; return n == k+1 }
		if err := h.run(); !errors.Is(err, errDied) {
			t.Fatal(k, err)
		}
		h.after = nil
		if err := h.run(); err != nil {
			t.Fatal(k, err)
		}
		if got := h.findings(); !cmp.Equal(want, got) {
			t.Fatalf("died after event %d: %s", k, cmp.Diff(want, got))
		}
	}
}

// What a loop watches is what its steps count and change, wherever they are in it.
func TestWhatIsWatched(t *testing.T) {
	const text = `
name: outer
max_iterations: 2
workspace: {}
sub_agents:
  - name: both
    type: parallel
    sub_agents:
      - {name: one, command: [a], tests: go_json, output_key: counts}
      - {name: two, command: [b], tests: out/report.xml}
  - name: inner
    max_iterations: 2
    sub_agents: [{name: again, command: [c], tests: junit, output_key: again}, {name: text, text: x}]
  - name: words
    max_iterations: 2
    sub_agents: [{name: more, text: x}]
`
	d := parse(t, text)
	want := map[string]*loop.Watch{
		"outer": {Tests: []string{"counts", "again"}, Files: []string{"workspace", "workspace_one", "workspace_two"}},
		"inner": {Tests: []string{"again"}, Files: []string{"workspace"}},
		"words": nil,
	}
	for a := range d.Root.All {
		if w, ok := want[a.Name]; ok && !cmp.Equal(w, a.Plan().Watch) {
			t.Errorf("%s: %s", a.Name, cmp.Diff(w, a.Plan().Watch))
		}
	}
	for text, want := range map[string]string{
		"score: {key: n, holdout: m}\nsub_agents: [{name: s, value: '1', output_key: n}]": `names the key "m", which no agent writes`,
		"score: {key: n, holdout: n}\nsub_agents: [{name: s, value: '1', output_key: n}]": `score.holdout is "n", the key of the score itself`,
		"sub_agents: [{name: s, command: [ls], tests: go_jsn}]":                           `"go_jsn" is not one of go_json, junit, counts`,
		"sub_agents: [{name: s, command: [ls], tests: junit, json: true}]":                `the counts are JSON already`,
	} {
		_, err := definition.Parse("w.yaml", []byte("name: w\nmax_iterations: 1\n"+text), definition.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v, not %s", text, err, want)
		}
	}
}
