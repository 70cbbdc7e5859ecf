// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"maps"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
)

// run runs a definition and returns its last words and the state.
func run(t *testing.T, d *definition.Definition, cfg definition.BuildConfig, values map[string]string) (string, map[string]any) {
	t.Helper()
	state, err := d.InitialState(values)
	if err != nil {
		t.Fatal(err)
	}
	a, err := d.Build(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.NewInMemory("test", a)
	if err != nil {
		t.Fatal(err)
	}
	words, after := "", maps.Clone(state)
	msg := genai.NewContentFromText("go", genai.RoleUser)
	for ev, err := range r.Run(t.Context(), "u", "s", msg, agent.RunConfig{}, runner.WithStateDelta(state)) {
		if err != nil {
			t.Fatal(err)
		}
		if text := ev.Text(); text != "" {
			words = text
		}
		maps.Copy(after, ev.Actions.StateDelta)
	}
	return words, after
}

func load(t *testing.T, name string) *definition.Definition {
	t.Helper()
	d, err := definition.Load(filepath.Join("testdata/good", name))
	if err != nil {
		t.Fatal(err)
	}
	if w := d.Warnings(); len(w) > 0 {
		t.Errorf("warnings:\n%v", w)
	}
	return d
}

// A3, A4, A5, A14, A15, A20, D7, T24
func TestLoopWithOrderScoreAndFinalizer(t *testing.T) {
	d := load(t, "compress.yaml")
	if d.Name != "compress" || d.Description == "" || d.Goal != "A small file." || d.Instructions == "" {
		t.Errorf("title = %q, %q, %q, %q", d.Name, d.Description, d.Goal, d.Instructions)
	}
	words, state := run(t, d, definition.BuildConfig{}, map[string]string{"base": "50"})
	// The ninth still gains 11 % over the eighth, so the limit ends it.
	if want := "Use level 10, of 5.555555555555555."; words != want {
		t.Errorf("words = %q, want %q", words, want)
	}
	if state["advice"] != words || state["loop_output"] != words {
		t.Errorf("advice = %v, loop_output = %v", state["advice"], state["loop_output"])
	}
}

// A12, A13, B8, C26: the inner loop's result is the inner loop's.
func TestLoopInALoopInASequence(t *testing.T) {
	words, state := run(t, load(t, "nested.yaml"), definition.BuildConfig{}, nil)
	got := map[string]any{}
	for _, k := range []string{"checked", "inner_result", "outer_result", "loop_output", "panel_words", "told"} {
		got[k] = state[k]
	}
	want := map[string]any{
		"checked":      "n is 4, was 3",
		"inner_result": "inner 4",
		"outer_result": "inner 4 then outer",
		"loop_output":  "inner 4 then outer",
		"panel_words":  map[string]any{"ann": "Ann likes About cats.", "bob": "Bob likes About cats."},
		"told":         words,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestAnchorsAndMergesAreYAML(t *testing.T) {
	d := load(t, "anchors.yaml")
	words, _ := run(t, d, definition.BuildConfig{}, nil)
	if words != "iteration 2 of 2" {
		t.Errorf("words = %q", words)
	}
	a, err := d.Build(t.Context(), definition.BuildConfig{})
	if err != nil {
		t.Fatal(err)
	}
	p := a.(*loopagent.Agent).Plan()
	got := make(map[string]loop.ErrorPolicy)
	for _, s := range p.Steps {
		got[s.Name] = s.OnError
	}
	want := map[string]loop.ErrorPolicy{"one": "", "two": "", "three": loop.SkipStep}
	if diff := cmp.Diff(want, got); diff != "" || p.OnError != loop.NextIteration || p.MaxConsecutiveFailures != 5 {
		t.Errorf("policies: %s%+v", diff, p)
	}
	if p.CanExit == nil || len(p.CanExit) != 0 {
		t.Errorf("CanExit = %#v, want an empty list", p.CanExit)
	}
	if a.(*loopagent.Agent).Config().KeepStates {
		t.Error("nobody reads earlier states, and they are kept")
	}
}

// T9, T2: only the step with exit_when may end the loop; no value reaches a shell.
func TestCommandsInALoop(t *testing.T) {
	d := load(t, "commands.yaml")
	_, state := run(t, d, definition.BuildConfig{Root: t.TempDir()}, nil)
	if state["printed"] != "a b; echo no" {
		t.Errorf("printed = %q", state["printed"])
	}
	a, err := d.Build(t.Context(), definition.BuildConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"fail"}, a.(*loopagent.Agent).Plan().CanExit); diff != "" {
		t.Error(diff)
	}
}

// B7: states are kept by the loop whose steps read them, and by no other.
func TestStatesAreKeptForThoseWhoRead(t *testing.T) {
	a, err := load(t, "nested.yaml").Build(t.Context(), definition.BuildConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"inner": true, "outer": false} {
		if got := agent.Find(a, name).(*loopagent.Agent).Config().KeepStates; got != want {
			t.Errorf("%s: KeepStates = %v, want %v", name, got, want)
		}
	}
}

// A17, B3, C1
func TestMaxIterationsFromOutside(t *testing.T) {
	for _, tt := range []struct {
		file string
		n    uint
		loop string // "": an error
	}{
		{"compress.yaml", 2, "compress"},
		{"compress.yaml", 0, "compress"}, // its score stops it
		{"anchors.yaml", 0, "anchors"},   // its condition does
		{"nested.yaml", 3, ""},           // which loop?
	} {
		a, err := load(t, tt.file).Build(t.Context(), definition.BuildConfig{Limits: definition.Limits{MaxIterations: &tt.n}})
		if (err != nil) != (tt.loop == "") {
			t.Errorf("%s with %d: %v", tt.file, tt.n, err)
		}
		if err == nil {
			if got := agent.Find(a, tt.loop).(*loopagent.Agent).Plan().MaxIterations; got != tt.n {
				t.Errorf("%s: MaxIterations = %d, want %d", tt.file, got, tt.n)
			}
		}
	}
	const only = "name: line\ntype: sequential\nsub_agents: [{name: it, sub_agents: [{name: a, text: a}]}]"
	d, err := definition.Parse("line.yaml", []byte(only), definition.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d.Root.SubAgents[0].Loop.MaxIterations != definition.DefaultMaxIterations {
		t.Error("a loop that gives no limit has another one than the default")
	}
	if _, err := d.Build(t.Context(), definition.BuildConfig{Limits: definition.Limits{MaxIterations: new(uint)}}); err == nil {
		t.Error("the only loop lost its only bound")
	}
	n := uint(7)
	a, err := d.Build(t.Context(), definition.BuildConfig{Limits: definition.Limits{MaxIterations: &n}})
	if err != nil || agent.Find(a, "it").(*loopagent.Agent).Plan().MaxIterations != 7 {
		t.Errorf("the only loop has not got the limit: %v", err)
	}
}
