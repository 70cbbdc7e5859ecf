// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

// stopOf runs a definition and returns why it stopped and what it said.
func stopOf(t *testing.T, d *definition.Definition, cfg definition.BuildConfig, values map[string]string) (*loop.StopRecord, string) {
	t.Helper()
	root, err := d.Build(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	state, err := d.InitialState(values)
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.New(runner.Config{AppName: "test", Agent: root, SessionService: session.InMemoryService(), AutoCreateSession: true, Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	var fold progress.Fold
	msg := genai.NewContentFromText("go", genai.RoleUser)
	for ev, err := range r.Run(t.Context(), "u", "s", msg, agent.RunConfig{Prices: d.Prices}, runner.WithStateDelta(state)) {
		if err != nil {
			t.Fatal(err)
		}
		fold.Add(ev)
	}
	return fold.Stop(), fold.Answer()
}

// F4, F5, F6, C13, C27: a step that takes too long is left, and the loop goes on.
func TestStepOutOfTimeFailsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := parse(t, `name: refine
max_iterations: 2
sub_agents:
  - {name: slow, instructions: a, timeout: 5s, can_exit_loop: false, output_key: draft}
  - {name: fast, text: "{{draft}} in {{iteration}}"}
`)
		rec, cfg := record(t, scripted.Answer{Text: "quick", Delay: 2 * time.Second}, scripted.Answer{Text: "late", Delay: time.Minute})
		began := time.Now()
		stop, answer := stopOf(t, d, cfg, nil)
		if answer != "quick in 2" || stop.Reason != loop.ReasonMaxIterations || stop.Timeouts != 1 || len(rec.requests) != 2 {
			t.Errorf("%q, %v, %d timeouts", answer, stop, stop.Timeouts)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// C7, F2, F6, C27: the finalizer still has its part of the time.
func TestLoopOutOfTimeHandsBackAResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := parse(t, `name: refine
timeout: 100s
finalizer_reserve: 20%
sub_agents:
  - {name: slow, instructions: a, can_exit_loop: false}
  - {name: last, instructions: "sum up", output_key: loop_output}
`)
		_, cfg := record(t, scripted.Answer{Agent: "slow", Text: "draft", Delay: 50 * time.Second, Repeat: true},
			scripted.Answer{Agent: "last", Text: "so far", Delay: 15 * time.Second})
		began := time.Now()
		stop, answer := stopOf(t, d, cfg, nil)
		if stop.Reason != loop.ReasonTimeout || answer != "so far" || time.Since(began) != 95*time.Second {
			t.Errorf("%v: %q after %s", stop, answer, time.Since(began))
		}
	})
}

// G10, A21: a failed step runs again, with waits around.
func TestStepIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := parse(t, `name: refine
max_iterations: 2
iteration_delay: 10s
sub_agents:
  - {name: a, instructions: a, retry: {attempts: 3, backoff: 5s}, request_retry: 1, delay_before: 1s, delay_after: 2s, can_exit_loop: false}
  - {name: b, text: b}
`)
		fails := scripted.Answer{Error: &scripted.Failure{Status: 503}}
		rec, cfg := record(t, fails, fails, scripted.Answer{Text: "third"}, scripted.Answer{Text: "fourth"})
		began := time.Now()
		stop, _ := stopOf(t, d, cfg, nil)
		if stop.Reason != loop.ReasonMaxIterations || stop.Retries != 2 || len(rec.requests) != 4 {
			t.Errorf("%v: %d retries, %d requests", stop, stop.Retries, len(rec.requests))
		}
		// 1s, two backoffs of 4 to 5 and 8 to 10, 2s; 10s; 1s, 2s.
		if took := time.Since(began); took < 28*time.Second || took > 31*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// F10, C18, T26: the budget ends the loop, and prompts know what is left of it.
func TestBudgetOfALoop(t *testing.T) {
	d := parse(t, `name: refine
max_iterations: 0
budget: {calls: 4, cost: 1}
prices: {scripted: {input: 1, output: 1}}
sub_agents:
  - {name: a, instructions: "left: {{budget.remaining}}", can_exit_loop: false}
`)
	rec, cfg := record(t, scripted.Answer{Text: "x", Repeat: true, Usage: &scripted.Usage{Prompt: 60_000, Output: 40_000}})
	stop, _ := stopOf(t, d, cfg, nil)
	if stop.Reason != loop.ReasonBudget || len(rec.requests) != 4 {
		t.Fatalf("%v after %d requests", stop, len(rec.requests))
	}
	for i, want := range []string{"left: 4 calls, 1 cost", "left: 3 calls, 0.9 cost"} {
		if got := rec.requests[i].Config.SystemInstruction.Parts[0].Text; !strings.Contains(got, want) {
			t.Errorf("request %d lacks %q:\n%s", i+1, want, got)
		}
	}
}

// O1, O2, O3: a deterministic step runs again only when what it reads has changed.
func TestCache(t *testing.T) {
	const echo = `command: [sh, -c, 'echo x >> runs; echo "$0"', "{{file}}"]`
	for _, tt := range []struct {
		step string
		more string
		runs int
	}{
		{echo, "", 6},
		{echo, "cache: true", 2},
		{echo, "cache: false", 6},
		{echo, "cache: 10m", 2},
		{echo, "cache: {ttl: 1ns}", 6},
		{strings.Replace(echo, "]", `, "{{iteration}}"]`, 1), "cache: true", 6},
		{strings.Replace(echo, "]", `, "{{iteration}}"]`, 1), `cache: {key: "{{file}}"}`, 2},
		{`command: [sh, -c, 'echo x >> runs; echo b']`, "cache: true", 1},
		{echo, "cache: true\n    exit_when: iteration > 9", 6},
		{echo, "cache: true\n    exit_when: state.deep.n > 9", 2},
		{echo, "cache: true\n    stdin: '{{deep.n}} {{user_input}}{{#tags}}{{name}}{{/tags}}'", 2},
		{echo, "cache: true\n    stdin: '{{prev.count}}'", 6},
	} {
		d := parse(t, `name: refine
max_iterations: 6
shapes: {file: {pattern: "[a-z]"}}
state: {file: a, count: 0, deep: {n: 1}, tags: [{name: t}]}
sub_agents:
  - name: measure
    output_key: measured
    `+tt.step+"\n    "+tt.more+`
  - name: next
    set: {file: 'state.file == "a" ? "b" : "a"', count: state.count + 1}
  - name: say
    text: "{{measured}} {{count}}"
`)
		dir := t.TempDir()
		stop, answer := stopOf(t, d, definition.BuildConfig{Root: dir}, nil)
		runs, err := os.ReadFile(filepath.Join(dir, "runs"))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(string(runs), "x"); got != tt.runs || stop.CacheHits != 6-tt.runs || answer != "b 6" {
			t.Errorf("%s, %s: %d runs, %d hits, want %d runs; it said %q", tt.step, tt.more, got, stop.CacheHits, tt.runs, answer)
		}
	}
}

// A sequence is known by all that its agents read, but for what they have from
// the loop inside.
func TestCacheOfASequence(t *testing.T) {
	d := parse(t, `name: refine
max_iterations: 4
shapes: {file: {choices: [a]}}
state: {file: a}
sub_agents:
  - name: group
    type: sequential
    cache: true
    sub_agents:
      - {name: run, command: [sh, -c, 'echo x >> runs; echo "$0"', "{{file}}"], output_key: measured}
      - name: inner
        max_iterations: 2
        sub_agents:
          - {name: count, set: {n: "iteration + (has(prev.n) ? int(prev.n) : 0)"}}
          - {name: tell, text: "{{iteration}}"}
  - name: say
    text: "{{measured}} {{n}}"
`)
	dir := t.TempDir()
	stop, answer := stopOf(t, d, definition.BuildConfig{Root: dir}, nil)
	runs, _ := os.ReadFile(filepath.Join(dir, "runs"))
	if string(runs) != "x\n" || stop.CacheHits != 3 || answer != "a 3" {
		t.Errorf("%q runs, %d hits, %q", runs, stop.CacheHits, answer)
	}
}

// O9, LOOP 18: a step is told why the iteration before was rejected, and what it
// had written; the state is that of the best.
func TestRejectedIteration(t *testing.T) {
	d := parse(t, `name: refine
max_iterations: 4
on_regression: rollback
score: {key: points}
state: {scores: [5, 7, 6, 8]}
sub_agents:
  - name: write
    set: {draft: '"draft " + string(iteration)', points: "state.scores[iteration - 1]"}
  - name: hear
    text: "{{rejected.reason}}|{{rejected.draft}}"
    output_key: iteration:heard
  - name: say
    text: "{{draft}} after {{best.draft}}: {{iteration:heard}}"
    output_key: said
`)
	if w := d.Warnings(); len(w) > 0 {
		t.Error(w)
	}
	_, state := run(t, d, definition.BuildConfig{}, nil)
	want := "draft 4 after draft 2: score 6 is worse than 7, the best so far (iteration 2)|draft 3"
	if diff := cmp.Diff(want, state["said"]); diff != "" {
		t.Error(diff)
	}
	if !built(t, d, "refine", definition.BuildConfig{}).Config().KeepStates {
		t.Error("rejected.draft is read, and the states are not kept")
	}
}

// A21: the loop at the root waits as its steps do.
func TestRootWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := parse(t, "name: a\nmax_iterations: 2\ndelay_before: 2s\ndelay_after: 3s\nsub_agents: [{name: b, text: hi}]\n")
		start := time.Now()
		run(t, d, definition.BuildConfig{}, nil)
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("it took %s, want 5s", took)
		}
		if got := d.Worst(definition.Assumed{}).Total.Seconds; got < 5 {
			t.Errorf("at most %v seconds", got)
		}
	})
	_, err := definition.Parse("x.yaml", []byte("name: a\ntype: sequential\ndelay_before: 2s\nsub_agents: [{name: b, text: hi}]\n"), definition.Options{})
	if err == nil || !strings.Contains(err.Error(), "delay_before is for the steps of loops, sequences and parallel agents, and for a loop at the root") {
		t.Errorf("a sequence waits: %v", err)
	}
}
