// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/humanagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/sequentialagent"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// stood is a run whose log a view follows, as somebody does who looks on.
type stood struct {
	t     *testing.T
	sup   *supervisor.Supervisor
	live  progress.Live
	fold  progress.Fold
	log   []*session.Event
	lines []string
}

// newStood starts a run that writes, asks a person, and tells.
func newStood(t *testing.T) (*stood, *supervisor.Run) {
	t.Helper()
	build := func(context.Context, mark.RunStarted) (*supervisor.Program, error) {
		says := func(name string) agent.Agent { return timed(name, 0, func(int, *session.Event) error { return nil }) }
		inner := must(sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{Name: "chapter", SubAgents: []agent.Agent{
			says("write"), must(humanagent.New(humanagent.Config{Name: "editor", Text: "Shall it go out?"})),
		}}}))
		root, err := loopagent.New(loopagent.Config{
			AgentConfig:   agent.Config{Name: "book", SubAgents: []agent.Agent{inner, says("tell"), says("publish")}},
			MaxIterations: 1, Rules: loop.Plan{Steps: []loop.Step{{Name: "publish", Finalizer: true}}},
		})
		return &supervisor.Program{Agent: root}, err
	}
	s := &stood{t: t, fold: progress.Fold{Owned: true}}
	var err error
	s.sup, err = supervisor.New(supervisor.Config{
		Service: session.InMemoryService(), AppName: "a", UserID: "u", Build: build, Leases: supervisor.Leases{Owner: "ana"},
		OnEvent: func(_ string, ev *session.Event) {
			s.log = append(s.log, ev)
			s.live.Add(ev)
			s.lines = append(s.lines, s.fold.Add(ev)...)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.sup.Close(context.Background()) })
	run, err := s.sup.Start(t.Context(), supervisor.Request{SessionID: "s", Message: genai.NewContentFromText("go", genai.RoleUser)})
	if err != nil {
		t.Fatal(err)
	}
	return s, run
}

func (s *stood) wait(run *supervisor.Run) supervisor.Ending {
	s.t.Helper()
	end, err := run.Wait(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return end
}

// stands fails if the tree is another one, by status, whether it grew event by event
// or is read from the log at once.
func (s *stood) stands(what string, want ...string) {
	s.t.Helper()
	var again progress.Live
	for _, ev := range s.log {
		again.Add(ev)
	}
	for _, live := range []*progress.Live{&s.live, &again} {
		var got []string
		for _, line := range sketch(live.Tree()) {
			words := strings.Fields(line)
			got = append(got, words[0]+" "+words[1])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			s.t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

// A run that waits for a person is neither canceled nor failed, and says what it is
// asked; when it goes on, its tree is as if it had never stopped. LOOP 32, M13
func TestTreeOfARunThatWaits(t *testing.T) {
	s, run := newStood(t)
	if end := s.wait(run); !errors.Is(end.Err, agent.ErrWaiting) {
		t.Fatal(end.Err)
	}
	waits := []string{"book waiting", "1 waiting", "chapter waiting", "write completed", "editor waiting", "tell pending", "publish pending"}
	s.stands("it waits", waits...)
	tree := s.live.Tree()
	editor := tree.Root.Loop.Iterations[0].Steps[0].Steps[1]
	if !tree.Paused || editor.Asks != "Shall it go out?" || tree.Root.Loop.Stop != nil || s.fold.Stop() != nil {
		t.Errorf("paused %v, asks %q, stopped %v and %v", tree.Paused, editor.Asks, tree.Root.Loop.Stop, s.fold.Stop())
	}
	for _, line := range s.lines {
		t.Errorf("there is nothing to say yet, but: %s", line)
	}
	sum := progress.Summarize(s.log)
	if sum.Status != mark.RunWaiting || len(sum.Waits) != 1 || sum.Paused != "" {
		t.Errorf("summary %+v", sum)
	}

	_, err := s.sup.Answer(t.Context(), "s", mark.Answer{ID: sum.Waits[0].ID, Value: json.RawMessage("true")})
	if err != nil {
		t.Fatal(err)
	}
	got := logIn(t, s)
	s.log, s.live = got, progress.Live{}
	for _, ev := range got {
		s.live.Add(ev)
	}
	s.stands("it is answered", "book paused", "1 paused", "chapter paused", "write completed", "editor paused", "tell pending", "publish pending")

	if run, err = s.sup.Resume(t.Context(), "s", supervisor.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	if end := s.wait(run); end.Err != nil {
		t.Fatal(end.Err)
	}
	s.stands("it is over", "book completed", "1 completed", "chapter completed", "write completed", "editor completed", "tell completed", "publish completed")
	if tree := s.live.Tree(); tree.Paused || tree.Root.Loop.Stop == nil {
		t.Errorf("paused %v, stopped %v", tree.Paused, tree.Root.Loop.Stop)
	}
}

// One that is canceled while it waits is canceled, and nobody is asked any more.
func TestTreeOfARunThatIsCanceledWhileItWaits(t *testing.T) {
	s, run := newStood(t)
	s.wait(run)
	if err := s.sup.Cancel(t.Context(), "s", ""); err != nil {
		t.Fatal(err)
	}
	s.log, s.live = logIn(t, s), progress.Live{}
	for _, ev := range s.log {
		s.live.Add(ev)
	}
	s.stands("it is canceled", "book canceled", "1 canceled", "chapter canceled", "write completed", "editor canceled", "tell skipped", "publish skipped")
	tree := s.live.Tree()
	if tree.Paused || tree.Root.Loop.Stop == nil || tree.Root.Loop.Iterations[0].Steps[0].Steps[1].Asks != "" {
		t.Errorf("paused %v, stopped %v", tree.Paused, tree.Root.Loop.Stop)
	}
	if sum := progress.Summarize(s.log); sum.Status != mark.RunCanceled {
		t.Errorf("summary %+v", sum)
	}
}

// logIn is the whole log: what happens to a run that nobody drives is shown to nobody.
func logIn(t *testing.T, s *stood) []*session.Event {
	t.Helper()
	var log []*session.Event
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for ev, err := range s.sup.Watch(ctx, "s", 0) {
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, ev)
		if ev.Mark == nil {
			continue
		}
		var d mark.RunPaused
		if ev.Mark.Kind == mark.KindRunEnded || ev.Mark.Kind == mark.KindRunPaused && ev.Mark.Decode(&d) == nil && d.Reason == "answered" {
			break
		}
	}
	return log
}

// A step that a pause has kept from beginning, as it was cut off in the delay before it, is no second
// attempt when the run goes on. M9
func TestAStepThatAPauseKeptFromBeginningCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		says := func(name string) agent.Agent { return timed(name, 0, func(int, *session.Event) error { return nil }) }
		root := must(loopagent.New(loopagent.Config{
			AgentConfig:   agent.Config{Name: "book", SubAgents: []agent.Agent{says("write"), says("tell")}},
			MaxIterations: 1, Rules: loop.Plan{Steps: []loop.Step{{Name: "tell", DelayBefore: loop.Duration(time.Minute)}}},
		}))
		s := &stood{t: t}
		var err error
		s.sup, err = supervisor.New(supervisor.Config{
			Service: session.InMemoryService(), AppName: "a", UserID: "u", Leases: supervisor.Leases{Owner: "ana"},
			Build: func(context.Context, mark.RunStarted) (*supervisor.Program, error) {
				return &supervisor.Program{Agent: root}, nil
			},
			OnEvent: func(_ string, ev *session.Event) { s.live.Add(ev) },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer s.sup.Close(context.Background())
		run, err := s.sup.Start(t.Context(), supervisor.Request{SessionID: "s", Message: genai.NewContentFromText("go", genai.RoleUser)})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if err := s.sup.Pause(t.Context(), "s", ""); err != nil {
			t.Fatal(err)
		}
		if end := s.wait(run); !errors.Is(end.Err, agent.ErrPaused) {
			t.Fatal(end.Err)
		}
		if run, err = s.sup.Resume(t.Context(), "s", supervisor.ResumeOptions{}); err != nil {
			t.Fatal(err)
		}
		if end := s.wait(run); end.Err != nil {
			t.Fatal(end.Err)
		}
		if tell := s.live.Tree().Root.Loop.Iterations[0].Steps[1]; tell.Status != progress.StatusCompleted || tell.Attempt != 1 {
			t.Errorf("tell is %s in attempt %d", tell.Status, tell.Attempt)
		}
	})
}
