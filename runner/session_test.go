// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/artifact"
	remembering "github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/platform"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sessiontest"
)

// A18, C25
func TestSessionIsMadeOnlyWhenItIsMissing(t *testing.T) {
	down := errors.New("connection refused")
	for _, tt := range []struct {
		name   string
		get    error
		auto   bool
		exists bool
		want   error
		log    int // events in s1 afterwards; -1: no such session
	}{
		{"there", nil, false, true, nil, 1},
		{"there, and would be made", nil, true, true, nil, 1},
		{"missing", nil, false, false, session.ErrNotFound, -1},
		{"missing, and is made", nil, true, false, nil, 1},
		{"the store is down", down, true, false, down, -1},
		{"the store is down, but it is there", down, true, true, down, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			svc := session.InMemoryService()
			if tt.exists {
				if _, err := svc.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "s1"}); err != nil {
					t.Fatal(err)
				}
			}
			r := newRunner(t, runner.Config{
				Agent: speaker(t, "a", "one"), AutoCreateSession: tt.auto,
				SessionService: &failing{Service: svc, onGet: func() error { return tt.get }},
			})
			if _, err := collect(t, ask(t.Context(), r, "")); !errors.Is(err, tt.want) {
				t.Errorf("got error %v, want %v", err, tt.want)
			}
			resp, err := svc.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
			switch {
			case tt.log < 0:
				if !errors.Is(err, session.ErrNotFound) {
					t.Errorf("the session was made: %v", err)
				}
			case err != nil || resp.Session.Events().Len() != tt.log:
				t.Errorf("got %v, %v", resp, err)
			}
		})
	}
}

// A18, C25
func TestSessionWithoutAnIDGetsOne(t *testing.T) {
	svc := session.InMemoryService()
	var id string
	a := custom(t, "a", func(ctx agent.InvocationContext, _ yield) { id = ctx.Session().ID() })
	r := newRunner(t, runner.Config{Agent: a, SessionService: svc, AutoCreateSession: true})
	if _, err := collect(t, r.Run(t.Context(), "ana", "", nil, agent.RunConfig{})); err != nil || id == "" {
		t.Fatalf("got ID %q, error %v", id, err)
	}
	if _, err := svc.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: id}); err != nil {
		t.Error(err)
	}
}

// D15, E4, E5, C22
func TestStateAndHistoryLastFromRunToRun(t *testing.T) {
	svc := session.InMemoryService()
	a := custom(t, "a", func(ctx agent.InvocationContext, yield yield) {
		n, _ := ctx.Session().State().Get("n")
		count, _ := n.(float64)
		if _, err := ctx.Session().State().Get("temp:n"); err == nil {
			t.Error("a temp: key outlived its invocation")
		}
		ev := says(fmt.Sprintf("%v times, %d events", count, ctx.Session().Events().Len()))
		ev.Actions.StateDelta = map[string]any{"n": count + 1, "temp:n": 1}
		yield(ev, nil)
	})
	var ids []string
	r := newRunner(t, runner.Config{Agent: a, SessionService: svc, AutoCreateSession: true})
	again := ask(t.Context(), r, "Hello") // ranging again runs again
	for range 3 {
		for ev, err := range again {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, ev.InvocationID)
		}
	}
	want := []string{"user: Hello", "a: 0 times, 1 events", "user: Hello", "a: 1 times, 3 events", "user: Hello", "a: 2 times, 5 events"}
	if diff := cmp.Diff(want, stored(t, svc)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i, id := range ids {
		if !strings.HasPrefix(id, "e-") || i > 0 && id == ids[i-1] {
			t.Errorf("each run has an invocation ID of its own, got %q", ids)
		}
	}
}

// LOOP 33: of two runs in one session, in two processes, the stale one ends.
func TestStaleRunEndsWithErrConflict(t *testing.T) {
	svc := session.InMemoryService()
	process := &failing{Service: svc} // another one, that shares the store and nothing else
	other := newRunner(t, runner.Config{Agent: speaker(t, "b", "mine"), SessionService: process, AutoCreateSession: true})
	told := true
	a := custom(t, "a", func(_ agent.InvocationContext, yield yield) {
		yield(says("one"), nil)
		if _, err := collect(t, ask(t.Context(), other, "me too")); err != nil {
			t.Errorf("the run that came later, and saw everything: %v", err)
		}
		late := says("two")
		if told = yield(late, nil); late.Seq != 0 {
			t.Errorf("an event that was not stored has Seq %d", late.Seq)
		}
		yield(says("three"), nil)
	})
	said, err := collect(t, ask(t.Context(), newRunner(t, runner.Config{Agent: a, SessionService: svc, AutoCreateSession: true}), "Hello"))
	if !errors.Is(err, session.ErrConflict) {
		t.Errorf("got error %v, want ErrConflict", err)
	}
	if told {
		t.Error("the agent was told to go on")
	}
	if diff := cmp.Diff([]string{"a: one"}, said); diff != "" {
		t.Errorf("yielded (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"user: Hello", "a: one", "user: me too", "b: mine"}, stored(t, svc)); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

// E5: what cannot be stored is not shown, and ends the run.
func TestStoreThatFailsEndsTheRun(t *testing.T) {
	for _, tt := range []struct {
		text string
		said []string
		err  string
	}{
		{"Hello", []string{}, `append event by "user": boom`},
		{"one", []string{}, `append event by "a": boom`},
		{"two", []string{"a: one"}, `append event by "a": boom`},
	} {
		svc := &failing{Service: session.InMemoryService(), onAppend: func(ev *session.Event) error {
			if ev.Text() == tt.text {
				return errBoom
			}
			return nil
		}}
		r := newRunner(t, runner.Config{Agent: sequence(t, "s", speaker(t, "a", "one", "two"), speaker(t, "b", "three")), SessionService: svc,
			AutoCreateSession: true})
		said, err := collect(t, ask(t.Context(), r, "Hello"))
		if diff := cmp.Diff(tt.said, said); diff != "" {
			t.Errorf("%q fails (-want +got):\n%s", tt.text, diff)
		}
		if err == nil || !strings.HasSuffix(err.Error(), tt.err) || !errors.Is(err, errBoom) {
			t.Errorf("%q fails: got error %v, want %q", tt.text, err, tt.err)
		}
	}
}

// E6
func TestArtifactsAndMemoryAreTheSessions(t *testing.T) {
	files, mem := artifact.InMemoryService(), remembering.InMemoryService()
	a := custom(t, "a", func(ctx agent.InvocationContext, yield yield) {
		arts := ctx.Artifacts()
		one, err1 := arts.Save(ctx, "report.md", genai.NewPartFromText("# One"))
		two, err2 := arts.Save(ctx, "report.md", genai.NewPartFromText("# Two"))
		names, err3 := arts.List(ctx)
		latest, err4 := arts.Load(ctx, "report.md")
		first, err5 := arts.LoadVersion(ctx, "report.md", 1)
		if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
			yield(nil, err)
			return
		}
		if one.Version != 1 || two.Version != 2 || latest.Part.Text != "# Two" || first.Part.Text != "# One" || len(names.FileNames) != 1 {
			t.Errorf("got versions %d, %d, files %q, %q and names %q", one.Version, two.Version, latest.Part.Text, first.Part.Text, names.FileNames)
		}
		if !yield(says("the paint is green"), nil) {
			return
		}
		if err := ctx.Memory().AddSessionToMemory(ctx, ctx.Session()); err != nil {
			yield(nil, err)
		}
		found, err := ctx.Memory().SearchMemory(ctx, "green paint")
		if err != nil || len(found.Memories) != 1 {
			t.Errorf("memory: got %v, %v", found, err)
		}
	})
	r := newRunner(t, runner.Config{Agent: a, SessionService: session.InMemoryService(), ArtifactService: files, MemoryService: mem, AutoCreateSession: true})
	if _, err := collect(t, ask(t.Context(), r, "")); err != nil {
		t.Fatal(err)
	}
	got, err := files.Load(t.Context(), &artifact.LoadRequest{AppName: "app", UserID: "ana", SessionID: "s1", FileName: "report.md"})
	if err != nil || got.Part.Text != "# Two" {
		t.Errorf("in the service: %v, %v", got, err)
	}
	for user, want := range map[string]int{"ana": 1, "bob": 0} {
		if found, err := mem.SearchMemory(t.Context(), &remembering.SearchRequest{AppName: "app", UserID: user, Query: "paint"}); err != nil ||
			len(found.Memories) != want {
			t.Errorf("%s's memory: got %v, %v", user, found, err)
		}
	}
}

// E6
func TestWithoutServicesThereAreNone(t *testing.T) {
	a := custom(t, "a", func(ctx agent.InvocationContext, _ yield) {
		if ctx.Artifacts() != nil || ctx.Memory() != nil {
			t.Errorf("got %v, %v", ctx.Artifacts(), ctx.Memory())
		}
	})
	if _, err := collect(t, ask(t.Context(), newRunner(t, runner.Config{Agent: a, SessionService: session.InMemoryService(),
		AutoCreateSession: true}), "")); err != nil {
		t.Error(err)
	}
}

// A18: the service that the next tests use is a good one, but for the view.
func TestForeignServiceIsAService(t *testing.T) {
	svc := callPlugin{session.InMemoryService()}
	made, err := svc.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana"})
	if err != nil {
		t.Fatal(err)
	}
	ev := sessiontest.FullEvent()
	if err := svc.AppendEvent(t.Context(), made.Session, ev); err != nil || ev.Seq != 1 {
		t.Errorf("got Seq %d, %v", ev.Seq, err)
	}
}

// E4, E5: any service will do, whatever its sessions are made of.
func TestServiceWithSessionsOfItsOwn(t *testing.T) {
	svc := callPlugin{session.InMemoryService()}
	a := custom(t, "a", func(ctx agent.InvocationContext, yield yield) {
		for range 3 {
			n, _ := ctx.Session().State().Get("n")
			count, _ := n.(float64)
			before := ctx.Session().Events().Len()
			if !yield(sets("n", count+1), nil) {
				return
			}
			if got, _ := ctx.Session().State().Get("n"); got != count+1 {
				t.Errorf("the agent does not see its delta: %v", got)
			}
			if got := ctx.Session().Events().Len(); got != before+1 {
				t.Errorf("the agent sees %d events, want %d", got, before+1)
			}
		}
	})
	r := newRunner(t, runner.Config{Agent: a, SessionService: svc, AutoCreateSession: true})
	for range 2 {
		if _, err := collect(t, ask(t.Context(), r, "Hello")); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := get(t, svc).State().Get("n"); n != 6.0 {
		t.Errorf("got n = %v, %v", n, err)
	}
	if n := get(t, svc).Events().Len(); n != 8 {
		t.Errorf("got %d events, want 8", n)
	}
}

// The consumer gets an event that an agent has built by hand with an ID, a time, an invocation and a branch.
func TestEventBuiltByHandIsFilled(t *testing.T) {
	root, err := parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "root", SubAgents: []agent.Agent{
		speaker(t, "leaf", "hello")}}})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for ev, err := range ask(t.Context(), newRunner(t, runner.Config{Agent: root, SessionService: session.InMemoryService(), AutoCreateSession: true}), "go") {
		if err != nil {
			t.Fatal(err)
		}
		if ev.ID == "" || ev.Timestamp.Before(began) || ev.InvocationID == "" || ev.Branch != "root.leaf" || ev.Author != "leaf" {
			t.Errorf("got %+v", ev)
		}
	}
}

// The user's event comes first, with the change of the state.
func TestUserMessageIsYielded(t *testing.T) {
	r := newRunner(t, runner.Config{Agent: speaker(t, "root", "hello"), SessionService: session.InMemoryService(), AutoCreateSession: true})
	delta := map[string]any{"draft": "a poem"}
	for _, tt := range []struct {
		msg  string
		want []string
	}{{"go", []string{"user: go", "root: hello"}}, {"", []string{"root: hello"}}} {
		var said []string
		for ev, err := range ask(t.Context(), r, tt.msg, runner.WithYieldUserMessage(), runner.WithStateDelta(delta)) {
			if err != nil {
				t.Fatal(err)
			}
			if said = append(said, line(ev)); ev.Author == "user" && (ev.ID == "" || !reflect.DeepEqual(ev.Actions.StateDelta, delta)) {
				t.Errorf("the user's event is %+v", ev)
			}
		}
		if diff := cmp.Diff(tt.want, said); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	for range ask(t.Context(), r, "go", runner.WithYieldUserMessage()) {
		break // the run does not begin
	}
}

// A provider in the context makes the IDs of the invocation and of the session.
func TestProvidersMakeTheIDsOfARun(t *testing.T) {
	ctx := platform.WithUUIDProvider(t.Context(), func() string { return "one" })
	r := newRunner(t, runner.Config{Agent: speaker(t, "root", "hello"), SessionService: session.InMemoryService(), AutoCreateSession: true})
	for ev, err := range r.Run(ctx, "ana", "", nil, agent.RunConfig{}) {
		if err != nil || ev.InvocationID != "e-one" {
			t.Errorf("got %v, error %v", ev, err)
		}
	}
	if _, err := collect(t, r.Run(ctx, "ana", "one", nil, agent.RunConfig{})); err != nil {
		t.Error(err)
	}
}
