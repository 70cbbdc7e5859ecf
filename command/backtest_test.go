// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/command/internal/backtest"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// writeRecord writes the record that a run of the plan leaves whose iterations
// have these scores, each the mean of three answers if there is a judge. Each step takes a second and, if a price is given, a call
// of a hundred tokens.
func writeRecord(t *testing.T, plan loop.Plan, price *float64, scores ...float64) string {
	t.Helper()
	var lines bytes.Buffer
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	add := func(at session.Address, kind mark.Kind, data any, delta map[string]any) {
		ev := &session.Event{ID: "x", InvocationID: "e-1", Author: "refine", Address: at, Timestamp: now}
		ev.Actions.StateDelta = delta
		if kind != "" {
			m, err := mark.New(kind, data)
			if err != nil {
				t.Fatal(err)
			}
			ev.Mark = m
		}
		line, err := json.Marshal(ev)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	var tally loop.Tally
	state := map[string]any{}
	add("refine", mark.KindLoopStarted, plan, nil)
	for {
		d := plan.Next(&tally)
		if d.Ended.Number > 0 {
			add("refine", mark.KindIterationFinished, d.Ended, nil)
		}
		if d.Action == loop.Stop {
			add("refine", mark.KindLoopStopped, d.Stop, nil)
			break
		}
		if d.Action == loop.Rollback {
			add("refine", mark.KindRolledBack, mark.RolledBack{Iteration: d.Iteration, To: d.To}, nil)
			plan.Add(&tally, loop.Outcome{Iteration: d.Iteration, Step: -1, RolledBack: true})
			continue
		}
		name := plan.Steps[d.Step].Name
		at := session.Address("refine/" + name)
		if d.Action == loop.RunStep {
			at = session.Address("refine["+string(rune('0'+d.Iteration))+"]/") + session.Address(name)
		}
		o := loop.Outcome{Iteration: d.Iteration, Step: d.Step, Started: now, Finished: now.Add(time.Second)}
		now = o.Finished
		if price != nil {
			o.Usage = loop.Usage{Calls: 1, InputTokens: 60, OutputTokens: 40, Cost: price, CachedTokens: 30, CacheSaved: 0.05}
		}
		var delta map[string]any
		if name == "critic" {
			delta = map[string]any{"score": scores[d.Iteration-1]}
			if plan.Score.Judge != nil {
				delta["score"] = scores[d.Iteration-1] + []float64{-0.5, 0, 0.5, 0}[min(d.Sample-1, 3)]
			}
			state["score"] = delta["score"]
		}
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		add(at, "", nil, delta)
		add(at, mark.KindStepFinished, mark.StepFinished{Seconds: 1, Outcome: text}, nil)
		o.State = state
		plan.Add(&tally, o)
	}
	name := filepath.Join(t.TempDir(), "run.jsonl")
	if err := os.WriteFile(name, lines.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// refrain runs the command in this process.
func refrain(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), nil, args, stateOnly, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func refinePlan() loop.Plan {
	return loop.Plan{
		Name: "refine", MaxIterations: 5, CanExit: []string{}, Score: &loop.Score{Key: "score"},
		Steps: []loop.Step{{Name: "writer"}, {Name: "critic"}, {Name: "final", Finalizer: true}},
	}
}

// M6, T31: one record, several policies, in a table.
func TestBacktestTable(t *testing.T) {
	policies := filepath.Join(t.TempDir(), "policies.yaml")
	if err := os.WriteFile(policies, []byte(`
enough:
  score: {target: 7, min_delta: 0.5, patience: 2}
  steps: {critic: {on_error: skip_step}}
any of two:
  stop_when: {any: [state.score > 7.5, iteration >= 9]}
  max_iterations: null
same: {plan: {can_exit: []}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	name := writeRecord(t, refinePlan(), new(0.25), 5.2, 6.8, 7.4, 7.6, 7.61)
	code, out, errs := refrain(t, "backtest", name,
		"--set", "plan.max_iterations=2", "--set", "plan.timeout=4", "--set", "reserve=0.5", "--policy", "early: score.min_delta_percent=5, stop_when=size([1, 2]) > 2",
		"--policy", "late: max_iterations=9", "--policy", "other way: order=critic writer", "--policies", policies)
	if code != term.ExitOK || errs != "" {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	want := `policy      stops after  reason                                                                        result                     saves iterations  steps  time  tokens  cost  cost then  from cache
recorded    5            max_iterations                                                                finalizer 5, best 5 (7.61)  0                 0      0     0       0     2.50       50%, 0.50 saved
set         1            timeout                                                                       finalizer 1, best 1 (5.2)   4                 8      8s    800     2.00  0.50       50%, 0.10 saved
early       4            converged                                                                     finalizer 4, best 4 (7.6)   1                 2      2s    200     0.50  2.00       50%, 0.40 saved
late        more than 5  unknown beyond the recording
other way   more than 0  in iteration 1 this plan would run "critic", the recording has "writer"
enough      3            target_reached                                                                finalizer 3, best 3 (7.4)   2                 4      4s    400     1.00  1.50       50%, 0.30 saved
any of two  4            condition                                                                     finalizer 4, best 4 (7.6)   1                 2      2s    200     0.50  2.00       50%, 0.40 saved
same        5            max_iterations                                                                finalizer 5, best 5 (7.61)  0                 0      0     0       0     2.50       50%, 0.50 saved
`
	if diff := cmp.Diff(unpadded(want), unpadded(out)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// unpadded takes the spaces out that only put columns below each other.
func unpadded(text string) []string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.Join(strings.Fields(l), " ")
	}
	return lines
}

// LOOP 14: a run that was made by an earlier version of the rules is shown under both, with each policy, and so are the
// answers that nobody gave.
func TestBacktestUnderBothRules(t *testing.T) {
	plan := refinePlan()
	plan.MaxIterations, plan.Score.MinDelta, plan.Score.Patience = 8, new(0.1), 2
	plan.Score.Judge, plan.OnRegression = &loop.Judge{Step: "critic", Samples: 3}, loop.RollbackOnWorse
	scores := []float64{6, 7.2, 5, 7.3, 7.3, 7.3, 7.3, 7.3}
	const footnote = "The run was made by version 0 of the rules about a judge's scores; today's rules are version 3."
	for _, tt := range []struct {
		name  string
		rules uint
		args  []string
		want  []string
	}{
		{"as it was", 0, nil, []string{
			"recorded 4 converged finalizer 4, best 2 (7.2) 0 0 0",
			"recorded, today's rules more than 4 unknown beyond the recording",
			footnote,
			"recorded, today's rules: the judge would have been asked again about the best after 1 rollback; the run has no such answer, so the mean stays as it was.",
		}},
		{"two policies", 0, []string{"--policy", "short: max_iterations=3", "--policy", "by three: rules=3, max_iterations=2"}, []string{
			"recorded 4 converged finalizer 4, best 2 (7.2) 0 0 0",
			"recorded, today's rules more than 4 unknown beyond the recording",
			"short 3 max_iterations finalizer 3, best 2 (7.2) 1 2 4s",
			"short, today's rules 3 max_iterations finalizer 3, best 2 (7.2 ± 0.33) 1 2 4s",
			"by three 2 max_iterations finalizer 2, best 2 (7.2 ± 0.35) 2 4 8s",
			footnote,
			"recorded, today's rules: the judge would have been asked again about the best after 1 rollback; the run has no such answer, so the mean stays as it was.",
		}},
		{"today's rules", plan.Current(), []string{"--policy", "short: max_iterations=4"}, []string{
			"recorded 8 converged finalizer 8, best 4 (7.3 ± 0.31) 0 0 0",
			"short 4 max_iterations finalizer 4, best 4 (7.3 ± 0.32) 4 8 16s",
		}},
	} {
		p := plan
		p.Version = tt.rules
		code, out, errs := refrain(t, append([]string{"backtest", writeRecord(t, p, nil, scores...)}, tt.args...)...)
		if code != term.ExitOK || errs != "" {
			t.Fatalf("%s: exit code %d: %s", tt.name, code, errs)
		}
		if diff := cmp.Diff(tt.want, unpadded(strings.TrimSpace(out))[1:]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestBacktestJSON(t *testing.T) {
	recorded := refinePlan()
	recorded.StateLimit = 1<<53 + 1 // more than a float64 can tell
	name := writeRecord(t, recorded, nil, 5, 7, 6, 8, 4)
	code, out, errs := refrain(t, "backtest", name, "--json", "--policy", "three: max_iterations=3, quality_gate=5.5")
	var got struct {
		Loop     string
		Policies []backtest.Row
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != term.ExitOK || got.Loop != "refine" || len(got.Policies) != 2 {
		t.Fatalf("exit code %d, %v: %s%s", code, err, out, errs)
	}
	if diff := cmp.Diff(&recorded, got.Policies[0].Plan); diff != "" {
		t.Errorf("the recorded plan: %s", diff)
	}
	three := got.Policies[1]
	if three.Plan.StateLimit != recorded.StateLimit || three.Plan.MaxIterations != 3 || *three.Plan.QualityGate != 5.5 ||
		three.Result.Stop.Rejections != 1 || *three.Result.Stop.BestScore != 7 {
		t.Errorf("got %+v", three)
	}
	if saves := three.Result; saves.SavedIterations != 2 || saves.SavedSteps != 4 || saves.SavedTime != loop.Duration(4*time.Second) {
		t.Errorf("it saves %+v", saves)
	}
	_, table, _ := refrain(t, "backtest", name, "--set", "max_iterations=3")
	if strings.Contains(table, "tokens") {
		t.Errorf("no model was asked:\n%s", table)
	}
}

// U6: what is wrong with a policy is told in its own words.
func TestBacktestRefuses(t *testing.T) {
	name := writeRecord(t, refinePlan(), nil, 5, 7, 8, 8, 8)
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{nil, term.ExitUsage, "nothing to compare: give --set"},
		{[]string{"--set", "max_iteration=3"}, term.ExitUsage, `policy set: max_iteration: there is no field "max_iteration" (did you mean "max_iterations"?)`},
		{[]string{"--set", "target=3"}, term.ExitUsage, `policy set: target: there is no field "target" (did you mean "score.target"?)`},
		{[]string{"--set", "score.goal=3"}, term.ExitUsage, `policy set: score.goal: there is no field "goal" (there are key, label, field, expr,`},
		{[]string{"--set", "max_iterations"}, term.ExitUsage, `--set "max_iterations": write it as plan.field=value`},
		{[]string{"--set", "max_iterations=three"}, term.ExitUsage, "max_iterations=three: give a number, or null to remove it"},
		{[]string{"--set", "max_iterations=-1"}, term.ExitUsage, "max_iterations=-1: number -1 cannot be a number"},
		{[]string{"--set", "max_iterations.n=1"}, term.ExitUsage, "max_iterations.n: there is nothing below max_iterations"},
		{[]string{"--set", "timeout=soon"}, term.ExitUsage, "timeout=soon: give a time such as 90s or 5m"},
		{[]string{"--set", "steps.critc.retry.attempts=2"}, term.ExitUsage, `steps.critc.retry.attempts: there is no "critc" in a list of 3 (did you mean "critic"?)`},
		{[]string{"--set", "steps[7].name=a"}, term.ExitUsage, `there is no "7" in a list of 3`},
		{[]string{"--set", "steps[0]=null"}, term.ExitUsage, "an element of a list cannot be removed"},
		{[]string{"--set", "stop_when=state.score >"}, term.ExitUsage, "stop_when: 1:14"},
		{[]string{"--set", "stop_when={"}, term.ExitUsage, "give an object, or null to remove it"},
		{[]string{"--set", "score=null", "--set", "quality_gate=3"}, term.ExitUsage, "quality_gate needs a score"},
		{[]string{"--policy", "max_iterations=3"}, term.ExitUsage, "write it as NAME: field=value, field=value"},
		{[]string{"--policy", "x: 3"}, term.ExitUsage, `--policy x: " 3": write it as plan.field=value`},
		{[]string{"--policies", "none.yaml"}, term.ExitUsage, "--policies none.yaml: open none.yaml"},
		{[]string{"--set", "max_iterations=3", "--loop", "refin"}, term.ExitFailed, `no loop has the address "refin" (did you mean "refine"?)`},
	} {
		code, out, errs := refrain(t, append([]string{"backtest", name}, tt.args...)...)
		if code != tt.code || !strings.Contains(errs, tt.want) || out != "" {
			t.Errorf("%q: exit code %d, %s, want %s", tt.args, code, errs, tt.want)
		}
	}
}

// A record that is none, or of which the end is missing.
func TestRecordsThatAreBroken(t *testing.T) {
	whole, err := os.ReadFile(writeRecord(t, refinePlan(), nil, 5, 7, 8, 8, 8))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, text, want string
		code             int
	}{
		{"empty", "", "the file has no events", term.ExitUsage},
		{"text", "hello\n", ":1: not a log of a run, which has one JSON object a line (refrain export writes one): invalid character", term.ExitFailed},
		{"zeros", strings.Repeat("\x00", 1<<17), ":1: not a log of a run, which has one JSON object a line", term.ExitFailed},
		{"begun", `{"type": "ru`, "the file has no events", term.ExitUsage},
		{"other JSON", `{"a": 1}` + "\n", ":1: not an event of a run: it belongs to no invocation", term.ExitFailed},
		{"no loop", `{"invocationId": "e"}` + "\n", "no loop has begun in the log", term.ExitFailed},
		{"cut off", string(whole[:len(whole)/2]), "the last line was cut off and is left out", term.ExitOK},
		{"blank lines", "\n" + string(whole) + "\n\n", "", term.ExitOK},
	} {
		name := filepath.Join(t.TempDir(), "run.jsonl")
		if err := os.WriteFile(name, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, errs := refrain(t, "backtest", name, "--set", "max_iterations=2")
		if code != tt.code || !strings.Contains(errs, tt.want) || tt.want == "" && errs != "" {
			t.Errorf("%s: exit code %d, %q, want %q", tt.name, code, errs, tt.want)
		}
	}
	if code, _, errs := refrain(t, "verify", filepath.Join(t.TempDir(), "none")); code != term.ExitUsage ||
		!strings.Contains(errs, "none is not a file, and there are no runs here") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}
