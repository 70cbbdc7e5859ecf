// SPDX-License-Identifier: Apache-2.0

package runpage_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/progress/prose"
	"github.com/refrain-dev/refrain/internal/web/runpage"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// loops scores 2, 4, and then 3 twice, as the third iteration is undone. Each has a loop in it.
const loops = `
name: outer
max_iterations: 4
state: {n: 0, m: 0, draft: ""}
score: {key: mark}
on_regression: rollback
sub_agents:
  - {name: count, set: {n: state.n + 1, tries: state.n + 1}, effect: pure}
  - name: inner
    max_iterations: 2
    sub_agents:
      - {name: more, set: {m: state.m + 1}}
  - {name: write, text: "draft {{n}}", output_key: draft}
  - {name: judge, set: {mark: "[2.0, 4.0, 3.0][state.n - 1]"}}
`

// marks is a part of a script in which an agent answers with marks, one after another.
func marks(agent string, all ...float64) string {
	var text strings.Builder
	for _, m := range all {
		fmt.Fprintf(&text, "  - {agent: %s, text: \"%v\"}\n", agent, m)
	}
	return text.String()
}

// record runs a definition, durably, and returns its log.
func record(t *testing.T, text string, scripts ...string) []*session.Event {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "script.yaml"), []byte("answers:\n"+strings.Join(scripts, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := definition.Parse(filepath.Join(dir, "loop.yaml"), []byte(text), definition.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := d.Build(t.Context(), definition.BuildConfig{})
	if err != nil {
		t.Fatal(err)
	}
	state, err := d.InitialState(nil)
	if err != nil {
		t.Fatal(err)
	}
	store := session.InMemoryService()
	r, err := runner.New(runner.Config{AppName: "test", Agent: a, SessionService: store, AutoCreateSession: true, Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range r.Run(t.Context(), "u", "s", genai.NewContentFromText("a <b>draft</b>", genai.RoleUser), agent.RunConfig{}, runner.WithStateDelta(state)) {
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := store.Get(context.Background(), &session.GetRequest{AppName: "test", UserID: "u", SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(got.Session.Events().All())
}

// page is one with its folds.
type page struct{ runpage.Page }

func newPage() *page {
	return &page{runpage.Page{Live: new(progress.Live), Watch: new(prose.Watch)}}
}

func (p *page) take(ev *session.Event) {
	p.Live.Add(ev)
	p.Watch.Add(ev)
	p.Add(ev)
	p.Wrote(ev)
}

// log is that of a run, in memory.
func log(events []*session.Event) *session.View {
	v := session.NewView(session.ViewConfig{State: make(map[string]any)})
	for _, ev := range events {
		v.Apply(ev)
	}
	return v
}

// M9 to M16: the head of a run that is over, and of the same run at every moment before.
func TestHead(t *testing.T) {
	events := record(t, loops)
	p := newPage()
	for i, ev := range events {
		p.take(ev)
		h := p.Head(runpage.RunInfo{ID: "r", Name: "outer", Status: "running"})
		if _, err := json.Marshal(h); err != nil {
			t.Fatalf("after %d events: %v", i+1, err)
		}
		if h.Seq != ev.Seq {
			t.Errorf("after event %d the head says %d", ev.Seq, h.Seq)
		}
	}
	h := p.Head(runpage.RunInfo{ID: "r", Name: "outer", Status: string(mark.RunCompleted)})
	if h.Status != "limit" || h.Message != "a <b>draft</b>" || h.Keys.Iteration != 4 || h.Keys.Best == nil || h.Keys.Best.Iteration != 2 {
		t.Errorf("the head says %s, %q, %+v", h.Status, h.Message, h.Keys)
	}
	if h.Loop == nil || h.Loop.Stop == nil || h.Loop.Stop.Kind != "warn" || len(h.Loop.Outlook.Ledger) == 0 || h.Sentence.Lead == "" {
		t.Fatalf("the loop is %+v", h.Loop)
	}
	var drawn []string
	for _, pt := range h.Loop.Points {
		drawn = append(drawn, fmt.Sprintf("%d from %d: %v undone %v best %v", pt.Number, pt.From, *pt.Score, pt.Undone, pt.Best))
	}
	want := []string{
		"1 from 0: 2 undone false best false", "2 from 1: 4 undone false best true",
		"3 from 2: 3 undone true best false", "4 from 2: 3 undone true best false",
	}
	if !slices.Equal(drawn, want) {
		t.Errorf("the chart has %q", drawn)
	}
	if h.Result == nil || !h.Can.Fork || !h.Can.More || h.Can.Pause {
		t.Errorf("the result is %+v, one can %+v", h.Result, h.Can)
	}
	if len(h.Checkpoints) != 5 || h.Checkpoints[4].Iteration != 0 {
		t.Errorf("the checkpoints are %+v", h.Checkpoints)
	}
}

// LOOP 30: a run that was stopped in good order can be resumed, a canceled one too; the page offers what the command does.
func TestWhatARunAllows(t *testing.T) {
	p := newPage()
	for _, ev := range record(t, loops) {
		p.take(ev)
	}
	for status, want := range map[string]runpage.Can{
		"running":     {Pause: true, Cancel: true, Fork: true},
		"waiting":     {Cancel: true, Fork: true},
		"paused":      {Resume: true, Cancel: true, Fork: true},
		"interrupted": {Resume: true, Cancel: true, Fork: true},
		"canceled":    {Resume: true, Fork: true, Remove: true},
		"failed":      {Retry: true, Fork: true, Remove: true},
		"completed":   {More: true, Fork: true, Remove: true},
	} {
		if got := p.Head(runpage.RunInfo{ID: "r", Status: status}).Can; got != want {
			t.Errorf("%s: %+v, want %+v", status, got, want)
		}
	}
	if got := p.Head(runpage.RunInfo{ID: "r", Status: "canceled", ReadOnly: true}).Can; got != (runpage.Can{}) {
		t.Errorf("read-only: %+v", got)
	}
}

// Rows come in pages, and those of a loop within by its address.
func TestIterations(t *testing.T) {
	p := newPage()
	for _, ev := range record(t, loops) {
		p.take(ev)
	}
	part, err := p.Iterations("outer", 2, 2, prose.English)
	if err != nil || part.Total != 4 || len(part.Iterations) != 2 || part.Iterations[0].Number != 2 {
		t.Fatalf("%+v, %v", part, err)
	}
	var names []string
	for _, s := range part.Iterations[0].Steps {
		names = append(names, s.Name)
	}
	if got := strings.Join(names, " "); got != "count inner write judge" {
		t.Errorf("the steps are %s", got)
	}
	inner, err := p.Iterations(part.Iterations[0].Steps[1].Address, 1, 10, prose.English)
	if err != nil || inner.Total != 2 || len(inner.Iterations) != 2 {
		t.Errorf("the inner loop: %+v, %v", inner, err)
	}
	if _, err := p.Iterations("outer/none", 1, 10, prose.English); err == nil {
		t.Error("a loop that is not there has iterations")
	}
}

func TestDetail(t *testing.T) {
	events := record(t, loops)
	p := newPage()
	for _, ev := range events {
		p.take(ev)
	}
	d, err := p.Detail("outer[2]/write", log(events))
	if err != nil {
		t.Fatal(err)
	}
	if d.Output != "draft 2" || d.Against != 1 || len(d.Words) == 0 || d.EventsTotal == 0 || len(d.Raw) == 0 {
		t.Errorf("the step is %+v", d)
	}
	if len(d.Changes) != 1 || d.Changes[0].Key != "draft" {
		t.Errorf("it changed %+v", d.Changes)
	}
	whole, err := p.Detail("outer[2]", log(events))
	if err != nil || len(whole.Changes) < 3 {
		t.Errorf("iteration 2 changed %+v, %v", whole, err)
	}
	// What changed is the difference of the states before and after, wherever somebody looks.
	at := map[session.Address]bool{}
	for _, ev := range events {
		for a := ev.Address; a != ""; a = a.Parent() {
			at[a] = true
		}
	}
	for a := range at {
		first, last := int64(0), int64(0)
		for _, ev := range session.Current(events) {
			if ev.Address.Under(a) {
				first, last = cmp.Or(first, ev.Seq), ev.Seq
			}
		}
		want := progress.Diff(progress.StateAfter(nil, slices.Values(events), first-1, nil), progress.StateAfter(nil, slices.Values(events), last, nil))
		if d, err := p.Detail(a, log(events)); err != nil || !reflect.DeepEqual(d.Changes, want) {
			t.Errorf("%s changed %+v, want %+v; %v", a, d.Changes, want, err)
		}
	}
	if _, err := p.Detail("outer[9]/write", log(events)); err == nil {
		t.Error("a step that is not there has a detail")
	}
}

// However long the run, a chart gets as many points as it can show, and the extremes.
func TestPointsAreThinned(t *testing.T) {
	p := newPage()
	for _, ev := range record(t, `
name: long
max_iterations: 1000
state: {n: 0}
score: {key: mark}
sub_agents:
  - {name: count, set: {n: state.n + 1}}
  - {name: judge, set: {mark: "state.n == 500 ? 100.0 : double(state.n % 7)"}}
`) {
		p.take(ev)
	}
	h := p.Head(runpage.RunInfo{Status: string(mark.RunCompleted)})
	if n := len(h.Loop.Points); n > 320 || n < 100 {
		t.Errorf("%d points", n)
	}
	if !slices.ContainsFunc(h.Loop.Points, func(p runpage.Point) bool { return *p.Score == 100 && p.Best }) {
		t.Error("the best is not among the points")
	}
}

// LOOP 14: the page gets by how much the scores of a judge are off; that of the best is that of all answers about it.
func TestScoresSayHowFarTheyAreOff(t *testing.T) {
	p := newPage()
	for _, ev := range record(t, `
name: noisy
max_iterations: 3
state: {n: 0}
score: {key: mark, judge: {step: judge, samples: 2}}
on_regression: rollback
sub_agents:
  - {name: count, set: {n: state.n + 1}}
  - {name: judge, model: scripted/script.yaml, instructions: Mark it., output_key: mark}
`, marks("judge", 1.5, 1, 2.5, 2, 3.5, 3)) {
		p.take(ev)
	}
	h := p.Head(runpage.RunInfo{Status: string(mark.RunCompleted)})
	for _, pt := range h.Loop.Points {
		if pt.OffBy <= 0 {
			t.Errorf("iteration %d: %+v", pt.Number, pt)
		}
	}
	if b := h.Keys.Best; b == nil || b.Score != 3.25 || fmt.Sprintf("%.2g", b.OffBy) != "0.32" || b.Iteration != 3 {
		t.Errorf("best %+v", b)
	}
}

// race is a race of two judged loops whose scores are within the judge's noise, and a loop that fails.
const race = `
name: search
type: parallel
race: {slices: [2 iterations, rest]}
output_key: found
state: {n: 0}
sub_agents:
  - name: bold
    max_iterations: 3
    score: {key: mark, judge: {step: bold_judge, samples: 2}}
    sub_agents:
      - {name: bold_count, set: {n: state.n + 1}}
      - {name: bold_say, text: "bold {{n}}", output_key: draft}
      - {name: bold_judge, model: scripted/script.yaml, instructions: Mark it., output_key: mark}
  - name: plain
    max_iterations: 3
    score: {key: mark, judge: {step: plain_judge, samples: 2}}
    sub_agents:
      - {name: plain_count, set: {n: state.n + 1}}
      - {name: plain_say, text: "plain {{n}}", output_key: draft}
      - {name: plain_judge, model: scripted/script.yaml, instructions: Mark it., output_key: mark}
  - name: broken
    max_iterations: 3
    score: {key: mark}
    sub_agents:
      - {name: broken_judge, set: {mark: "double(state.n) / [1.0][state.n + 3]"}}
`

// The decision of a race is in the head, with every loop, in both languages; the winner is the loop that is shown first.
func TestRaceIsInTheHead(t *testing.T) {
	p := newPage()
	for _, ev := range record(t, race, marks("bold_judge", 1.5, 1, 2.5, 2, 3.5, 3), marks("plain_judge", 1.4, 0.9, 2.4, 1.9)) {
		p.take(ev)
	}
	h := p.Head(runpage.RunInfo{Status: string(mark.RunCompleted)})
	if h.Loop == nil || h.Loop.Address != "search/bold" || len(h.Loops) != 3 {
		t.Fatalf("the loop is %+v of %d", h.Loop, len(h.Loops))
	}
	if len(h.Races) != 1 || h.Races[0].Race == nil || len(h.Races[0].Steps) != 3 {
		t.Fatalf("races %+v", h.Races)
	}
	r := h.Races[0].Race
	const want = "bold wins and goes on. It has the best score, 2.25 ± 0.35, within the judge's noise of plain."
	if got := r.Words.String(); got != want {
		t.Errorf("got  %q,\nwant %q", got, want)
	}
	var lanes []string
	for _, l := range r.Lanes {
		score := "none"
		if l.Score != nil {
			score = fmt.Sprintf("%.3g ± %.2g in %d of %d", *l.Score, l.OffBy, l.Best, l.Iterations)
		}
		lanes = append(lanes, fmt.Sprintf("%s %s: %s, won %v, even %v, failed %v", l.Loop, l.Address, score, l.Won, l.WithinNoise, l.Failure != ""))
	}
	if want := []string{
		"bold search/bold: 2.25 ± 0.35 in 2 of 2, won true, even false, failed false",
		"plain search/plain: 2.15 ± 0.35 in 2 of 2, won false, even true, failed false",
		"broken search/broken: none, won false, even false, failed true",
	}; !slices.Equal(lanes, want) {
		t.Errorf("lanes\n%s", strings.Join(lanes, "\n"))
	}
	pt := p.Head(runpage.RunInfo{Status: string(mark.RunCompleted), Language: prose.Portuguese}).Races[0].Race.Words.String()
	if pt != "bold vence e continua. Tem a melhor nota, 2,25 ± 0,35, dentro do ruído do avaliador em relação a plain." {
		t.Error(pt)
	}
}

// LOOP 14: an iteration says that the judge does not tell it from the one before.
func TestIterationWithinTheNoise(t *testing.T) {
	p := newPage()
	for _, ev := range record(t, `
name: noisy
max_iterations: 3
state: {n: 0}
score: {key: mark, judge: {step: judge, samples: 2}}
sub_agents:
  - {name: count, set: {n: state.n + 1}}
  - {name: judge, model: scripted/script.yaml, instructions: Mark it., output_key: mark}
`, marks("judge", 5.5, 5, 5.6, 5.1, 9.5, 9)) {
		p.take(ev)
	}
	part, err := p.Iterations("noisy", 1, 9, prose.English)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, true, false} {
		if got := part.Iterations[i]; got.WithinNoise != want || got.OffBy <= 0 {
			t.Errorf("iteration %d: %+v", i+1, got)
		}
	}
	tree := p.Live.Tree().Main().Loop.Iterations
	if got := tree[1].Record.String(); !strings.HasSuffix(got, "Improvement: +0.1 (1.9%), within the judge's noise") {
		t.Error(got)
	}
	if got := tree[2].Record.String(); strings.Contains(got, "noise") {
		t.Error(got)
	}
}
