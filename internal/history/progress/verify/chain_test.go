// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/internal/history/progress/verify"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// nested returns loops with two iterations, each in the next one.
func nested(t *testing.T, names ...string) agent.Agent {
	t.Helper()
	root, err := agent.New(agent.Config{Name: "speak", Run: agentSays("good")})
	for _, name := range names {
		if err == nil {
			root, err = loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: name, SubAgents: []agent.Agent{root}}, MaxIterations: 2})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// problems returns the Seq of each seal that does not match, and of the last event if the run has not ended.
func problems(log []*session.Event) (at []int64) {
	v := verify.Of(slices.Values(log))
	for _, s := range v.Loops() {
		if s.Problem != "" {
			at = append(at, s.Seq)
		}
	}
	for _, s := range v.Runs() {
		if s.Problem != "" || s.Open {
			at = append(at, s.Seq)
		}
	}
	return at
}

// G9: whatever byte of whatever event changes, and wherever an event is removed, repeated or swapped with the next one, a
// seal after it does not match, and all seals before it match.
func TestChainNoticesEveryChange(t *testing.T) {
	log := endedLogOf(t, nested(t, "inner", "outer"))
	if at := problems(log); at != nil {
		t.Fatalf("the seals of events %d do not match", at)
	}
	if stop := slices.IndexFunc(log, func(ev *session.Event) bool { return ev.Mark != nil && ev.Mark.Kind == mark.KindLoopStopped }); stop < 5 {
		t.Fatalf("the first loop stops at %d", stop)
	}
	check := func(what string, i int, changed []*session.Event) {
		t.Helper()
		at := problems(changed)
		early := func(seq int64) bool { return seq < int64(i) && seq != changed[i].Seq } // a changed event may have another Seq
		if len(at) == 0 || slices.ContainsFunc(at, early) {
			t.Errorf("%s event %d: the seals of events %d do not match", what, i+1, at)
		}
	}
	for i, ev := range log {
		data, err := ev.AppendCanonical(nil)
		if err != nil {
			t.Fatal(err)
		}
		canonical, flips := slices.Clone(data), 0
		for b := i % 29; b < len(data); b += 29 {
			data[b] ^= 1
			changed := new(session.Event)
			if changed.Decode(data) == nil {
				if now, err := changed.AppendCanonical(nil); err != nil || string(now) != string(canonical) {
					check(fmt.Sprintf("byte %d of", b), i, slices.Concat(log[:i], []*session.Event{changed}, log[i+1:]))
					flips++
				}
			}
			data[b] ^= 1
		}
		if flips == 0 {
			t.Errorf("no byte of event %d was changed: %s", i+1, data)
		}
		if i == len(log)-1 {
			continue // without its last event a run has not ended: see TestRunSealsNoticeTheirOwnEnd
		}
		check("without", i, slices.Delete(slices.Clone(log), i, i+1))
		check("twice", i, slices.Insert(slices.Clone(log), i, ev))
		swapped := slices.Clone(log)
		swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
		check("swapped", i, swapped)
	}
}

// G9: of loops in parallel branches, events of one stand between the last event and the stop record of the other.
func TestChainOfParallelLoops(t *testing.T) {
	var loops []agent.Agent
	for i := range 8 {
		name := fmt.Sprint("speak", i)
		speak, err := agent.New(agent.Config{Name: name, Run: agentSays(name)})
		if err != nil {
			t.Fatal(err)
		}
		one, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: fmt.Sprint("loop", i), SubAgents: []agent.Agent{speak}}, MaxIterations: 3})
		if err != nil {
			t.Fatal(err)
		}
		loops = append(loops, one)
	}
	all, err := parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "all", SubAgents: loops}})
	if err != nil {
		t.Fatal(err)
	}
	log := endedLogOf(t, all)
	if at := problems(log); at != nil {
		t.Errorf("the seals of events %d do not match", at)
	}
	if got := len(verify.Of(slices.Values(log)).Loops()); got != 16 {
		t.Errorf("%d stop records", got)
	}
}

// G9: a store may have an event that is not what the view has shown, because a consumer changes the events that it gets. The
// seals are those of the stored events.
func TestChainOfEventsThatTheConsumerChanges(t *testing.T) {
	root := nested(t, "loop")
	svc, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "runs.db"), sqlite.Config{Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	defer svc.Close()
	r, err := runner.New(runner.Config{AppName: "a", Agent: root, SessionService: svc, AutoCreateSession: true, Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	for ev, err := range r.Run(t.Context(), "u", "s", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			t.Fatal(err)
		}
		ev.CustomMetadata = map[string]any{"seen": true}
	}
	got, err := svc.Get(t.Context(), &session.GetRequest{AppName: "a", UserID: "u", SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	log := slices.Collect(session.ViewOf(got.Session).Log().All())
	if at := problems(log); at != nil || len(verify.Of(slices.Values(log)).Loops()) != 1 {
		t.Errorf("the seals of events %d do not match", at)
	}
}

// G9: a run that is resumed after another run of its session has the events of both in its chain.
func TestChainOfARunThatIsResumedAfterAnother(t *testing.T) {
	svc := session.InMemoryService()
	r, err := runner.New(runner.Config{AppName: "a", Agent: nested(t, "loop"), SessionService: svc, AutoCreateSession: true, Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	id := ""
	for _, events := range []func() iter.Seq2[*session.Event, error]{
		func() iter.Seq2[*session.Event, error] {
			return r.Run(t.Context(), "u", "s", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{})
		},
		func() iter.Seq2[*session.Event, error] {
			return r.Run(t.Context(), "u", "s", genai.NewContentFromText("again", genai.RoleUser), agent.RunConfig{})
		},
		func() iter.Seq2[*session.Event, error] { return r.Resume(t.Context(), "u", "s", id, agent.RunConfig{}) },
	} {
		for ev, err := range events() {
			if err != nil {
				t.Fatal(err)
			}
			if id == "" && ev.Text() == "good" {
				id = ev.InvocationID
				break
			}
		}
	}
	got, err := svc.Get(t.Context(), &session.GetRequest{AppName: "a", UserID: "u", SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	log := slices.Collect(session.ViewOf(got.Session).Log().All())
	loops := verify.Of(slices.Values(log)).Loops()
	if at := problems(log); at != nil || len(loops) != 2 || log[loops[1].Seq-1].InvocationID != id {
		t.Errorf("the seals of events %d do not match: %+v", at, loops)
	}
}
