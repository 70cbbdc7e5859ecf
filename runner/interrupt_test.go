// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/internal/history/progress/verify"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

var errStop = errors.New("that will do")

// interrupted runs the tree, or resumes the run of that ID, until so many events
// have come. Then it cancels, or leaves.
func (p *process) interrupted(id string, after int, cancels bool) (whole bool, err error) {
	p.Helper()
	ctx, cancel := context.WithCancelCause(p.Context())
	defer cancel(nil)
	seq := p.Run(ctx, "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{})
	if id != "" {
		seq = p.Resume(ctx, "ana", "s1", id, agent.RunConfig{})
	}
	for ev, e := range seq {
		if e != nil {
			return ctx.Err() == nil, e
		}
		p.id = ev.InvocationID
		if after--; after == 0 {
			if !cancels {
				return false, nil
			}
			cancel(errStop)
		}
	}
	return true, nil
}

// LOOP 30: a run that was canceled, or whose consumer left, however often, comes
// to what it comes to without that.
func TestResumeAfterInterruptions(t *testing.T) {
	for seed := range seeds(t) {
		initial := map[string]any{"k0": "before", "text": "first"}
		p := startProcess(t, seed, crashed(t, initial, nil, 0))
		want := p.outcome(p.first())
		if len(p.log()) > 90 {
			continue
		}
		for round := range 4 {
			dice := rand.New(rand.NewPCG(seed, uint64(round)))
			store := crashed(t, initial, nil, 0)
			id, cancels := "", round%2 == 0
			whole, err := false, error(nil)
			for times := 0; !whole && times < 20; times++ {
				p := startProcess(t, seed, store)
				p.id = id
				whole, err = p.interrupted(id, 1+dice.IntN(len(p.log())+12), cancels)
				id = p.id
				whole = whole || err != nil && !errors.Is(err, errStop)
			}
			p := startProcess(t, seed, store)
			if !whole {
				_, err = p.again(id)
			}
			got := p.outcome(err)
			if errors.Is(err, runner.ErrFinished) { // it was the last event that we have seen
				got.Err = want.Err
			}
			if diff := cmp.Diff(want, got, times, usage, loggedEvents); diff != "" {
				t.Fatalf("seed %d, canceled %t (-whole +interrupted):\n%s\n%s", seed, cancels, diff, lines(brief(p.log())))
			}
			got.usedNoLess(t, want)
			if p.checkFold(initial); t.Failed() {
				t.Fatalf("seed %d, round %d", seed, round)
			}
		}
	}
}

// usage leaves out what a loop used: a call that was cut off counts too.
var usage = cmpopts.IgnoreFields(loop.StopRecord{}, "Usage")

// usedNoLess demands that each loop has used what it did in another run, or more.
func (o *outcome) usedNoLess(t testing.TB, other outcome) {
	t.Helper()
	for at, stops := range other.Stops {
		for i, rec := range stops {
			if got := o.Stops[at][i].Usage; got.Calls < rec.Usage.Calls || got.InputTokens < rec.Usage.InputTokens || got.OutputTokens < rec.Usage.OutputTokens {
				t.Errorf("%s has used %+v, less than %+v", at, got, rec.Usage)
			}
		}
	}
}

func lines(all []string) (text string) {
	for _, l := range all {
		text += fmt.Sprintln(l)
	}
	return text
}

// LOOP 30: a loop that is canceled as it comes again to its stop record says something else than the record,
// and its hash is that of the log, which has the record too.
func TestSealOfALoopThatIsCanceledAtItsRecord(t *testing.T) {
	svc := session.InMemoryService()
	run := func(resume bool, during func(*session.Event), onStop func()) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		stop := func(f func()) {
			if f != nil {
				f()
				cancel(errStop)
			}
		}
		root, err := loopagent.New(loopagent.Config{
			AgentConfig:   agent.Config{Name: "l", SubAgents: []agent.Agent{speaker(t, "a", "one")}},
			MaxIterations: 1, OutputKey: "out",
			OnStop: func(agent.InvocationContext, *loop.StopRecord) { stop(onStop) },
		})
		if err != nil {
			t.Fatal(err)
		}
		r := newRunner(t, durable(root, svc))
		seq := ask(ctx, r, "go")
		if resume {
			seq = r.Resume(ctx, "ana", "s1", "", agent.RunConfig{})
		}
		for ev, err := range seq {
			if err == nil && during != nil && ev.Mark != nil && ev.Mark.Kind == mark.KindLoopStopped {
				stop(func() { during(ev) })
			}
		}
	}
	run(false, func(*session.Event) {}, nil)
	run(true, nil, func() {})
	run(true, nil, nil)

	log := slices.Collect(session.ViewOf(get(t, svc)).Log().All())
	seals := verify.Of(slices.Values(log)).Loops()
	if len(seals) != 2 {
		t.Errorf("%d stop records, want that of the loop and that of the canceled one", len(seals))
	}
	for _, seal := range seals {
		if seal.Problem != "" {
			t.Errorf("the stop record %d: %s", seal.Seq, seal.Problem)
		}
	}
}

// A canceled run says so in its log, and its steps are not taken for finished.
func TestCanceledStepsAreNotFinished(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	svc := session.InMemoryService()
	root := sequence(t, "root", speaker(t, "a", "one"), custom(t, "b", func(ctx agent.InvocationContext, yield yield) {
		cancel(errStop)
		yield(nil, ctx.Err())
	}))
	r := newRunner(t, durable(root, svc))
	if _, err := collect(t, ask(ctx, r, "go")); !errors.Is(err, errStop) {
		t.Fatalf("got error %v, want the cause of the cancellation", err)
	}
	ended := make(map[session.Address]bool)
	for ev := range get(t, svc).Events().All() {
		if ev.Mark != nil && ev.Mark.Kind == mark.KindStepFinished {
			ended[ev.Address] = !decode[mark.StepFinished](t, ev.Mark).Canceled
		}
	}
	want := map[session.Address]bool{"root": false, "root/a": true, "root/b": false}
	if diff := cmp.Diff(want, ended); diff != "" {
		t.Errorf("steps that came to their end (-want +got):\n%s", diff)
	}
}
