// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
)

const onPlateau = `name: x
max_iterations: 12
budget: {cost: 5}
prices: {cheap: {input: 1, output: 1}, dear: {input: 10, output: 20}}
score: {key: mark, min_delta: 0.5, patience: 2}
on_plateau:
  - {model: openai/dear, instructions: "Unlike {{best.draft}}."}
  - fresh
  - {thinking: high, fresh: true, steps: [notes]}
sub_agents:
  - type: sequential
    name: work
    sub_agents:
      - {name: notes, model: openai/cheap, instructions: "Notes.", output_key: notes}
      - {name: writer, model: openai/cheap, instructions: "Write. {{notes}}", output_key: draft}
  - {name: critic, model: openai/cheap, instructions: "Mark {{draft}}.", output_key: mark}
  - {name: final, model: openai/cheap, instructions: "Say {{draft}}.", output_key: loop_output}
`

// LOOP 19a: the plan says for which agents a leg holds: without steps for those that ask a model, except what gives the
// score and the finalizer.
func TestOnPlateauNamesItsAgents(t *testing.T) {
	d := parse(t, onPlateau)
	if diff := cmp.Diff([]loop.Leg{
		{Model: "openai/dear", Instructions: "Unlike {{best.draft}}.", Steps: []string{"notes", "writer"}}, {Fresh: true},
		{Thinking: "high", Fresh: true, Steps: []string{"notes"}},
	}, d.Root.Plan().OnPlateau); diff != "" {
		t.Error(diff)
	}
}

// LOOP 19a, 34: a check counts the dearest of the models that an agent may ask, wants its price where a budget of cost needs it,
// and notes a limit that leaves too few iterations. Legs add none.
func TestOnPlateauIsChecked(t *testing.T) {
	d := parse(t, onPlateau)
	w := d.Worst(definition.Assumed{InputTokens: 1000, OutputTokens: 100})
	for _, a := range w.Agents {
		want := definition.Bound(map[string]float64{"writer": 12 * 3 * 0.012, "critic": 12 * 3 * 0.0011}[a.Agent.Name])
		if want > 0 && (a.Cost < want-1e-9 || a.Cost > want+1e-9) {
			t.Errorf("%s: cost %v, want %v", a.Agent.Name, a.Cost, want)
		}
		if a.Agent.Name == "writer" && a.Turns != 12 {
			t.Errorf("%v turns", a.Turns)
		}
	}
	notes := func(text string) (found []string) {
		for _, p := range parse(t, text).Worst(definition.Assumed{}).Notes() {
			if strings.Contains(p.Message, "on_plateau") {
				found = append(found, p.Message+" ("+p.Hint+")")
			}
		}
		return found
	}
	if got := notes(onPlateau); got != nil {
		t.Errorf("%q", got)
	}
	if diff := cmp.Diff([]string{"a flat course ends after 3 iterations or more, and max_iterations 9 leaves 6 at most for on_plateau " +
		"(another way pays with 8 iterations or more: give max_iterations: 11)"}, notes(strings.Replace(onPlateau, "12", "9", 1))); diff != "" {
		t.Error(diff)
	}
	_, err := definition.Parse("x.yaml", []byte(strings.Replace(onPlateau, "dear: {input: 10, output: 20}", "", 1)), definition.Options{})
	const unknown = `the loop "x" has a budget of cost, but the price of "openai/dear" is not known`
	if problems, _ := errors.AsType[definition.Problems](err); len(problems) == 0 || problems[0].Message != unknown {
		t.Errorf("%v", err)
	}
}

// LOOP 19a: the models of legs are opened before the run, once each, within init_timeout, and asked in their leg.
func TestModelsOfLegsAreOpenedAtInit(t *testing.T) {
	d := parse(t, strings.Replace(onPlateau, "budget: {cost: 5}\n", "", 1))
	var opened []string
	asked := map[string]*recorder{}
	answers := map[string][]scripted.Answer{
		"openai/cheap": slices.Concat(spoken("critic", "5", "5.1", "5.2", "7", "7.1", "7.2", "4", "4.1", "4.2", "4", "4.1", "4.2"),
			spoken("notes", slices.Repeat([]string{"note"}, 12)...), spoken("writer", slices.Repeat([]string{"draft"}, 12)...), spoken("final", "the end")),
		"openai/dear": slices.Concat(spoken("notes", slices.Repeat([]string{"dear note"}, 12)...), spoken("writer", slices.Repeat([]string{"dear draft"}, 12)...)),
	}
	cfg := definition.BuildConfig{Model: func(_ context.Context, name string) (model.LLM, error) {
		opened = append(opened, name)
		r, _ := record(t, answers[name]...)
		asked[name] = r
		return r, nil
	}}
	stop, answer := stopOf(t, d, cfg, nil)
	slices.Sort(opened)
	if !slices.Equal(opened, []string{"openai/cheap", "openai/dear"}) || stop.Reason != loop.ReasonConverged || stop.Leg != 3 ||
		stop.BestIteration != 6 || answer != "the end" {
		t.Errorf("opened %v: %+v %q", opened, stop, answer)
	}
	cfg.InitTimeout = 20 * time.Millisecond
	cfg.Model = func(ctx context.Context, name string) (model.LLM, error) {
		if name == "openai/dear" {
			<-ctx.Done()
		}
		return asked["openai/cheap"], ctx.Err()
	}
	if _, err := d.Build(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), `model "openai/dear" was not ready after 20ms`) {
		t.Errorf("%v", err)
	}
}
