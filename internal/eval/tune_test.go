// SPDX-License-Identifier: Apache-2.0

package eval_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain"
	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/eval"
	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/eval/report"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
)

// tune is a run of the loop that refrain init tune writes. Its evals take place in this process, with an oracle as the model; the proposals
// are those of propose.
type tune struct {
	*testing.T
	*bench
	set     cases.Set
	propose func(iteration int) string
	seen    strings.Builder // what the proposing agent is shown

	iteration int

	verdict report.Verdict // of the last eval; empty if it had nothing to compare
}

func (u *tune) run() *refrain.Result {
	u.Helper()
	text, err := os.ReadFile("../../command/internal/writing/templates/tune/tune.yaml")
	if err != nil {
		u.Fatal(err)
	}
	def, err := definition.Parse("tune.yaml", bytes.Replace(text, []byte("scripted/script.yaml"), []byte("openai/x"), 1), definition.Options{})
	if err != nil {
		u.Fatal(err)
	}
	steps := map[string]func(agent.InvocationContext) map[string]any{"propose": u.proposal, "train": u.train, "verdict": u.judge}
	root, err := def.Build(u.Context(), definition.BuildConfig{Model: noModel, StandIns: definition.StandIns{Agent: func(a *definition.Agent) (agent.Agent, error) {
		step := steps[a.Name]
		if step == nil {
			return nil, nil
		}
		return agent.New(agent.Config{Name: a.Name, Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				yield(&session.Event{Actions: session.EventActions{StateDelta: step(ctx)}}, nil)
			}
		}})
	}}})
	if err != nil {
		u.Fatal(err)
	}
	res, err := refrain.Run(u.Context(), root, "go")
	if err != nil {
		u.Fatal(err)
	}
	return res
}

// noModel stands for the model of the proposing agent, which is not asked.
func noModel(context.Context, string) (model.LLM, error) { return new(oracle), nil }

func (u *tune) proposal(ctx agent.InvocationContext) map[string]any {
	shown, _ := drive.At(ctx).Lookup("train")
	fmt.Fprintln(&u.seen, shown)
	u.iteration++
	return map[string]any{"proposal": u.propose(u.iteration)}
}

// eval runs one part of the cases with the proposal under a key.
func (u *tune) eval(ctx agent.InvocationContext, key, part string, repeat int) *report.Summary {
	u.Helper()
	proposed, _ := drive.At(ctx).Lookup(key)
	p := new(program.Program)
	def, err := p.ReadOwn("t.yaml", program.Text("name: t\nmodel: openai/oracle\ninstructions: old\n"))
	if err != nil {
		u.Fatal(err)
	}
	old, err := eval.NewVersion("t.yaml", p, def)
	if err != nil {
		u.Fatal(err)
	}
	text, _ := proposed.(string)
	def, _, patch, err := eval.Change(p, map[string]string{"t.instructions": text})
	if err != nil {
		u.Fatal(err)
	}
	now, err := eval.NewVersion("t.yaml", p, def)
	if err != nil {
		u.Fatal(err)
	}
	plan := &eval.Plan{Set: u.set, Versions: []eval.Version{now}}
	if err := eval.Part(&plan.Set, part, 0.3); err != nil {
		u.Fatal(err)
	}
	if plan.Set.Repeat = repeat; part == eval.PartHidden {
		if patch == "" {
			return nil
		}
		old.Side = eval.SideB
		plan.Versions = append(plan.Versions, old)
	}
	return u.bench.run(u.T, plan).Report().Summary()
}

func (u *tune) train(ctx agent.InvocationContext) map[string]any {
	var b bytes.Buffer
	var v any
	if err := u.eval(ctx, "proposal", eval.PartTrain, 1).WriteJSON(&b); err != nil || json.Unmarshal(b.Bytes(), &v) != nil {
		u.Fatal(err, b.String())
	}
	return map[string]any{"train": v}
}

func (u *tune) judge(ctx agent.InvocationContext) map[string]any {
	if s := u.eval(ctx, "best.proposal", eval.PartHidden, 3); s != nil {
		u.verdict = s.Verdict
	}
	return map[string]any{"loop_output": string(u.verdict)}
}

// Of tunes whose proposals change nothing at most 5 in 100 end with the verdict better, whatever chance has shown on the training cases. A
// proposal that helps is found. Whoever proposes sees no hidden case.
func TestTune(t *testing.T) {
	longtest.WithoutRace(t)
	for _, tt := range []struct {
		name    string
		n, size int     // tunes, and cases of each
		helps   int     // the iteration whose proposal is better; 0 is none
		least   float64 // share of tunes that find something better
		most    float64
		changed int // tunes that hand back a change at least: the training cases mislead most of those in which nothing helps
	}{
		{"nothing helps", longtest.N(1, 100), longtest.N(20, 30), 0, 0, longtest.N(1.0, 0.05), longtest.N(0, 50)},
		{"the second helps", longtest.N(1, 20), longtest.N(20, 70), 2, longtest.N(0.0, 0.6), 1, longtest.N(0, 15)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			better, changed := 0, 0
			for i := range tt.n {
				b, _ := withOracle(t, uint64(i))
				u := &tune{T: t, bench: b, propose: func(k int) string {
					if k == tt.helps {
						return "new"
					}
					return fmt.Sprint("text ", k)
				}}
				u.set = cases.Set{Parallel: 1, Seed: uint64(i), Cases: questions(rand.New(rand.NewPCG(uint64(i), 2)), tt.size)}
				res := u.run()
				if u.verdict == report.Better {
					better++
				}
				if u.verdict != "" {
					changed++
				}
				hidden := u.set
				if err := eval.Part(&hidden, eval.PartHidden, 0.3); err != nil {
					t.Fatal(err)
				}
				for _, c := range hidden.Cases {
					if strings.Contains(u.seen.String(), c.Turns[0].Input) {
						t.Errorf("tune %d: the proposing agent sees the hidden case %s", i, c.ID)
					}
				}
				if i == 0 && (res.Stop == nil || !strings.Contains(u.seen.String(), "old")) {
					t.Errorf("the tune has stopped for %v; the proposing agent was shown %s", res.Stop, u.seen.String())
				}
			}
			t.Logf("%d of %d tunes are better, %d have changed something", better, tt.n, changed)
			if got := float64(better) / float64(tt.n); got < tt.least || got > tt.most || changed < tt.changed {
				t.Errorf("%d of %d tunes are better, want a share from %v to %v; %d have changed something", better, tt.n, tt.least, tt.most, changed)
			}
		})
	}
}
