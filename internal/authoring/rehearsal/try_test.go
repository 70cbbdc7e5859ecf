// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal"
	"github.com/refrain-dev/refrain/internal/history/progress/prose"
	"github.com/refrain-dev/refrain/loop"
)

func try(t *testing.T, text string, cfg rehearsal.TryConfig) *rehearsal.Tried {
	t.Helper()
	got, err := rehearsal.Try(t.Context(), parse(t, text), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// polish is a loop with a judge, that undoes what is worse.
const polish = `name: polish
max_iterations: %d
timeout: %s
score: {key: review, target: 8.0, min_delta: 0.1, patience: 2}
on_regression: rollback
sub_agents:
  - {name: writer, model: openai/none, instructions: "Improve {{draft?}}", output_key: draft}
  - {name: judge, model: openai/none, instructions: "Score {{draft}}", output_key: review}
`

// Each course ends the loop as its rules say, with the limits of time of the file.
func TestTry(t *testing.T) {
	for _, tt := range []struct {
		course     rehearsal.Course
		iterations int
		timeout    string
		reason     loop.StopReason
		after      int
		undone     string
	}{
		{"", 8, "30m", loop.ReasonTarget, 4, ""},
		{rehearsal.GetsBetter, 2, "30m", loop.ReasonTarget, 2, ""},
		{rehearsal.NeverEnough, 8, "30m", loop.ReasonConverged, 7, ""},
		{rehearsal.NeverEnough, 3, "30m", loop.ReasonMaxIterations, 3, ""},
		{rehearsal.NeverEnough, 8, "70s", loop.ReasonTimeout, 4, ""},
		{rehearsal.GetsWorse, 8, "30m", loop.ReasonConverged, 4, "3 4"},
		{rehearsal.Wavers, 8, "30m", loop.ReasonConverged, 4, "3"},
	} {
		t.Run(fmt.Sprint(tt.course, tt.iterations, tt.timeout), func(t *testing.T) {
			got := try(t, fmt.Sprintf(polish, tt.iterations, tt.timeout), rehearsal.TryConfig{Course: tt.course})
			if len(got.Loops) != 1 || len(got.StandIns) != 2 || got.Error != "" {
				t.Fatalf("got %+v", got)
			}
			l := got.Loops[0]
			if l.Loop.Stop == nil || l.Loop.Stop.Reason != tt.reason || l.Loop.Stop.Iteration != tt.after || !l.Scripted {
				t.Errorf("it stopped with %+v", l.Loop.Stop)
			}
			var undone []string
			for _, it := range l.Loop.Iterations {
				if it.RolledBack {
					undone = append(undone, fmt.Sprint(it.Number))
				}
			}
			if strings.Join(undone, " ") != tt.undone {
				t.Errorf("undone were %q", undone)
			}
			if say := prose.SentenceOf(l.Loop, l.Elapsed).In(prose.English); say.Lead == "" || say.Basis != "" {
				t.Errorf("it says %+v", say)
			}
		})
	}
	if _, err := rehearsal.Try(t.Context(), parse(t, "name: x\ntext: y\n"), rehearsal.TryConfig{Course: "none"}); err == nil {
		t.Error("there is a course none")
	}
}

// Loops in a row, loops without a score, what is no loop, and a loop that nothing ends.
func TestTryOtherShapes(t *testing.T) {
	two := `name: both
type: sequential
sub_agents:
  - name: first
    max_iterations: 3
    sub_agents: [{name: a, set: {x: "1"}}]
  - name: second
    max_iterations: 9
    sub_agents: [{name: b, model: openai/none, instructions: go, can_exit_loop: true}]
`
	got := try(t, two, rehearsal.TryConfig{})
	if len(got.Loops) != 2 || got.Loops[0].Loop.Stop.Reason != loop.ReasonMaxIterations || got.Loops[1].Loop.Stop.Reason != loop.ReasonExit {
		t.Errorf("two loops: %+v", got.Loops)
	}
	got = try(t, two, rehearsal.TryConfig{Course: rehearsal.NeverEnough})
	if got.Loops[1].Loop.Stop.Reason != loop.ReasonMaxIterations || got.Loops[1].Scripted {
		t.Errorf("never enough: %+v", got.Loops[1].Loop.Stop)
	}
	if got = try(t, "name: x\ntext: hello\n", rehearsal.TryConfig{}); len(got.Loops) != 0 || got.Answer != "hello" {
		t.Errorf("no loop: %+v", got)
	}
	endless := "name: x\nmax_iterations: 0\ntimeout: 1h\nstop_when: state.n > 5\nsub_agents:\n  - {name: a, set: {n: \"1\"}}\n"
	got = try(t, endless, rehearsal.TryConfig{})
	if l := got.Loops[0]; l.Loop.Stop != nil || len(l.Loop.Iterations) < 1000 {
		t.Errorf("an endless loop has %d iterations, stop %+v", len(l.Loop.Iterations), l.Loop.Stop)
	}
	got = try(t, "name: x\ninputs: {topic: {type: string}}\ntext: \"about {{topic}}\"\n", rehearsal.TryConfig{})
	if len(got.Notes) != 1 || !strings.Contains(got.Answer, "made up") {
		t.Errorf("a made-up input: %+v", got)
	}
	got = try(t, "name: x\ninputs: {job: {pattern: '(job|task)-[0-9]{3}.?'}, mode: {choices: [fast, slow]}, table: {type: file}}\n"+
		"text: \"{{job}} {{mode}} {{table}}\"\n", rehearsal.TryConfig{})
	if got.Answer != "job-111 fast made up" {
		t.Errorf("made-up inputs with shapes: %+v", got)
	}
}

// A try has no effects: nothing that the file names is run or reached.
func TestTryHasNoEffects(t *testing.T) {
	made := filepath.Join(t.TempDir(), "made")
	got := try(t, fmt.Sprintf(`name: x
max_iterations: 2
callbacks:
  after_agent: [{command: [touch, %[1]q]}]
sub_agents:
  - {name: c, command: [touch, %[1]q]}
  - {name: h, url: "http://127.0.0.1:1/"}
  - {name: a, endpoint: "http://127.0.0.1:1/"}
  - {name: p, question: "May we?"}
  - name: m
    model: ollama/none
    instructions: go
    tools: [{mcp: {command: [touch, %[1]q]}}]
`, made), rehearsal.TryConfig{})
	if _, err := os.Stat(made); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a command was run: %v", err)
	}
	if len(got.StandIns) != 7 || got.Error != "" {
		t.Errorf("got %+v", got)
	}
}

// What grows without end is cut off, and what takes too long is left when its time is over.
func TestTryIsBounded(t *testing.T) {
	text := `name: grow
max_iterations: 1000
state: {x: "0123456789"}
sub_agents:
  - {name: twice, text: "{{x}}{{x}}{{x}}{{x}}", output_key: x}
`
	got := try(t, text, rehearsal.TryConfig{})
	if len(got.Loops) != 1 {
		t.Errorf("got %+v", got)
	}
	var many strings.Builder
	many.WriteString("name: search\nmax_iterations: 50\nstop_when: state.k0 > 1\nsub_agents:\n")
	for i := range 60 {
		fmt.Fprintf(&many, "  - {name: c%d, command: [x], output_key: k%d, json: true, exit_when: \"result.json.a%d > %d && state.k%d == %d\"}\n", i, i, i, i, i, i)
	}
	def, err := definition.Parse("loop.yaml", []byte(many.String()), definition.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if _, err := rehearsal.Try(ctx, def, rehearsal.TryConfig{}); !errors.Is(err, enough) {
		t.Errorf("canceled: %v", err)
	}
}

// A try ends soon after its context does, whatever its expressions compute: this one takes as long as an
// expression can.
func TestTryOfLongExpressionsEndsInTime(t *testing.T) {
	def, err := definition.Parse("loop.yaml", []byte(`name: long
max_iterations: 100000
sub_agents:
  - name: think
    set: {x: "lists.range(1000).map(i, lists.range(1000).map(j, [i, j, 1] == [j, i, 1]))"}
    on_error: next_iteration
`), definition.Options{})
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, enough)
	defer cancel()
	began := time.Now()
	_, err = rehearsal.Try(ctx, def, rehearsal.TryConfig{})
	if took := time.Since(began); !errors.Is(err, enough) || took > 10*time.Second {
		t.Errorf("ended after %s with %v", took, err)
	}
}
