// SPDX-License-Identifier: Apache-2.0

package eval_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/internal/eval"
	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/internal/eval/report"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/supervisor"
)

// oracle is a model that answers yes with the probability in the question. With new instructions, the odds are 5.75 times as high,
// which is 0.2 more on average for the questions of [questions].
type oracle struct {
	mu   sync.Mutex
	dice *rand.Rand
	n    int
}

func (o *oracle) Name() string { return "openai/oracle" }

func (o *oracle) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		var p float64
		if _, err := fmt.Sscan(req.Contents[len(req.Contents)-1].Parts[0].Text, &p); err != nil {
			yield(nil, err)
			return
		}
		if strings.Contains(req.Config.SystemInstruction.Parts[0].Text, "new") {
			p = 5.75 * p / (1 + 4.75*p)
		}
		o.mu.Lock()
		o.n++
		answer := "no"
		if o.dice.Float64() < p {
			answer = "yes"
		}
		o.mu.Unlock()
		yield(&model.LLMResponse{Content: genai.NewContentFromText(answer, genai.RoleModel),
			UsageMetadata: &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 100, TotalTokenCount: 100}}, nil)
	}
}

// withOracle is a store whose agents ask an oracle.
func withOracle(t *testing.T, seed uint64) (*bench, *oracle) {
	t.Helper()
	o := &oracle{dice: rand.New(rand.NewPCG(seed, 1))}
	service := session.InMemoryService()
	env := program.Env{Model: func(context.Context, string) (model.LLM, error) { return o, nil }}
	sup, err := supervisor.New(supervisor.Config{Service: service, AppName: "app", UserID: "ana", Build: program.Rebuild(env)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sup.Close(context.Background()) })
	return &bench{Config: eval.Config{Supervisor: sup, Service: service, AppName: "app", UserID: "ana", Owner: lease.Process(),
		LeaseTTL: time.Minute}}, o
}

func asking(t *testing.T, side, instructions string) eval.Version {
	return version(t, side, "name: t\nmodel: openai/oracle\ninstructions: "+instructions+"\nprices: {openai/oracle: {input: 100, output: 0}}\n")
}

// questions are cases whose answers are yes with probabilities of Beta(1.2, 0.6): most are nearly always or nearly never yes, and
// two of three on average.
func questions(dice *rand.Rand, n int) (all []check.Case) {
	for len(all) < n {
		x, y := math.Pow(dice.Float64(), 1/1.2), math.Pow(dice.Float64(), 1/0.6) // Jöhnk's method
		if 0 < x+y && x+y <= 1 {
			all = append(all, oneTurn(fmt.Sprint("c", len(all)), fmt.Sprint(x/(x+y)), "yes"))
		}
	}
	return all
}

// Of evals of a version against itself at most 6% say better or worse, also if they end early. Of those of a version that is 0.2
// better, at least three quarters say so with 21 cases and 3 runs each.
func TestVerdicts(t *testing.T) {
	longtest.WithoutRace(t)
	n := longtest.N(3, 400)
	for _, tt := range []struct {
		name, version string
		least, most   float64 // share of verdicts
	}{
		{"itself", "old", 0, longtest.N(0.4, 0.06)},
		{"an older one", "new", longtest.N(0.4, 0.75), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			verdicts := make(map[report.Verdict]int)
			for i := range n {
				b, _ := withOracle(t, uint64(i))
				set := cases.Set{Repeat: 3, Parallel: 1, Seed: uint64(i), Cases: questions(rand.New(rand.NewPCG(uint64(i), 2)), 21)}
				e := b.run(t, &eval.Plan{Set: set, StopEarly: tt.least == 0 && i%2 == 0,
					Versions: []eval.Version{asking(t, eval.SideA, tt.version), asking(t, eval.SideB, "old")}})
				verdicts[e.Report().Summary().Verdict]++
			}
			t.Log(verdicts)
			got := float64(verdicts[report.Better]) / float64(n)
			if tt.least == 0 {
				got += float64(verdicts[report.Worse]) / float64(n)
			}
			if got < tt.least || got > tt.most {
				t.Errorf("%.3f of the evals have a verdict, want from %v to %v: %v", got, tt.least, tt.most, verdicts)
			}
		})
	}
}

// A clear difference ends the eval before all cases have run, and the report has the cases of the look.
func TestStopEarly(t *testing.T) {
	b, o := withOracle(t, 1)
	set := cases.Set{Repeat: 1, Parallel: 3, Seed: 7}
	for i := range 40 {
		set.Cases = append(set.Cases, oneTurn(fmt.Sprint("c", i), "1.1", "yes"))
	}
	p := &eval.Plan{Set: set, StopEarly: true, Versions: []eval.Version{asking(t, eval.SideA, "new"), version(t, eval.SideB, "name: t\ntext: never\n")}}
	e := b.run(t, p)
	sum := e.Report().Summary()
	if e.Ended.Reason != eval.EndedEarly || sum.Verdict != report.Better || o.n > 20 || len(sum.New.Cases) != e.Ended.Cases {
		t.Errorf("%+v after %d requests: %s of %d cases", e.Ended, o.n, sum.Verdict, len(sum.New.Cases))
	}
	_, err := eval.Known(p, e.Record)
	refused(t, err, " ended early, and has not run all runs of these cases: ")
}

// The budget ends an eval after the runs that are under way. With a larger one it continues, and repeats none.
func TestBudget(t *testing.T) {
	b, o := withOracle(t, 1)
	set := cases.Set{Repeat: 4, Parallel: 2, Seed: 1, Cases: questions(rand.New(rand.NewPCG(1, 2)), 5), Budget: budget.Limits{Cost: new(0.045)}}
	p := &eval.Plan{Set: set, Versions: []eval.Version{asking(t, eval.SideA, "new")}}
	e := b.run(t, p)
	if e.Ended.Reason != eval.EndedBudget || o.n < 5 || o.n > 6 || e.Report().Summary().Verdict != report.Undecided {
		t.Errorf("%+v after %d requests", e.Ended, o.n)
	}
	more, err := eval.Open(t.Context(), b.Config, e.ID, func(p *eval.Plan) { p.Set.Budget.Cost = new(1.0) })
	if err != nil {
		t.Fatal(err)
	}
	defer more.Close()
	if w, err := more.Worst(); err != nil || w.Runs != 20-o.n {
		t.Errorf("the worst case is about %+v, %v", w, err)
	}
	if err := more.Run(t.Context()); err != nil || more.Ended.Reason != eval.EndedComplete || o.n != 20 || len(more.Scored) != 20 {
		t.Errorf("%+v after %d requests, %v", more.Ended, o.n, err)
	}
	rec, err := eval.Read(t.Context(), b.Service, "app", "ana", e.ID)
	if err != nil || *rec.Set.Budget.Cost != 1 || rec.Took <= 0 {
		t.Errorf("%+v, %v", rec, err)
	}
}

// An eval that is canceled is taken up where it was; meanwhile nobody else drives it.
func TestCanceledEvalContinues(t *testing.T) {
	b, o := withOracle(t, 1)
	set := cases.Set{Repeat: 2, Parallel: 2, Seed: 1, Cases: questions(rand.New(rand.NewPCG(1, 2)), 6)}
	p := &eval.Plan{Set: set, Versions: []eval.Version{asking(t, eval.SideA, "new")}, Hash: set.Hash()}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	b.OnScored = func(*eval.Scored) {
		if n++; n == 5 {
			cancel()
		}
	}
	e, err := eval.Start(ctx, b.Config, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Run(ctx); err == nil {
		t.Error("it has ended")
	}
	if _, err := eval.Open(t.Context(), b.Config, e.ID, nil); err == nil {
		t.Error("another process drives it too")
	}
	if old, err := eval.Interrupted(t.Context(), b.Config, p); err != nil || old != nil {
		t.Errorf("it goes on, and is called interrupted: %v, %v", old, err)
	}
	e.Close()
	if old, err := eval.Interrupted(t.Context(), b.Config, p); err != nil || old == nil || old.ID != e.ID {
		t.Errorf("the interrupted eval: %v, %v", old, err)
	}
	again, err := eval.Open(t.Context(), b.Config, e.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := again.Run(t.Context()); err != nil || len(again.Scored) != 12 || o.n != 12 {
		t.Errorf("%d results after %d requests, %v", len(again.Scored), o.n, err)
	}
}
