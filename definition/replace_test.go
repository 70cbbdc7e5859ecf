// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
)

// A replaced step does not act. What follows reads its outcome as it reads that of the step itself.
func TestReplacedStepDoesNotAct(t *testing.T) {
	at := filepath.Join(t.TempDir(), "acted")
	for _, tt := range []struct {
		name, field, want string
		outcome           any
	}{
		{"a text", "", "sent sent 0", "sent"},
		{"a value", "", `{"id":7} {"id":7} 0`, map[string]any{"id": 7}},
		{"JSON as a text", ", json: true", "7 {\"id\": 7} 0", `{"id": 7}`},
		{"another code", ", ok_exit_codes: [3, 0]", "sent sent 3", "sent"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			shown := "{{mail}}"
			if tt.name == "JSON as a text" {
				shown = "{{mail.id}}"
			}
			d := parse(t, `name: mails
type: sequential
sub_agents:
  - name: refine
    max_iterations: 5
    sub_agents:
      - {name: send, command: [touch, `+at+`], output_key: mail, result_key: done, can_exit_loop: true`+
				`, exit_when: "result.stdout != ''"`+tt.field+`, callbacks: {after_agent: [{command: [touch, `+at+`]}]}}
  - {name: last, text: "`+shown+` {{done.stdout}} {{done.exit_code}}"}
`)
			rec, said := stopOf(t, d, definition.BuildConfig{Replace: map[string]any{"send": tt.outcome, "other": ""}}, nil)
			if rec.Reason != loop.ReasonExit || rec.Iteration != 1 || said != tt.want {
				t.Errorf("got %s after %d, %q; want %q", rec.Reason, rec.Iteration, said, tt.want)
			}
			if _, err := os.Stat(at); err == nil {
				t.Error("the step has acted")
			}
		})
	}
}

// A tool that is an agent is replaced too, and the model gets the outcome as the answer of the tool.
func TestReplacedTool(t *testing.T) {
	d := parse(t, `name: story
instructions: Write.
tools:
  - {name: send, description: Send it, command: ["false"], effect: at_most_once}
`)
	llm, err := scripted.New(scripted.Script{Answers: []scripted.Answer{
		{Calls: []scripted.Call{{Name: "send", Args: map[string]any{"to": "Ana"}}}}, {MatchRequest: "sent to nobody", Text: "done"}}})
	if err != nil {
		t.Fatal(err)
	}
	_, said := stopOf(t, d, definition.BuildConfig{Replace: map[string]any{"send": "sent to nobody"}, DefaultModel: "m",
		Model: func(context.Context, string) (model.LLM, error) { return llm, nil }}, nil)
	if diff := cmp.Diff("done", said); diff != "" {
		t.Error(diff)
	}
}

// An outcome that the step could not have is refused before the run.
func TestReplacedStepNeedsItsForm(t *testing.T) {
	d := parse(t, "name: fetch\ncommand: [\"true\"]\njson: true\n")
	if _, err := d.Build(t.Context(), definition.BuildConfig{Replace: map[string]any{"fetch": "not JSON"}}); err == nil {
		t.Error("it was built")
	}
}
