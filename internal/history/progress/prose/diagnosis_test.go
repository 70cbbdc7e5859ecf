// SPDX-License-Identifier: Apache-2.0

package prose_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/edit"
	"github.com/refrain-dev/refrain/internal/history/progress/prose"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// told is a log as a loop of one step writes it, with records of one's own.
type told struct {
	t       *testing.T
	evs     []*session.Event
	seconds float64 // of each step; 0 is 3
}

func (l *told) mark(at session.Address, iteration int, kind mark.Kind, data any) {
	l.t.Helper()
	m, err := mark.New(kind, data)
	if err != nil {
		l.t.Fatal(err)
	}
	l.evs = append(l.evs, &session.Event{Address: at, Iteration: iteration, Mark: m})
}

// run takes the records of a plan's run over given outcomes. A plan without
// steps has one, critic.
func (l *told) run(p *loop.Plan, outcomes ...loop.Outcome) {
	l.t.Helper()
	if p.Steps == nil {
		p.Steps = []loop.Step{{Name: "critic"}}
	}
	if err := p.Check(); err != nil {
		l.t.Fatal(err)
	}
	l.mark("refine", 0, mark.KindLoopStarted, p)
	var tally loop.Tally
	for i := 0; ; i++ {
		d := p.Next(&tally)
		if d.Ended.Number > 0 {
			l.mark("refine", 0, mark.KindIterationFinished, d.Ended)
		}
		if d.Action == loop.Stop {
			l.mark("refine", 0, mark.KindLoopStopped, d.Stop)
			return
		}
		o := loop.Outcome{Iteration: d.Iteration, Step: d.Step}
		if d.Action == loop.Rollback {
			o.RolledBack = true
		} else {
			if i >= len(outcomes) {
				l.t.Fatal("the plan goes on beyond the outcomes")
			}
			o.State, o.Failure, o.Exit, o.Fingerprint = outcomes[i].State, outcomes[i].Failure, outcomes[i].Exit, outcomes[i].Fingerprint
			o.Started, o.Finished = outcomes[i].Started, outcomes[i].Finished
			fin := mark.StepFinished{Seconds: cmp.Or(l.seconds, 3)}
			if o.Failure != nil {
				fin.Error, fin.Timeout = o.Failure.Message, o.Failure.Kind == loop.Timeout
			}
			at := session.Address(fmt.Sprintf("refine[%d]/critic", d.Iteration))
			l.mark(at, d.Iteration, mark.KindStepFinished, fin)
		}
		p.Add(&tally, o)
	}
}

func scored(scores ...float64) (os []loop.Outcome) {
	for _, s := range scores {
		os = append(os, loop.Outcome{State: map[string]any{"score": s}})
	}
	return os
}

func key(target float64) *loop.Score { return &loop.Score{Key: "score", Target: &target} }

// X1, X2, X3, X4, M6: each finding names its iterations and numbers, and what to
// change.
func TestDiagnosis(t *testing.T) {
	limit := loop.Duration(3 * time.Second)
	late := loop.Outcome{Failure: &loop.Failure{Kind: loop.Timeout, Message: "critic took longer than 3s"}}
	broken := loop.Outcome{Failure: &loop.Failure{Message: "x"}}
	again := []loop.Step{{Name: "critic", Retry: &loop.Retry{Attempts: 2}}}
	for _, tt := range []struct {
		name     string
		plan     loop.Plan
		outcomes []loop.Outcome
		want     prose.FindingCode
		words    []string // in it
	}{
		{"X1 reachable", loop.Plan{MaxIterations: 4, Score: key(8)}, scored(4, 5, 6, 7), prose.FindingNeverDone,
			[]string{"best score 7 of 8 (iteration 4)", "set max_iterations to "}},
		{"X1 reachable, and no saying when", loop.Plan{MaxIterations: 8, Score: key(9)}, scored(4.3, 4.2, 4.5, 5, 5.3, 5.7, 5.6, 6.1),
			prose.FindingNeverDone,
			[]string{"best score 6.1 of 9 (iteration 8). Lower the target, raise max_iterations, or give the writer better feedback."}},
		{"X1 levels off", loop.Plan{MaxIterations: 4, Score: key(9)}, scored(4, 6, 7, 7.5), prose.FindingNeverDone,
			[]string{"level off near 8", "lower the target"}},
		{"X1 a slow line", loop.Plan{MaxIterations: 12, Score: key(9)}, scored(6.02, 6.04, 6.06, 6.08, 6.1, 6.12, 6.14, 6.16, 6.18, 6.2, 6.22,
			6.24), prose.FindingNeverDone,
			[]string{"best score 6.24 of 9 (iteration 12). Lower the target, raise max_iterations, or give the writer better feedback."}},
		{"X1 condition", loop.Plan{MaxIterations: 2, StopWhen: &loop.Condition{Expr: "state.score > 9"}}, scored(4, 5), prose.FindingNeverDone,
			[]string{"stop_when never held: state.score > 9 is 5, wanted > 9"}},
		{"X1 condition on a key that nobody writes", loop.Plan{MaxIterations: 2, StopWhen: &loop.Condition{Expr: "state.none > 9"}}, scored(4,
			5), prose.FindingNeverDone,
			[]string{`stop_when never held: state.none > 9: state has no key "none"`}},
		{"X1 nobody asks", loop.Plan{MaxIterations: 2}, scored(1, 1), prose.FindingNeverDone, []string{"no step asked to leave"}},
		{"X2", loop.Plan{MaxIterations: 8, Score: key(99)}, scored(1, 3, 4, 4.5, 4.55, 4.56, 4.57, 4.58), prose.FindingSlow,
			[]string{"iterations 6 to 8 brought 0.03 of 3.58 points", "about iteration 5"}},
		{"X2 straight line", loop.Plan{MaxIterations: 6, Score: key(99)}, scored(5, 5.1, 5.2, 5.3, 5.4, 5.5), prose.FindingSlow,
			[]string{"5 iterations brought 0.5 points, none more than 2%", "min_delta_percent: 5 (about iteration 2)"}},
		{"X2 falling line", loop.Plan{MaxIterations: 5, Score: &loop.Score{Key: "score", Target: new(1.0), LowerIsBetter: true}},
			scored(10, 9.9, 9.8, 9.7, 9.6), prose.FindingSlow, []string{"4 iterations brought 0.4 points, none more than 1.1%"}},
		{"X2 plateau", loop.Plan{MaxIterations: 6, Score: &loop.Score{Key: "score"}}, scored(6, 6, 6, 6, 6, 6), prose.FindingSlow,
			[]string{"the score stayed at 6 for 6 iterations"}},
		{"X1 plateau", loop.Plan{MaxIterations: 6, CanExit: []string{}, Score: &loop.Score{Key: "score"}}, scored(6, 6, 6, 6, 6, 6),
			prose.FindingNeverDone,
			[]string{"max_iterations after 6 iterations: the score stayed at 6", "nothing in the loop looks at the score", "Give score a target"}},
		{"X1 straight line", loop.Plan{MaxIterations: 6, CanExit: []string{}, Score: &loop.Score{Key: "score"}}, scored(5, 5.1, 5.2, 5.3,
			5.4, 5.5),
			prose.FindingNeverDone, []string{"none more than 2%, and nothing in the loop looks at the score"}},
		{"X3", loop.Plan{MaxIterations: 5, Score: key(99)}, scored(5, 7, 6, 8, 4), prose.FindingRegression,
			[]string{"in iterations 3 (to 6), 5 (to 4)", "the best is 8 in iteration 4", "on_regression: rollback"}},
		{"X3 rolled back", loop.Plan{MaxIterations: 3, Score: key(99), OnRegression: loop.RollbackOnWorse},
			[]loop.Outcome{scored(5)[0], scored(7)[0], scored(6)[0], {}}, prose.FindingRegression,
			[]string{"all were rolled back", "{{rejected.reason}}"}},
		{"X4", loop.Plan{MaxIterations: 3, OnError: loop.SkipStep, Steps: []loop.Step{{Name: "critic", Timeout: limit}}}, []loop.Outcome{late,
			late, {}}, prose.FindingTimeouts,
			[]string{"2 timeouts in 3 iterations, most of them in critic. Make critic faster, raise its timeout to 6s"}},
		{"X4 of a step without a limit of its own", loop.Plan{MaxIterations: 3, OnError: loop.SkipStep, IterationTimeout: limit},
			[]loop.Outcome{late, late, {}}, prose.FindingTimeouts, []string{"Make critic faster, or raise iteration_timeout of the loop to 6s"}},
		{"X1 without a limit of iterations", loop.Plan{Timeout: limit, Score: key(9)},
			[]loop.Outcome{scored(5)[0], scored(7)[0], scored(6)[0], {Started: time.Unix(1, 0), Finished: time.Unix(4, 0)}}, prose.FindingNeverDone,
			[]string{"Lower the target, raise timeout, or give"}},

		{"refused", loop.Plan{MaxIterations: 2, CanExit: []string{}},
			[]loop.Outcome{{Exit: &loop.Exit{}}, {Exit: &loop.Exit{}}}, prose.FindingRefused,
			[]string{"2 times, asked by critic", "can_exit_loop: true"}},
		{"circles", loop.Plan{MaxIterations: 9, NoProgress: new(loop.NoProgress)},
			[]loop.Outcome{{Fingerprint: "a"}, {Fingerprint: "a"}, {Fingerprint: "a"}}, prose.FindingCircles,
			[]string{"the same result 3 times running"}},
		{"swings", loop.Plan{MaxIterations: 5, Score: key(99)}, scored(5, 8, 5, 8, 5), prose.FindingCircles,
			[]string{"the scores swing: 5, 8, 5, 8, 5"}},
		{"noise", loop.Plan{MaxIterations: 3, Score: &loop.Score{Key: "score", Judge: &loop.Judge{Step: "critic", Samples: 2}, Target: new(9.0)}},
			scored(1, 3, 2, 3, 1, 3.5), prose.FindingNoise, []string{"of 2 differences were below that"}},
		{"failures", loop.Plan{MaxIterations: 2, OnError: loop.SkipStep},
			[]loop.Outcome{{Failure: &loop.Failure{Message: "x"}}, {Failure: &loop.Failure{Message: "x"}}}, prose.FindingFailures,
			[]string{"2 of 2 steps"}},
		{"tried again in vain", loop.Plan{MaxIterations: 3, OnError: loop.SkipStep, Steps: again},
			[]loop.Outcome{broken, broken, broken, {}, broken, broken}, prose.FindingFailures, []string{"2 of 3 steps"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := &told{t: t}
			asked := &session.Event{Address: "refine[1]/critic", Iteration: 1}
			asked.UsageMetadata = &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 5}
			l.evs = append(l.evs, asked)
			l.run(&tt.plan, tt.outcomes...)
			var d prose.Diagnosis
			for _, ev := range l.evs {
				d.Add(ev)
			}
			for _, f := range d.Findings() {
				if f.Code != tt.want {
					continue
				}
				for _, w := range tt.words {
					if !strings.Contains(f.String(), w) {
						t.Errorf("no %q in %q", w, f)
					}
				}
				taken(t, f)
				inPortuguese(t, d.Findings(), d.FindingsIn(prose.Portuguese))
				return
			}
			t.Errorf("no finding %s in %v", tt.want, d.Findings())
		})
	}
}

// A time limit is suggested as a person would set it: what a step took has the machine's noise in it.
func TestTimeLimitThatIsSuggestedIsRound(t *testing.T) {
	late := loop.Outcome{Failure: &loop.Failure{Kind: loop.Timeout, Message: "critic took longer than its timeout"}}
	for seconds, want := range map[float64]string{0.301: "600ms", 0.313: "650ms", 1.004: "2s", 14.2: "30s", 301.5: "10m", 0.002: "4ms"} {
		l := &told{t: t, seconds: seconds}
		l.run(&loop.Plan{MaxIterations: 2, OnError: loop.SkipStep}, late, late)
		var d prose.Diagnosis
		for _, ev := range l.evs {
			d.Add(ev)
		}
		i := slices.IndexFunc(d.Findings(), func(f prose.Finding) bool { return f.Code == prose.FindingTimeouts })
		if i < 0 {
			t.Fatalf("%v s: no finding about timeouts in %v", seconds, d.Findings())
		}
		if got := d.Findings()[i].Add; len(got) != 1 || got[0].Value != want {
			t.Errorf("%v s: %v, want %s", seconds, got, want)
		}
	}
}

// inPortuguese wants the same findings with the same changes, in other words.
func inPortuguese(t *testing.T, en, pt []prose.Finding) {
	t.Helper()
	if len(en) != len(pt) {
		t.Fatalf("%d findings in English, %d in Portuguese", len(en), len(pt))
	}
	english := regexp.MustCompile(`(?i)\b(the|of|and|is|was|iterations?|times|let|give|with)\b|%!`)
	for i, f := range pt {
		if f.Code != en[i].Code || f.Loop != en[i].Loop || !slices.Equal(f.Add, en[i].Add) {
			t.Errorf("another finding: %+v for %+v", f, en[i])
		}
		quoted := strings.NewReplacer("max_iterations", "", `state has no key "none"`, "").Replace(f.String())
		if f.Title == en[i].Title || f.Evidence == en[i].Evidence || f.Suggestion == en[i].Suggestion || english.MatchString(quoted) {
			t.Errorf("in Portuguese: %s", f)
		}
	}
}

// taken makes the changes that a finding suggests in a definition, which can be read then.
func taken(t *testing.T, f prose.Finding) {
	t.Helper()
	if f.Add == nil { // what to change is for a person to say
		if f.Code == prose.FindingCircles || slices.ContainsFunc([]string{"Check that a step writes", "Lower the target, raise",
			"when to call exit_loop", "more to go on", "clearer criteria"},
			func(words string) bool { return strings.Contains(f.Suggestion, words) }) {
			return
		}
		t.Errorf("no change is suggested by %q", f)
		return
	}
	e, err := edit.New([]byte("name: refine\nscore: {key: review, judge: critic, target: 99}\nsub_agents:\n  - {name: writer, text: " +
		"x, output_key: draft}\n" +
		"  - {name: critic, model: scripted/x, instructions: \"Judge {{draft}}.\", output_key: review}\n"))
	if err != nil {
		t.Fatal(err)
	}
	before := string(e.Bytes())
	for _, fix := range f.Add {
		if fix.Append {
			err = e.Append(fix.Agent, fix.Field, fix.Value)
		} else {
			err = e.Fix(fix.Agent, fix.Field, fix.Value)
		}
		if err != nil {
			t.Errorf("%s: %v", fix, err)
		}
	}
	if _, err := definition.Parse("loop.yaml", e.Bytes(), definition.Options{}); err != nil || string(e.Bytes()) == before {
		t.Errorf("with %v: %v\n%s", f.Add, err, e.Bytes())
	}
}

// A loop that does what it was told has nothing to find.
func TestDiagnosisIsSilentAboutGoodLoops(t *testing.T) {
	for name, p := range map[string]*loop.Plan{
		"target":    {MaxIterations: 5, Score: key(8)},
		"limit":     {MaxIterations: 3, CanExit: []string{}},
		"converged": {MaxIterations: 9, Score: &loop.Score{Key: "score", MinDeltaPercent: new(5.0)}},
		// LOOP 16: what met the condition is the result, whatever it scored.
		"condition": {MaxIterations: 5, Score: &loop.Score{Key: "score"}, StopWhen: &loop.Condition{Expr: "state.score == 6"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := &told{t: t}
			if name == "condition" {
				l.run(p, scored(5, 7, 6)...)
			} else {
				l.run(p, scored(5, 7, 8, 8.1)...)
			}
			var d prose.Diagnosis
			for _, ev := range l.evs {
				d.Add(ev)
			}
			if got := d.Findings(); len(got) > 0 {
				t.Errorf("found %v", got)
			}
		})
	}
}

// Failures that were healed by another try are none. G10
func TestDiagnosisCountsWhatFailedAtLast(t *testing.T) {
	broken := loop.Outcome{Failure: &loop.Failure{Message: "x"}}
	l := &told{t: t}
	l.run(&loop.Plan{MaxIterations: 3, CanExit: []string{}, Steps: []loop.Step{{Name: "critic", Retry: &loop.Retry{Attempts: 3}}}},
		broken, broken, loop.Outcome{}, broken, loop.Outcome{}, broken, broken, loop.Outcome{})
	var d prose.Diagnosis
	for _, ev := range l.evs {
		d.Add(ev)
	}
	if got := d.Findings(); len(got) > 0 {
		t.Errorf("found %v", got)
	}
}

// What is sent to the model grows with every iteration.
func TestDiagnosisSeesContextGrow(t *testing.T) {
	l := &told{t: t}
	for i := 1; i <= 4; i++ {
		ev := &session.Event{Address: session.Address(fmt.Sprintf("refine[%d]/critic", i)), Iteration: i}
		ev.UsageMetadata = &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: int32(400 * i), ToolUsePromptTokenCount: int32(100 * i)}
		l.evs = append(l.evs, ev)
	}
	l.run(&loop.Plan{MaxIterations: 1}, loop.Outcome{})
	var d prose.Diagnosis
	for _, ev := range l.evs {
		d.Add(ev)
	}
	for _, f := range d.Findings() {
		if f.Code == prose.FindingContext && strings.Contains(f.Evidence, "500 input tokens in the first, 2,000 in the last") {
			return
		}
	}
	t.Errorf("found %v", d.Findings())
}

// Scores that swing are no circles if the last of them is the best.
func TestNewBestIsNoCircle(t *testing.T) {
	for want, last := range map[bool]float64{false: 9, true: 5} {
		l := &told{t: t}
		l.run(&loop.Plan{MaxIterations: 5, Score: &loop.Score{Key: "score", Target: new(99.0)}}, scored(5, 8, 5, 8, last)...)
		var d prose.Diagnosis
		for _, ev := range l.evs {
			d.Add(ev)
		}
		if got := slices.ContainsFunc(d.Findings(), func(f prose.Finding) bool { return f.Code == prose.FindingCircles }); got != want {
			t.Errorf("after a last score of %v: circles %v", last, got)
		}
	}
}

// The texts of a stop record are for people: findings come from its numbers, in every language.
func TestFindingsReadNoTextOfTheRecord(t *testing.T) {
	fails := loop.Outcome{Failure: &loop.Failure{Message: "x"}}
	for name, tt := range map[string]struct {
		plan     loop.Plan
		outcomes []loop.Outcome
	}{
		"circles": {loop.Plan{MaxIterations: 9, NoProgress: new(loop.NoProgress)},
			[]loop.Outcome{{Fingerprint: "a"}, {Fingerprint: "a"}, {Fingerprint: "a"}}},
		"turns": {loop.Plan{MaxIterations: 9, NoProgress: &loop.NoProgress{Swings: 1}},
			[]loop.Outcome{{Fingerprint: "a"}, {Fingerprint: "b"}, {Fingerprint: "a"}}},
		"target":     {loop.Plan{MaxIterations: 3, Score: &loop.Score{Key: "score", Target: new(9.0)}}, scored(5, 7, 8)},
		"low target": {loop.Plan{MaxIterations: 3, Score: &loop.Score{Key: "score", Target: new(1.0), LowerIsBetter: true}}, scored(5, 4, 3)},
		"no exit":    {loop.Plan{MaxIterations: 2, CanExit: []string{}}, []loop.Outcome{{}, {}}},
		"an exit":    {loop.Plan{MaxIterations: 2, CanExit: []string{"critic"}}, []loop.Outcome{{}, {}}},
		"failures":   {loop.Plan{MaxIterations: 2, OnError: loop.SkipStep}, []loop.Outcome{fails, fails}},
	} {
		l := &told{t: t}
		asked := &session.Event{Address: "refine[1]/critic", Iteration: 1}
		asked.UsageMetadata = &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 1}
		l.evs = append(l.evs, asked)
		l.run(&tt.plan, tt.outcomes...)
		findings := func() (all []string) {
			var d prose.Diagnosis
			for _, ev := range l.evs {
				d.Add(ev)
			}
			for _, lang := range []prose.Language{prose.English, prose.Portuguese} {
				for _, f := range d.FindingsIn(lang) {
					all = append(all, fmt.Sprintf("%v %v", f, f.Add))
				}
			}
			return all
		}
		want := findings()
		var rec loop.StopRecord
		last := l.evs[len(l.evs)-1]
		if err := last.Mark.Decode(&rec); err != nil {
			t.Fatal(err)
		}
		rec.Detail = "other words"
		for i := range rec.Conditions {
			c := &rec.Conditions[i]
			c.Value, c.Threshold = strings.Map(other, c.Value), strings.Map(other, c.Threshold)
		}
		var err error
		if last.Mark, err = mark.New(mark.KindLoopStopped, rec); err != nil {
			t.Fatal(err)
		}
		if got := findings(); !slices.Equal(got, want) || len(want) == 0 && name != "no exit" {
			t.Errorf("%s: with other texts\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// other makes another text of one.
func other(r rune) rune { return r + 1 }
