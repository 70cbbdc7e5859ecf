// SPDX-License-Identifier: Apache-2.0

//go:build linux

package command

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// An eval whose process is killed again and again comes to the verdict of one that nobody disturbs. No case-run is begun or
// scored twice, and no judge is asked twice.
func TestKilledEvalKeepsItsVerdict(t *testing.T) {
	longtest.WithoutRace(t)
	cases, repeat, kills := longtest.N(8, 40), longtest.N(1, 3), longtest.N(4, 50)
	known := adopt(t)
	k := newAttack(t, "refrain", t.TempDir(), *seed)
	k.known = known
	k.evalFiles(cases)
	args := []string{"eval", "new.yaml", "--cases", "cases.yaml", "--against", "old.yaml", "--repeat", fmt.Sprint(repeat), "--json", "--undecided-ok"}
	whole := k.evalReport(k.do(args...), "")
	began := time.Now()
	p, id, killed := k.killedEval(append(args, "--new"), whole.Eval, kills, longtest.N(120, 400), func(*process) {})
	got := k.evalReport(p, id)
	t.Logf("%d kills, %s: %s %.2f", killed, time.Since(began).Round(time.Second), got.Verdict, got.New.Passed.Mean)
	if killed < kills/2 {
		t.Errorf("only %d of %d kills", killed, kills)
	}
	if got.Verdict != whole.Verdict || got.New.Passed != whole.New.Passed || got.Old.Passed != whole.Old.Passed {
		t.Errorf("killed: %+v\nwhole: %+v", got, whole)
	}
	k.onceEach(id, 2*cases*repeat)
}

// killedEval starts an eval and continues it until it is over. Its process is killed so many times, each within a time in milliseconds; ended
// gets each process. It returns the last one, the ID of the eval, which is not that of other, and how often it was killed.
func (k *attack) killedEval(args []string, other string, kills, within int, ended func(*process)) (p *process, id string, killed int) {
	k.Helper()
	p = k.start(args...)
	for {
		if killed < kills {
			select {
			case <-time.After(time.Duration(k.dice.IntN(within)) * time.Millisecond):
				_ = p.Process.Kill()
				killed++
			case <-p.ended:
			}
		}
		k.end(p)
		ended(p)
		if id == "" {
			if id = k.evalID(other); id == "" { // it was killed before it began
				p = k.start(args...)
				continue
			}
		}
		if p.code() >= 0 {
			return p, id, killed
		}
		p = k.start("eval", "resume", id, "--json", "--undecided-ok")
	}
}

// evalFiles writes two versions and cases, some of which each version fails.
func (k *attack) evalFiles(n int) {
	k.Helper()
	var all strings.Builder
	all.WriteString("judge: scripted/judge.script\nchecks: [{equals: }, {rubric: [It is an answer.]}, pairwise]\ncases:\n")
	for i := range n {
		fmt.Fprintf(&all, "  - {id: c%d, input: %q, expected: yes}\n", i, []string{"ab", "a", "a", "a"}[i%4])
	}
	dice := rand.New(rand.NewPCG(1, 2))
	version := func(knows string) string {
		return fmt.Sprintf(`name: t
type: sequential
sub_agents:
  - {name: think, command: [sleep, "0.0%d"]}
  - {name: work, command: [sh, -c, 'read x; case $x in *%s*) echo yes;; *) echo no;; esac'], stdin: "{{user_input}}\n"}
`, 1+dice.IntN(3), knows)
	}
	for name, text := range map[string]string{"cases.yaml": all.String(), "new.yaml": version("a"), "old.yaml": version("b"),
		"judge.script": `answers:
  - {match_request: "Criterion:", text: '{"reason": "so", "answer": "first"}', delay: 20ms}
  - {text: '{"reason": "so", "answer": "yes"}', delay: 20ms}
repeat_last: true
`} {
		if err := os.WriteFile(filepath.Join(k.dir, name), []byte(text), 0o600); err != nil {
			k.Fatal(err)
		}
	}
}

// evalReport is what the report of an eval has of a version.
type evalReport struct {
	Eval, Verdict, Reason string
	New, Old              struct {
		Runs, Errors int
		Cost         float64
		Passed       struct{ Mean float64 }
	}
}

func (k *attack) evalReport(p *process, id string) (r evalReport) {
	k.Helper()
	text := p.stdout.Bytes()
	if len(text) == 0 { // the process was killed between the end of the eval and its report
		text = k.do("eval", "show", id, "--json", "--undecided-ok").stdout.Bytes()
	}
	if err := json.Unmarshal(text, &r); err != nil {
		k.Fatalf("%q: %v\n%s%s", p.args, err, text, &p.stderr)
	}
	return r
}

// evalID returns the ID of the newest eval, unless it is another one.
func (k *attack) evalID(other string) string {
	k.Helper()
	p := k.do("eval", "show", "last", "--json", "--undecided-ok")
	var r evalReport
	if json.Unmarshal(p.stdout.Bytes(), &r) != nil || r.Eval == other {
		return ""
	}
	return r.Eval
}

// onceEach reports a case-run of an eval that has begun or was scored more than once, or not at all.
func (k *attack) onceEach(id string, want int) {
	k.Helper()
	store, closeStore := k.open()
	defer closeStore()
	events := func(app, id string) *session.View {
		got, err := store.Get(k.Context(), &session.GetRequest{AppName: app, UserID: "user", SessionID: id})
		if err != nil {
			k.Fatal(err)
		}
		return session.ViewOf(got.Session)
	}
	scored, pairs := make(map[string]int), make(map[string]int)
	for ev := range events("refrain.eval", id).Log().All() {
		if ev.Mark != nil && ev.Mark.Kind == "case_scored" {
			var s struct{ Run, Error string }
			if err := ev.Mark.Decode(&s); err != nil || s.Error != "" {
				k.Errorf("%+v, %v", s, err)
			}
			scored[s.Run]++
		}
		if ev.Mark != nil && ev.Mark.Kind == "pair_compared" {
			var pair struct {
				Case string
				N    int
			}
			if err := ev.Mark.Decode(&pair); err != nil {
				k.Error(err)
			}
			pairs[fmt.Sprint(pair.Case, ".", pair.N)]++
		}
	}
	for pair, n := range pairs {
		if n != 1 {
			k.Errorf("pair %s was compared %d times", pair, n)
		}
	}
	if len(pairs) != want/2 {
		k.Errorf("%d pairs are compared, want %d", len(pairs), want/2)
	}
	k.votesOnce(store, id+".")
	if len(scored) != want {
		k.Errorf("%d case-runs are scored, want %d", len(scored), want)
	}
	for run, n := range scored {
		begun := 0
		for range events("refrain", run).Log().OutlineByKind(mark.KindRunStarted) {
			begun++
		}
		if n != 1 || begun != 1 {
			k.Errorf("case-run %s was begun %d times and scored %d times", run, begun, n)
		}
	}
}

// votesOnce reports a vote of a judge that was given more than once.
func (k *attack) votesOnce(store session.Service, prefix string) {
	k.Helper()
	all, err := store.List(k.Context(), &session.ListRequest{AppName: "refrain", UserID: "user", Brief: true})
	if err != nil {
		k.Fatal(err)
	}
	judges := 0
	for _, s := range all.Sessions {
		if !strings.HasPrefix(s.ID(), prefix) || !strings.Contains(s.ID(), ".judge-") {
			continue
		}
		judges++
		got, err := store.Get(k.Context(), &session.GetRequest{AppName: "refrain", UserID: "user", SessionID: s.ID()})
		if err != nil {
			k.Fatal(err)
		}
		given := make(map[session.Address]int)
		for ev := range session.ViewOf(got.Session).Log().All() {
			if _, votes := ev.Actions.StateDelta[ev.Address.Agent()]; votes && ev.Mark == nil {
				given[ev.Address]++
			}
		}
		for at, n := range given {
			if n != 1 {
				k.Errorf("%s: %s was given %d times", s.ID(), at, n)
			}
		}
		if len(given) == 0 {
			k.Errorf("%s has no votes", s.ID())
		}
	}
	if judges == 0 {
		k.Error("there are no judges")
	}
}

// An eval that is killed again and again costs no more than its budget and what it has said before that its last runs may exceed
// it by, and all that the model's server has sold is in its cost.
func TestKilledEvalKeepsItsBudget(t *testing.T) {
	longtest.WithoutRace(t)
	cases, kills := longtest.N(4, 40), longtest.N(2, 50)
	known := adopt(t)
	sells := &seller{slow: time.Duration(longtest.N(20, 150)) * time.Millisecond}
	srv := httptest.NewServer(sells)
	defer srv.Close()
	k := newAttack(t, "refrain", t.TempDir(), *seed)
	k.known, k.env = known, []string{"OPENAI_BASE_URL=" + srv.URL + "/v1", "OPENAI_API_KEY=k"}
	const version = `name: t
max_iterations: 1
model: openai/m
prices: {openai/m: {input: 0, output: 300}} # what an answer that was cut off has cost is then known: all of max_tokens
budget: {calls: 1, cost: 0.04}
sub_agents:
  - {name: work, instructions: Answer., max_tokens: 50, can_exit_loop: false}
`
	var set strings.Builder
	set.WriteString("checks: [completed]\ncases:\n")
	for i := range cases {
		fmt.Fprintf(&set, "  - {id: c%d, input: a}\n", i)
	}
	for name, text := range map[string]string{"new.yaml": version, "old.yaml": version, "cases.yaml": set.String()} {
		if err := os.WriteFile(filepath.Join(k.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const each = 50 * 300. / 1e6
	limit := float64(2*3*cases) * each * 0.7 // of what all runs cost if nobody kills them
	args := []string{"eval", "new.yaml", "--cases", "cases.yaml", "--against", "old.yaml", "--budget-cost", fmt.Sprintf("%.3f", limit), "--json", "--undecided-ok"}
	budget := regexp.MustCompile(`The budget is [0-9.]+\. The last 4 runs may exceed it by ([0-9.]+)\.\n`)
	over := 0.0
	p, id, killed := k.killedEval(args, "", kills, longtest.N(120, 300), func(p *process) {
		if m := budget.FindStringSubmatch(p.stderr.String()); m != nil && over == 0 {
			over, _ = strconv.ParseFloat(m[1], 64)
		}
	})
	got := k.evalReport(p, id)
	cost := got.New.Cost + got.Old.Cost
	sells.mu.Lock()
	sold := float64(sells.requests) * each
	sells.mu.Unlock()
	t.Logf("%d kills: cost %.3f, sold for %.3f, of %.3f and %.3f at most: %s", killed, cost, sold, limit, over, got.Reason)
	if over <= 0 || cost > limit+over || cost < sold-1e-9 || got.Reason != "the budget is used up" {
		t.Errorf("%+v", got)
	}
}
