// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// searches has two loops, of which the second is better after two iterations, and goes on.
const searches = `
name: all
type: sequential
state: {draft: start, rate: 1.0}
sub_agents:
  - name: search
    type: parallel
    output_key: found
    race: {slices: [2 iterations, rest]}
    sub_agents:
      - name: quick
        max_iterations: 4
        score: points
        result: draft
        sub_agents:
          - {name: q, set: {draft: "state.draft + 'q'", points: "5.0 + double(iteration)"}}
          - {name: qs, text: "q {{draft}} {{best.draft}}"}
      - name: deep
        max_iterations: 4
        score: {key: points}
        result: draft
        sub_agents:
          - {name: d, set: {draft: "state['draft'] + 'd'", points: "state.rate + 4.0 * iteration"}}
          - {name: ds, text: "d {{draft}} {{best.draft}}"}
  - {name: say, text: "{{search_winner}} found {{found}}, {{draft}} with {{points}}"}
`

func runRace(t *testing.T, text string, after func(*session.Event) bool) (*house, error) {
	t.Helper()
	h := newHouse(t, text, definition.BuildConfig{Root: t.TempDir()})
	h.after = after
	return h, h.run()
}

// The better loop goes on where it stood, and its state is that of the run.
func TestRaceContinuesWithTheBest(t *testing.T) {
	h, err := runRace(t, searches, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := h.result(), "deep found startdddd, startdddd with 17"; got != want {
		t.Errorf("the run hands back %q, want %q", got, want)
	}
	var decided mark.RaceDecided
	iterations := make(map[string]int)
	for _, ev := range h.events {
		if ev.Mark == nil {
			continue
		}
		switch ev.Mark.Kind {
		case mark.KindRaceDecided:
			if err := ev.Mark.Decode(&decided); err != nil {
				t.Fatal(err)
			}
		case mark.KindIterationFinished:
			iterations[ev.Address.Agent()]++
		}
	}
	want := mark.RaceDecided{Winner: "deep", Continues: true, Reason: "the best score, 9", Standings: []mark.Standing{
		{Loop: "quick", Score: new(7.0), Best: 2, Iterations: 2, Stop: "max_iterations"},
		{Loop: "deep", Score: new(9.0), Best: 2, Iterations: 2, Stop: "max_iterations"},
	}}
	if diff := cmp.Diff(want, decided); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{"quick": 2, "deep": 4}, iterations); diff != "" {
		t.Error(diff)
	}
	for key, want := range map[string]any{"draft_quick": "startqq", "points_quick": 7.0, "draft": "startdddd"} {
		if got := h.state(key); got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
}

// A process that dies at any event changes nothing about the winner and what it comes to.
func TestRaceAfterADeathAtAnyEvent(t *testing.T) {
	for cut := 1; ; cut += longtest.N(3, 1) {
		n := 0
		h, err := runRace(t, searches, func(*session.Event) bool { n++; return n == cut })
		if err == nil {
			break
		}
		if !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		h.after = nil
		if err := h.run(); err != nil && !errors.Is(err, runner.ErrFinished) {
			t.Fatalf("resumed after %d events: %v", cut, err)
		}
		if got, want := h.result(), "deep found startdddd, startdddd with 17"; got != want {
			t.Errorf("died after %d events: %q, want %q", cut, got, want)
		}
	}
}

// A loop that fails loses; the race fails only if all do.
func TestRaceLosesAFailedLoop(t *testing.T) {
	failing := strings.Replace(searches, `points: "state.rate + 4.0 * iteration"`, `points: "1 / (2 - iteration)"`, 1)
	h, err := runRace(t, failing, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := h.result(), "quick found startqqqq, startqqqq with 9"; got != want {
		t.Errorf("the run hands back %q, want %q", got, want)
	}
	both := strings.Replace(failing, `points: "5.0 + double(iteration)"`, `points: "1 / (1 - iteration)"`, 1)
	if _, err := runRace(t, both, nil); err == nil || !strings.Contains(err.Error(), "search/quick[1]/q") {
		t.Errorf("all loops failed, and the error is %v", err)
	}
}

// best_of on a loop runs copies of it, each with keys of its own, and hands back the best.
func TestBestOfALoop(t *testing.T) {
	h, err := runRace(t, `
name: all
type: sequential
state: {draft: "", weight: 0}
sub_agents:
  - name: refine
    best_of: 3
    max_iterations: 2
    score: {key: points, judge: rate}
    order: [write, rate]
    result: draft
    output_key: final
    sub_agents:
      - {name: rate, set: {points: "double(size(state.draft))"}}
      - {name: write, set: {draft: "state.draft + 'xy'"}}
      - {name: speak, text: "{{draft}}", output_key: loop_output}
  - {name: say, text: "{{refine_winner}} {{final}} {{points}}"}
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := h.result(), "refine_1 xyxy 4"; got != want {
		t.Errorf("the run hands back %q, want %q", got, want)
	}
	for _, key := range []string{"draft_1", "draft_2", "draft_3", "draft"} {
		if got := h.state(key); got != "xyxy" {
			t.Errorf("%s is %v", key, got)
		}
	}
}

// The worst case of a race: the slices of all loops, and what the largest of them can use after its slice.
func TestWorstCaseOfARace(t *testing.T) {
	const text = `
name: search
type: parallel
race: {slices: [SLICE, rest]}
sub_agents:
  - name: small
    max_iterations: 5
    score: points
    sub_agents: [{name: a, instructions: Write., model: scripted/x, output_key: points}]
  - name: large
    max_iterations: 8
    score: points
    sub_agents: [{name: b, instructions: Write., model: scripted/x, output_key: points}]
`
	for slice, want := range map[string]definition.Bound{
		"3 iterations": 3 + 3 + 5, "{calls: 2}": 2 + 2 + 6, "{iterations: 4, calls: 9}": 4 + 4 + 4, "6 iterations": 5 + 6 + 2} {
		if got := parse(t, strings.Replace(text, "SLICE", slice, 1)).Worst(definition.Assumed{}).Total.Turns; got != want {
			t.Errorf("%s: %v turns, want %v", slice, got, want)
		}
	}
}

// What cannot race is refused with what to do.
func TestRaceRefuses(t *testing.T) {
	for _, tt := range []struct{ from, to, want string }{
		{"score: points", "result: draft", "a loop quick with"},
		{"[2 iterations, rest]", "[rest]", "race.slices[0] must be a number of iterations, such as 3 iterations, or a map"},
		{"[2 iterations, rest]", "[2 iterations, 3 iterations]", "race.slices[1] must be rest"},
		{"[2 iterations, rest]", "[]", "race.slices has 0 elements"},
		{"[2 iterations, rest]", "[{iterations: 0}, rest]", "race.slices[0].iterations must be at least 1"},
		{"{key: points}", "{key: points, lower_is_better: true}", `lower scores are better in only one of "quick" and "deep"`},
		{"{draft: start,", "{search_winner: x, draft: start,", `the race needs the key "search_winner", which exists`},
		{"{draft: start,", "{draft_deep: x, draft: start,", `the race needs the key "draft_deep", which exists`},
		{`{draft: "state.draft + 'q'"`, `{"user:x": "1", draft: "state.draft + 'q'"`, `"q" writes "user:x", which other sessions share`},
	} {
		text := strings.Replace(searches, tt.from, tt.to, 1)
		if tt.want == "a loop quick with" {
			text, tt.want = strings.Replace(searches, "        score: points\n", "", 1), `"quick" is no loop with a score`
		}
		_, err := definition.Parse("x.yaml", []byte(text), definition.Options{})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.to, err, tt.want)
		}
	}
}

const raceResult = "deep found startdddd, startdddd with 17"

// A run that is paused at any event goes on as if it had not been.
func TestRacePausedAtAnyEvent(t *testing.T) {
	for cut := 1; ; cut += longtest.N(4, 1) {
		n, pause := 0, new(agent.Pause)
		h := newHouse(t, searches, definition.BuildConfig{Root: t.TempDir()})
		h.pause = pause
		h.after = func(*session.Event) bool {
			if n++; n == cut {
				pause.Ask(agent.ErrPaused)
			}
			return false
		}
		err := h.run()
		if n < cut {
			break
		}
		h.pause, h.after = nil, nil
		if errors.Is(err, agent.ErrPaused) {
			err = h.run()
		}
		if got := h.result(); err != nil || got != raceResult {
			t.Errorf("paused at event %d: %q, %v", cut, got, err)
		}
	}
}

// With a place for one loop at a time, the loops take turns, and none waits for another that cannot begin.
func TestRaceWithOneLoopAtATime(t *testing.T) {
	h, err := runRace(t, strings.Replace(searches, "    race:", "    max_concurrency: 1\n    race:", 1), nil)
	if err != nil || h.result() != raceResult {
		t.Errorf("%q, %v", h.result(), err)
	}
}

// A loop that fails after it has won fails the race, and a retry goes on in that loop alone.
func TestRaceRetriesTheWinner(t *testing.T) {
	dir := t.TempDir()
	const before = "          - {name: ds,"
	text := strings.Replace(searches, before,
		`          - {name: dc, command: [sh, -c, "test $0 != 3 || test -e fixed", "{{iteration}}"]}`+"\n"+before, 1)
	h := newHouse(t, text, definition.BuildConfig{Root: dir})
	if err := h.run(); err == nil || !strings.Contains(err.Error(), "search/deep[3]/dc") {
		t.Fatalf("the winner failed, and the error is %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "fixed"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h.resume = []runner.ResumeOption{runner.Continue()}
	if err := h.run(); err != nil {
		t.Fatal(err)
	}
	if got := h.result(); got != raceResult {
		t.Errorf("after the retry: %q, want %q", got, raceResult)
	}
	for _, ev := range h.events {
		if strings.HasPrefix(string(ev.Address), "all/search/quick[") { // its end may be in the log only now
			t.Errorf("%s ran again", ev.Address)
		}
	}
}

// With a higher limit only the loop that went on continues.
func TestRaceContinuesWithAHigherLimit(t *testing.T) {
	text := searches[strings.Index(searches, "  - name: search"):strings.Index(searches, "  - {name: say")]
	text = strings.ReplaceAll(strings.Replace(text, "  - name", "name", 1), "\n    ", "\n") + "state: {draft: start, rate: 1.0}\n"
	h := newHouse(t, text, definition.BuildConfig{Root: t.TempDir()})
	if err := h.run(); err != nil || h.result() != "startdddd" {
		t.Fatal(h.result(), err)
	}
	h.def = parse(t, strings.ReplaceAll(text, "max_iterations: 4", "max_iterations: 5"))
	h.resume = []runner.ResumeOption{runner.Continue()}
	if err := h.run(); err != nil {
		t.Fatal(err)
	}
	if got := h.result(); got != "startddddd" || h.state("draft") != got {
		t.Errorf("with five iterations: %q, draft %v", got, h.state("draft"))
	}
	for _, ev := range h.events {
		if strings.HasPrefix(string(ev.Address), "search/quick") {
			t.Errorf("%s ran again", ev.Address)
		}
	}
}

// No loop makes more calls than its slice allows before the race is decided, wherever the process dies, and the loop
// that goes on has its own budget after that.
func TestRaceKeepsTheBudgetOfASlice(t *testing.T) {
	const text = `
name: search
type: parallel
race: {slices: [{calls: 3}, rest]}
sub_agents:
  - name: one
    max_iterations: 4
    score: points_one
    sub_agents:
      - {name: a, instructions: Write., output_key: x}
      - {name: b, instructions: Write., output_key: y}
      - {name: c, set: {points_one: "1.0 * iteration"}}
  - name: two
    max_iterations: 4
    budget: {calls: 7}
    score: points_two
    sub_agents:
      - {name: d, instructions: Write., output_key: z}
      - {name: e, instructions: Write., output_key: w}
      - {name: f, set: {points_two: "2.0 * iteration"}}
`
	var whole []int
	for cut := 0; ; cut += longtest.N(7, 1) {
		h := newHouse(t, text, definition.BuildConfig{DefaultModel: "m", Model: func(context.Context, string) (model.LLM, error) {
			return scripted.New(scripted.Script{Answers: []scripted.Answer{{Text: "ok"}}, RepeatLast: true})
		}})
		n := 0
		h.after = func(*session.Event) bool { n++; return n == cut }
		err := h.run()
		if cut > 0 && err == nil {
			break
		}
		if h.after = nil; err != nil {
			if err = h.run(); errors.Is(err, runner.ErrFinished) {
				err = nil
			}
		}
		if err != nil {
			t.Fatalf("cut %d: %v", cut, err)
		}
		calls, before := make(map[string]int), make(map[string]int)
		for ev := range h.view().Events().All() {
			switch {
			case ev.Text() == "ok": // the answer of a model
				calls[string(ev.Address.Parent())]++
			case ev.Mark != nil && ev.Mark.Kind == mark.KindRaceDecided:
				maps.Copy(before, calls)
			}
		}
		for loop, n := range before {
			if n > 3 {
				t.Errorf("cut %d: %s made %d calls in its slice of 3", cut, loop, n)
			}
		}
		got := []int{before["search/one"], calls["search/one"], calls["search/two"]}
		if cut == 0 {
			whole = got
			if diff := cmp.Diff([]int{3, 3, 7}, whole); diff != "" {
				t.Error(diff)
			}
		} else if calls["search/two"] > 7 || h.state("search_winner") != "two" {
			t.Errorf("cut %d: %v, winner %v", cut, got, h.state("search_winner"))
		}
	}
}

// A race in a loop is decided anew in every iteration, from the state as it is then.
func TestRaceInALoop(t *testing.T) {
	text := "name: outer\nmax_iterations: 2\nstate: {draft: '', rate: 0}\nresult: draft\nsub_agents:\n" +
		searches[strings.Index(searches, "  - name: search"):strings.Index(searches, "  - {name: say")] +
		"  - {name: turn, set: {rate: 'state.rate - 9.0'}}\n"
	h, err := runRace(t, strings.Replace(text, "    output_key: found\n", "", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := h.result(), "ddddqqqq"; got != want { // in the second iteration deep is worse
		t.Errorf("the run hands back %q, want %q", got, want)
	}
}

// The files of the winner are those of the run.
func TestRaceKeepsTheFilesOfTheWinner(t *testing.T) {
	if err := workspace.CheckGit(t.Context()); err != nil {
		t.Skip(err)
	}
	h, err := runRace(t, `
name: all
type: sequential
workspace: {}
sub_agents:
  - name: search
    type: parallel
    race: {slices: [1 iteration, rest]}
    sub_agents:
      - name: low
        max_iterations: 2
        score: {key: points, baseline: false}
        sub_agents:
          - {name: lw, command: [sh, -c, "echo low >> found"]}
          - {name: lm, command: [sh, -c, "grep -c low found"], json: true, output_key: points}
      - name: high
        max_iterations: 2
        score: {key: points, baseline: false}
        sub_agents:
          - {name: hw, command: [sh, -c, "echo high >> found"]}
          - {name: hm, command: [sh, -c, "echo $(($(grep -c high found) * 10))"], json: true, output_key: points}
  - {name: end, command: [cat, found]}
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := h.result(), "high\nhigh"; got != want {
		t.Errorf("the files of the run have %q, want %q", got, want)
	}
}

// A loop that asks a person waits for the answer, and the race with it.
func TestRaceWaitsForAPerson(t *testing.T) {
	const before = "          - {name: ds,"
	h := newHouse(t, strings.Replace(searches, before, "          - {name: may, question: 'Go on?', ask: answer}\n"+before, 1),
		definition.BuildConfig{Root: t.TempDir()})
	for i := range 4 {
		q := h.asked()
		if winner := h.state("search_winner"); i < 2 && winner != nil {
			t.Errorf("%v has won, and deep still waits", winner)
		}
		h.answer(q, `"yes"`)
	}
	if err := h.run(); err != nil || h.result() != raceResult {
		t.Errorf("%q, %v", h.result(), err)
	}
}

// A small file does not become a large one by copies of copies.
func TestRaceOfTooManyCopies(t *testing.T) {
	var text strings.Builder
	text.WriteString("name: all\ntype: sequential\nsub_agents:\n")
	for depth := range 6 {
		text.WriteString(strings.Repeat("    ", depth) + fmt.Sprintf("  - name: l%d\n", depth) +
			strings.Repeat("    ", depth) + "    best_of: 16\n" + strings.Repeat("    ", depth) + "    score: s\n" +
			strings.Repeat("    ", depth) + "    sub_agents:\n")
	}
	text.WriteString(strings.Repeat("    ", 6) + "  - {name: a, set: {s: \"1\"}}\n")
	_, err := definition.Parse("x.yaml", []byte(text.String()), definition.Options{})
	if err == nil || !strings.Contains(err.Error(), "more than 5000 agents in loops that run side by side") {
		t.Errorf("the error is %.300v", err)
	}
}

// The keys of the loops have the shapes of the keys that they stand for, in the loops and behind the race.
func TestRaceKeepsShapes(t *testing.T) {
	const text = `
name: all
type: sequential
state: {n: 1}
shapes: {word: {pattern: "[a-z]+"}}
sub_agents:
  - name: search
    type: parallel
    race: true
    sub_agents:
      - {name: a, score: n, sub_agents: [{name: as, set: {n: "2", word: "'x'"}}, {name: ac, command: [echo, "{{n}}", "{{word}}"]}]}
      - {name: b, score: n, sub_agents: [{name: bs, set: {n: "3", word: "'y'"}}, {name: bc, command: [echo, "{{n}}", "{{word}}"]}]}
  - {name: end, command: [echo, "{{n}}", "{{word}}"]}
`
	h, err := runRace(t, text, nil)
	if err != nil || h.result() != "3 y" {
		t.Errorf("%q, %v", h.result(), err)
	}
}

// What a copy of a loop does on a plateau names the agents and the keys of the copy.
func TestBestOfALoopWithAPlateau(t *testing.T) {
	def := parse(t, `
name: all
type: sequential
model: scripted/x
sub_agents:
  - name: refine
    best_of: 2
    score: {key: points, min_delta: 1}
    on_plateau: [{instructions: "Not as in {{best.draft}}.", steps: [writer]}, fresh]
    sub_agents:
      - {name: writer, instructions: "Write better than {{draft}}.", output_key: draft}
      - {name: rate, set: {points: "double(size(state.draft))"}}
`)
	for i, loop := range def.Root.SubAgents[0].SubAgents {
		leg := loop.Loop.OnPlateau[0]
		if want := fmt.Sprintf("writer_%d", i+1); leg.Steps[0] != want {
			t.Errorf("copy %d: the steps are %q, want %s", i+1, leg.Steps, want)
		}
		if want := fmt.Sprintf("Not as in {{best.draft_%d}}.", i+1); leg.Instructions != want {
			t.Errorf("copy %d: %q, want %q", i+1, leg.Instructions, want)
		}
	}
}
