// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/model/scripted"
)

// K7: what refrain check says of an example is meant. No example has a warning.
func TestExamplesHaveNothingToMend(t *testing.T) {
	meant := map[string][]string{
		// As they were first told: whoever ends the loop leaves what it said before as it is.
		"refine/loop.pt.yaml": {"LOOP025"},
		"document/loop.yaml":  {"LOOP025"},
	}
	for _, file := range definitions(t) {
		def, err := definition.Load(file)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, w := range def.Warnings() {
			t.Error(w)
		}
		var notes []string
		for _, n := range def.Notes() {
			notes = append(notes, n.Code)
		}
		slices.Sort(notes)
		if diff := cmp.Diff(meant[file], notes); diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", file, def.Notes(), diff)
		}
	}
}

// X1, K7, K9: whatever goes wrong in an example, one of its guards catches it, but for
// what its README says. A crash is left to package rehearsal: it takes a run for
// every event. The short form takes every third file.
func TestWhatGoesWrongInAnExampleIsCaught(t *testing.T) {
	scripted := map[string]*scripted.Script{"negotiate/loop.yaml": script(t, "negotiate")}
	left := map[string][]string{
		"refine/loop.pt.yaml":    {"noisy_judge", "improves_slowly", "scores_regress", "costs_explode"},
		"regress/rollback.yaml":  {"noisy_judge"},
		"regress/keep-best.yaml": {"noisy_judge"},
		"document/loop.yaml":     {"step_hung"},
	}
	faults := slices.DeleteFunc(rehearsal.Faults(), func(f rehearsal.Fault) bool { return f == rehearsal.Crash })
	for i, file := range definitions(t) {
		if i%longtest.N(3, 1) != 0 {
			continue
		}
		t.Run(file, func(t *testing.T) {
			def, err := definition.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			rep, err := rehearsal.Run(t.Context(), def, rehearsal.Config{Script: scripted[file], Faults: faults})
			if err != nil {
				t.Fatal(err)
			}
			var open []string
			for _, f := range rep.Findings {
				if f.Status == rehearsal.Uncaught || f.Status == rehearsal.Unknown {
					open = append(open, string(f.Fault))
				}
			}
			if diff := cmp.Diff(left[file], open); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, e := range rep.Endings {
				if e.Known && !e.Reached {
					t.Errorf("with nothing wrong: %s", e)
				}
			}
		})
	}
}

func script(t *testing.T, folder string) *scripted.Script {
	t.Helper()
	s, err := scripted.Parse([]byte(read(t, path.Join(folder, "script.yaml"))))
	if err != nil {
		t.Fatal(err)
	}
	return &s
}

// K2, K3: the definitions have the steps that the requirements name, by their types, in
// their order, and what is needed is in the files.
func TestStepsOfTheThreeOfEvo(t *testing.T) {
	for file, want := range map[string]string{
		"refine/loop.yaml":    "llm llm llm llm* llm!",
		"refine/loop.pt.yaml": "llm llm llm llm* llm!",
		"optimize/loop.yaml":  "llm command a2a llm* llm!",
		"codefix/loop.yaml":   "llm command sequential expression a2a llm* llm!",
	} {
		def, err := definition.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		l := def.Root
		for _, a := range def.Root.SubAgents {
			if a.Type == definition.TypeLoop {
				l = a
			}
		}
		var steps []string
		for _, a := range l.SubAgents {
			step := string(a.Type)
			if a.CanExitLoop {
				step += "*"
			}
			if a.OutputKey == definition.LoopOutput {
				step += "!"
			}
			steps = append(steps, step)
		}
		if got := strings.Join(steps, " "); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
	def, err := definition.Load("codefix/loop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for a := range def.Root.All {
		names = append(names, a.Name)
	}
	if !strings.Contains(strings.Join(names, " "), "pipeline validador_sintaxe executor_testes analisador_cobertura ") {
		t.Errorf("the pipeline of codefix is %q", names)
	}
}
