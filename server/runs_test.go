// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/server"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// B2: a run is started, listed and told about; filters and pages choose runs.
func TestRunsAreListed(t *testing.T) {
	s := open(t, map[string]string{
		"counting.yaml": counting, "broken.yaml": "name: broken\nset: {x: 1 / int(state.zero)}\nstate: {zero: 0}\n",
	})
	var ids []string
	for range 5 {
		ids = append([]string{s.run(map[string]any{"definition": "counting"}).Run}, ids...)
	}
	failed := s.run(map[string]any{"definition": "broken"}).Run
	for _, id := range append(ids, failed) {
		s.wait(id)
	}
	var page struct {
		Runs []listed
		Next string
	}
	var all []string
	for next := ""; ; next = page.Next {
		page.Next = ""
		s.ok("GET", "/api/v1/runs?limit=2&definition=counting&status=completed&after="+next, nil, &page)
		for _, r := range page.Runs {
			all = append(all, r.Run)
			if r.StopReason != "max_iterations" || r.Iteration != 40 {
				t.Errorf("got %+v", r)
			}
		}
		if page.Next == "" {
			break
		}
	}
	if diff := cmp.Diff(ids, all); diff != "" {
		t.Errorf("the runs (-want +got):\n%s", diff)
	}
	s.ok("GET", "/api/v1/runs?status=failed", nil, &page)
	if len(page.Runs) != 1 || page.Runs[0].Run != failed || !strings.Contains(page.Runs[0].Error, "division by zero") {
		t.Errorf("failed have %+v", page.Runs)
	}
	got := s.ok("GET", "/api/v1/runs?q=BROK", nil, &page)
	if len(page.Runs) != 1 {
		t.Errorf("found %+v", page.Runs)
	}
	if again := s.do("GET", "/api/v1/runs?q=BROK", nil, "If-None-Match", got.header.Get("ETag")); again.status != http.StatusNotModified {
		t.Errorf("the same list again: %d", again.status)
	}
	s.refused(404, "run_not_found", "GET", "/api/v1/runs/nobody", nil)
	s.refused(400, "bad_request", "GET", "/api/v1/runs?limit=none", nil)
	s.ok("DELETE", "/api/v1/runs/"+failed, nil, nil)
	s.refused(404, "run_not_found", "GET", "/api/v1/runs/"+failed+"/state", nil)
}

// A list of runs has the beginnings of their requests, and finds them; a fork and a resumed run have them too.
func TestRunsHaveTheirRequests(t *testing.T) {
	s := open(t, map[string]string{"counting.yaml": counting})
	id := s.run(map[string]any{"definition": "counting", "input": "A story about the Moon\n" + strings.Repeat("and the cat ", 50)}).Run
	s.run(map[string]any{"definition": "counting", "input": "another"})
	s.wait(id)
	var fork struct{ Run string }
	s.ok("POST", "/api/v1/runs/"+id+":fork", map[string]any{"iteration": 1}, &fork)
	s.ok("POST", "/api/v1/runs/"+fork.Run+":resume", nil, nil)
	s.wait(fork.Run)
	var page struct {
		Runs []struct{ Run, Input string }
	}
	s.ok("GET", "/api/v1/runs?q=the+moon", nil, &page)
	if len(page.Runs) != 2 || page.Runs[0].Run != fork.Run || page.Runs[1].Run != id {
		t.Fatalf("found %+v", page.Runs)
	}
	for _, r := range page.Runs {
		if !strings.HasPrefix(r.Input, "A story about the Moon\nand the cat ") || len(r.Input) > 200 {
			t.Errorf("%s has the request %q", r.Run, r.Input)
		}
	}
}

// A fork began when it was made, and not with the events that it has copied: in lists, its report and its page alike.
func TestForkBeganWhenItWasMade(t *testing.T) {
	s := open(t, map[string]string{"counting.yaml": counting})
	id := s.run(map[string]any{"definition": "counting"}).Run
	s.wait(id)
	made := time.Now()
	var fork struct{ Run string }
	s.ok("POST", "/api/v1/runs/"+id+":fork", map[string]any{"iteration": 1}, &fork)
	s.ok("POST", "/api/v1/runs/"+fork.Run+":resume", nil, nil)
	s.wait(fork.Run)
	var list struct{ Runs []struct{ Started time.Time } }
	var one struct{ Started time.Time }
	s.ok("GET", "/api/v1/runs", nil, &list)
	s.ok("GET", "/api/v1/runs/"+fork.Run, nil, &one)
	got, err := s.store.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: fork.Run})
	if err != nil {
		t.Fatal(err)
	}
	sum := progress.SummarizeAll(got.Session.Events().All()) // as refrain show makes it
	for name, at := range map[string]time.Time{"list": list.Runs[0].Started, "report": one.Started, "summary": sum.Began} {
		if at.Before(made) || !at.Equal(list.Runs[0].Started) {
			t.Errorf("in its %s the fork began %s, before it was made at %s", name, at, made)
		}
	}
}

// G7, G9: state at any place, what changed, and the log with its hashes.
func TestStateDiffAndExport(t *testing.T) {
	s := open(t, map[string]string{"counting.yaml": counting})
	id := s.run(map[string]any{"definition": "counting", "state": map[string]any{"n": 100}}).Run
	s.wait(id)
	path := "/api/v1/runs/" + id
	var state struct{ State map[string]any }
	for at, want := range map[string]float64{"iteration/0": 100, "iteration/5": 105, "": 140} {
		s.ok("GET", path+"/state?at="+at, nil, &state)
		if state.State["n"] != want {
			t.Errorf("at %q: %v", at, state.State)
		}
	}
	var diff struct {
		Changes []struct {
			Key           string
			Before, After any
		}
	}
	s.ok("GET", path+"/diff?from=iteration/4&to=iteration/5", nil, &diff)
	if fmt.Sprint(diff.Changes) != "[{n 104 105} {said It is 104. It is 105.}]" {
		t.Errorf("changed has %v", diff.Changes)
	}
	text := string(s.ok("GET", path+"/export?audit=1", nil, nil).body)
	if n := strings.Count(text, "\n"); n != len(s.log(id))+2 || !strings.Contains(text, `"type":"end"`) {
		t.Errorf("the export has %d lines", n)
	}
	var its struct {
		Count      int
		Iterations []struct {
			Number int
			Steps  []struct{ Name string }
		}
	}
	s.ok("GET", path+"/iterations?from=11&limit=3", nil, &its)
	if its.Count != 40 || len(its.Iterations) != 3 || its.Iterations[0].Number != 11 || len(its.Iterations[0].Steps) != 2 {
		t.Errorf("iterations: %+v", its)
	}
	var scores struct{ Points []struct{ Number int } }
	s.ok("GET", path+"/scores", nil, &scores)
	if len(scores.Points) != 40 {
		t.Errorf("%d points", len(scores.Points))
	}
	s.refused(404, "iteration_not_found", "GET", path+"/state?at=iteration/41", nil)
	s.refused(400, "bad_request", "GET", path+"/state?at=here", nil)
	s.refused(404, "loop_not_found", "GET", path+"/iterations?loop=none", nil)
}

// LOOP 30, G7: pause, resume, cancel and fork, each once for a key.
func TestControl(t *testing.T) {
	g := newGate(t)
	s := open(t, map[string]string{"gated.yaml": g.gated(3)}, private)
	id := s.run(map[string]any{"definition": "gated"}).Run
	path := "/api/v1/runs/" + id
	<-g.came
	s.refused(409, "run_under_way", "POST", path+":resume", nil)
	s.ok("POST", path+":pause", map[string]any{"reason": "lunch"}, nil)
	g.let <- struct{}{}
	if got := s.wait(id); got != "paused" {
		t.Fatalf("the run is %s", got)
	}
	s.refused(409, "run_paused", "POST", path+":pause", nil)
	s.ok("POST", path+":resume", nil, nil, "Idempotency-Key", "k1")
	<-g.came
	if got := s.ok("POST", path+":resume", nil, nil, "Idempotency-Key", "k1"); got.header.Get("Idempotent-Replayed") == "" {
		t.Error("resumed twice")
	}
	s.refused(422, "key_used", "POST", path+":resume", map[string]any{"retry": true}, "Idempotency-Key", "k1")
	s.ok("POST", path+":cancel", map[string]any{"reason": "enough"}, nil)
	if got := s.wait(id); got != "canceled" {
		t.Fatalf("the run is %s", got)
	}
	s.refused(409, "run_over", "POST", path+":cancel", nil)
	s.ok("POST", path+":resume", nil, nil) // as the command continues it
	<-g.came
	s.ok("POST", path+":cancel", nil, nil)
	if got := s.wait(id); got != "canceled" {
		t.Fatalf("the run is %s", got)
	}
	var forked listed
	got := s.ok("POST", path+":fork", map[string]any{"iteration": 1}, &forked)
	if forked.Status != "paused" || got.header.Get("Location") != "/api/v1/runs/"+forked.Run {
		t.Errorf("the fork is %+v", forked)
	}
	s.refused(422, "no_checkpoint", "POST", path+":fork", map[string]any{"iteration": 9})
	s.refused(400, "bad_request", "POST", path+":fork", map[string]any{"iteration": -1})
	s.refused(400, "bad_request", "POST", path+":fork", map[string]any{"iteration": 0, "seq": 5})
	var whole listed
	s.ok("POST", path+":fork", map[string]any{"iteration": 0}, &whole)
	if whole.Status != "paused" || whole.Iteration != 0 {
		t.Errorf("the fork before the first iteration is %+v", whole)
	}
	g.let <- struct{}{}
	g.let <- struct{}{}
	s.ok("POST", "/api/v1/runs/"+forked.Run+":resume", nil, nil)
	if got := s.wait(forked.Run); got != "completed" {
		t.Fatalf("the fork is %s", got)
	}
	// A limit has stopped it: with more it goes on.
	g.let <- struct{}{}
	s.refused(409, "run_over", "POST", "/api/v1/runs/"+forked.Run+":resume", nil)
	s.refused(400, "bad_request", "POST", "/api/v1/runs/"+forked.Run+":resume", map[string]any{"add_iterations": uint64(1<<64 - 2)})
	s.ok("POST", "/api/v1/runs/"+forked.Run+":resume", map[string]any{"add_iterations": 1}, nil)
	s.wait(forked.Run)
	var row struct{ Runs []listed }
	s.ok("GET", "/api/v1/runs?q="+forked.Run, nil, &row)
	if len(row.Runs) != 1 || row.Runs[0].Iteration != 4 {
		t.Errorf("got %+v", row.Runs)
	}
}

// A question is answered, and the run goes on by itself.
func TestAnswer(t *testing.T) {
	s := open(t, map[string]string{"ask.yaml": `name: ask
max_iterations: 1
sub_agents:
  - name: boss
    question: Shall I?
    ask: approve
    output_key: review
  - name: say
    text: "{{review.approved}}"
    output_key: loop_output
`})
	id := s.run(map[string]any{"definition": "ask"}).Run
	if got := s.wait(id); got != "waiting" {
		t.Fatalf("the run is %s", got)
	}
	path := "/api/v1/runs/" + id
	s.refused(422, "bad_answer", "POST", path+":answer", map[string]any{"value": "perhaps"})
	s.refused(409, "no_question", "POST", path+":answer", map[string]any{"question": "q9", "value": true})
	s.ok("POST", path+":answer", map[string]any{"value": true, "by": "ana"}, nil)
	if got := s.wait(id); got != "completed" {
		t.Fatalf("the run is %s", got)
	}
	var run struct{ Answer string }
	s.ok("GET", path, nil, &run)
	if run.Answer != "true" {
		t.Errorf("the answer is %q", run.Answer)
	}
}

// A run of another driver, such as a cluster, is not continued here: it is handed to its driver.
func TestRunOfAnotherDriver(t *testing.T) {
	g := newGate(t)
	s := open(t, map[string]string{"gated.yaml": g.gated(3)}, private)
	id := s.run(map[string]any{"definition": "gated"}).Run
	path := "/api/v1/runs/" + id
	<-g.came
	s.ok("POST", path+":pause", nil, nil)
	g.let <- struct{}{}
	s.wait(id)
	sup, err := supervisor.New(supervisor.Config{Service: s.store, AppName: "app", UserID: "ana",
		Build: func(context.Context, mark.RunStarted) (*supervisor.Program, error) { return nil, errors.ErrUnsupported }})
	if err != nil {
		t.Fatal(err)
	}
	if err := sup.HandTo(t.Context(), id, "cluster"); err != nil {
		t.Fatal(err)
	}
	if err := sup.Pause(t.Context(), id, "lunch"); err != nil {
		t.Fatal(err)
	}
	s.refused(409, "other_driver", "POST", path+":resume", map[string]any{"add_iterations": 1})
	if st, err := sup.Status(t.Context(), id); err != nil || st.Run.HandOver {
		t.Errorf("before it is resumed it stands as %+v, %v", st, err)
	}
	s.ok("POST", path+":resume", nil, nil)
	if st, err := sup.Status(t.Context(), id); err != nil || st.Run.Status != mark.RunIsPaused || !st.Run.HandOver {
		t.Errorf("after it was resumed it stands as %+v, %v", st, err)
	}
}

// Runs are replayed under another policy, and over all values of a limit.
func TestBacktest(t *testing.T) {
	s := open(t, map[string]string{"counting.yaml": counting})
	ids := []string{s.run(map[string]any{"definition": "counting"}).Run, s.run(map[string]any{"definition": "counting"}).Run}
	for _, id := range ids {
		s.wait(id)
	}
	var got struct {
		Balance struct{ Runs int }
		Trials  []struct{ Stops, Was int }
		Sweep   struct{ Field string }
	}
	s.ok("POST", "/api/v1/runs:backtest", map[string]any{"runs": ids, "set": map[string]any{"max_iterations": 7}}, &got)
	if got.Balance.Runs != 2 || len(got.Trials) != 2 || got.Trials[0].Stops != 7 || got.Trials[0].Was != 40 {
		t.Errorf("got %+v", got)
	}
	s.ok("POST", "/api/v1/runs:backtest", map[string]any{"runs": ids, "sweep": "max_iterations"}, &got)
	if got.Sweep.Field != "max_iterations" {
		t.Errorf("got %+v", got)
	}
	s.refused(400, "bad_request", "POST", "/api/v1/runs:backtest", map[string]any{"runs": ids, "set": map[string]any{"max_iteration": 7}})
	s.refused(400, "bad_request", "POST", "/api/v1/runs:backtest", map[string]any{"runs": ids})
	s.refused(404, "run_not_found", "POST", "/api/v1/runs:backtest", map[string]any{"runs": []string{"none"}, "sweep": "max_iterations"})
}

// F10: a run has the definition's limit of model calls, whoever starts it.
func TestRunHasTheModelCallsOfItsDefinition(t *testing.T) {
	s := open(t, map[string]string{
		"two.yaml": `name: two
type: sequential
model: scripted/script.yaml
max_model_calls: 1
sub_agents: [{name: a, instructions: one}, {name: b, instructions: two}]
`,
		"script.yaml": "answers: [{text: one}, {text: two}]\n",
	})
	id := s.run(map[string]any{"definition": "two", "input": "go"}).Run
	if got := s.wait(id); got != "failed" {
		t.Errorf("the run is %s", got)
	}
	more := s.run(map[string]any{"definition": "two", "input": "go", "limits": map[string]any{"max_model_calls": 2}}).Run
	if got := s.wait(more); got != "completed" {
		t.Errorf("with more calls, the run is %s", got)
	}
}

// What a step has sent to its model is rebuilt from the log, without secrets.
func TestPrompt(t *testing.T) {
	const key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEF"
	s := open(t, map[string]string{
		"refine.yaml": `name: refine
model: scripted/script.yaml
max_iterations: 2
sub_agents:
  - {name: writer, instructions: "Write it better than {{draft?}}", output_key: draft}
  - name: critic
    instructions: "Judge {{draft}}"
    output_key: feedback
    tools: [exit_loop]
  - {name: done, set: {n: "1"}}
`,
		"script.yaml": `answers:
  - {agent: writer, text: The first draft.}
  - {agent: critic, text: Too short.}
  - {agent: writer, text: The second draft.}
  - {agent: critic, calls: [{name: exit_loop, args: {reason: good}}]}
`,
	})
	id := s.run(map[string]any{"definition": "refine", "input": "a story, " + key}).Run
	s.wait(id)
	type asked struct {
		Number, Count int
		System        string
		Messages      []struct{ Role, Text string }
		Tools         []struct{ Name string }
	}
	var got asked
	path := "/api/v1/runs/" + id + "/prompt?address="
	answer := s.ok("GET", path+url.QueryEscape("refine[2]/critic"), nil, &got)
	if !strings.HasPrefix(got.System, "Judge The second draft.") || got.Count != 1 || len(got.Tools) != 1 || got.Tools[0].Name != "exit_loop" {
		t.Errorf("got %+v", got)
	}
	if n := len(got.Messages); n < 2 || got.Messages[0].Role != "user" || !strings.HasPrefix(got.Messages[0].Text, "a story") {
		t.Errorf("got %+v", got.Messages)
	}
	if strings.Contains(string(answer.body), key) {
		t.Errorf("the prompt has the key: %s", answer.body)
	}
	got = asked{}
	s.ok("GET", path+url.QueryEscape("refine[1]/writer")+"&request=1", nil, &got)
	if !strings.HasPrefix(got.System, "Write it better than \n") {
		t.Errorf("got %q", got.System)
	}
	s.refused(404, "not_asked", "GET", path+url.QueryEscape("refine[1]/done"), nil)
	s.refused(404, "not_asked", "GET", path+url.QueryEscape("refine[1]/writer")+"&request=2", nil)
	s.refused(400, "bad_request", "GET", path, nil)
	s.refused(404, "run_not_found", "GET", "/api/v1/runs/none/prompt?address=x", nil)
	var page struct{ Runs []listed }
	if s.ok("GET", "/api/v1/runs", nil, &page); len(page.Runs) != 1 {
		t.Errorf("the runs are now %+v", page.Runs)
	}
}

// The page of back-tests gets, for each value at which a run changes, where each run would stop, and
// what to write into the file.
func TestBacktestStudy(t *testing.T) {
	s := open(t, map[string]string{"up.yaml": `name: climb
max_iterations: 5
state: {n: 0}
score: {key: height, min_delta: 0.5}
sub_agents:
  - {name: count, set: {n: state.n + 1, height: "10.0 - 8.0 / double(state.n + 1)"}}
`, "counting.yaml": counting})
	for _, name := range []string{"up", "up", "counting"} {
		s.wait(s.run(map[string]any{"definition": name, "input": "go " + name}).Run)
	}
	type study struct {
		Definitions []struct {
			Name string
			Runs int
		}
		File, Agent, Field string
		Now                float64
		At, Safe           int
		Levels             []struct {
			Value float64
			Saved struct{ Iterations int }
			Ends  []int
		}
		Runs []struct {
			Message string
			Scores  []struct {
				Score float64
				Best  bool
			}
			Ends []struct {
				Verdict string
				Stops   int
			}
		}
	}
	var none, got study
	s.ok("GET", "/api/v1/runs:backtest", nil, &none)
	if len(none.Definitions) != 1 || none.Definitions[0].Name != "climb" || none.Definitions[0].Runs != 2 || none.Levels != nil {
		t.Errorf("without a definition: %+v", none)
	}
	s.ok("GET", "/api/v1/runs:backtest?definition=climb", nil, &got)
	if got.File != "up" || got.Agent != "climb" || got.Field != "score.min_delta" || got.Now != 0.5 {
		t.Errorf("got %+v", got)
	}
	if len(got.Runs) != 2 || got.Runs[0].Message != "go up" || len(got.Runs[0].Scores) < 3 || len(got.Levels) < 3 {
		t.Fatalf("got %+v", got)
	}
	now := got.Levels[got.At]
	if end := got.Runs[0].Ends[now.Ends[0]]; now.Value != 0.5 || now.Saved.Iterations != 0 || end.Verdict != "same" {
		t.Errorf("with the value that was: %+v, %+v", now, end)
	}
	most := got.Levels[len(got.Levels)-1]
	if end := got.Runs[0].Ends[most.Ends[0]]; most.Saved.Iterations == 0 || end.Verdict != "lost" || end.Stops >= len(got.Runs[0].Scores) {
		t.Errorf("with %v: %+v, %+v", most.Value, most, end)
	}
	var other study
	s.ok("GET", "/api/v1/runs:backtest?definition=climb&field=max_iterations", nil, &other)
	if other.Field != "max_iterations" || other.Now != 5 || len(other.Levels) < 3 {
		t.Errorf("moving the limit: %+v", other)
	}
	s.refused(400, "bad_request", "GET", "/api/v1/runs:backtest?definition=climb&field=name", nil)
	s.ok("GET", "/api/v1/runs:backtest?definition=nobody", nil, &none)
	s.start(func(c *server.Config) { c.Dir, c.ReadOnly = "", true })
	var read study
	s.ok("GET", "/api/v1/runs:backtest?definition=climb", nil, &read)
	if read.File != "" || len(read.Levels) != len(got.Levels) {
		t.Errorf("of a server that is only read: %+v", read)
	}
}

// The same request is the same run, whoever repeats it and whether or not the server was restarted.
func TestStartIsIdempotent(t *testing.T) {
	s := open(t, map[string]string{"counting.yaml": counting})
	req := map[string]any{"definition": "counting", "input": "x"}
	first := s.run(req, "Idempotency-Key", "one")
	s.wait(first.Run)
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.start()
	got := s.ok("POST", "/api/v1/runs", req, nil, "Idempotency-Key", "one")
	if got.status != http.StatusOK || got.header.Get("Location") != "/api/v1/runs/"+first.Run {
		t.Errorf("got %d %s", got.status, got.header.Get("Location"))
	}
	if n := len(s.log(first.Run)); n == 0 || s.run(req, "Idempotency-Key", "two").Run == first.Run {
		t.Error("another key is the same run")
	}
}

// A run whose agents need a request is refused without one, before a model is asked.
func TestStartWithoutARequest(t *testing.T) {
	s := open(t, map[string]string{"echo.yaml": "name: echo\ntype: sequential\nsub_agents: [{name: say, text: \"{{user_input}}\"}]\n"})
	got := s.refused(400, "bad_request", "POST", "/api/v1/runs", map[string]any{"definition": "echo", "input": " "})
	if !strings.Contains(got, `"say" reads {{user_input}}; give it as input`) {
		t.Errorf("got %q", got)
	}
	s.wait(s.run(map[string]any{"definition": "echo", "input": "hello"}).Run)
}

// G8: a server that stops in order leaves its runs at a boundary, and the next one continues them.
func TestShutdownAndRestart(t *testing.T) {
	g := newGate(t)
	s := open(t, map[string]string{"gated.yaml": g.gated(3)}, private)
	id := s.run(map[string]any{"definition": "gated"}).Run
	<-g.came
	stopped := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	old := s.Server
	go func() { stopped <- old.Shutdown(ctx) }()
	for s.do("GET", "/readyz", nil).status == http.StatusOK {
	}
	s.refused(503, "closing", "POST", "/api/v1/runs", map[string]any{"definition": "gated"})
	g.let <- struct{}{} // the step that is running ends
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	s.start(private)
	if err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.let <- struct{}{}
	g.let <- struct{}{}
	if got := s.wait(id); got != "completed" {
		t.Fatalf("the run is %s", got)
	}
	var state struct{ State map[string]any }
	s.ok("GET", "/api/v1/runs/"+id+"/state", nil, &state)
	if state.State["n"] != 3.0 || len(g.came) != 2 {
		t.Errorf("the state is %v, and the gate was passed %d more times", state.State, len(g.came))
	}
}

// LOOP 31: a fork that goes on may have another definition and other limits; where it cannot, there is no fork.
func TestForkWithAnotherDefinition(t *testing.T) {
	longer := strings.NewReplacer("max_iterations: 40", "max_iterations: 50", "It is {{n}}.", "Now {{n}}.").Replace(counting)
	other := strings.ReplaceAll(counting, "name: count\n", "name: tally\n")
	s := open(t, map[string]string{"counting.yaml": counting, "longer.yaml": longer, "other.yaml": other}, private)
	id := s.run(map[string]any{"definition": "counting", "limits": map[string]any{"max_iterations": 3}}).Run
	s.wait(id)
	path := "/api/v1/runs/" + id + ":fork"
	s.refused(400, "bad_request", "POST", path, map[string]any{"definition": "longer"}) // and it would not go on
	s.refused(409, "does_not_fit", "POST", path, map[string]any{"iteration": 2, "resume": true, "definition": "other"})
	s.refused(409, "bad_limits", "POST", path, map[string]any{"iteration": 2, "resume": true, "limits": map[string]any{"max_iterations": 1}})
	var all struct{ Runs []listed }
	if s.ok("GET", "/api/v1/runs", nil, &all); len(all.Runs) != 1 {
		t.Fatalf("there are forks that cannot go on: %+v", all.Runs)
	}
	var forked listed
	s.ok("POST", path, map[string]any{"iteration": 2, "resume": true, "definition": "longer", "limits": map[string]any{"max_iterations": 4}}, &forked)
	if got := s.wait(forked.Run); got != "completed" {
		t.Fatalf("the fork is %s", got)
	}
	var state struct{ State map[string]any }
	s.ok("GET", "/api/v1/runs/"+forked.Run+"/state", nil, &state)
	if state.State["said"] != "Now 4." {
		t.Errorf("the fork said %q", state.State["said"])
	}
}

// LOOP 19a: a fork at the last iteration of a loop that has lost a race continues with that loop, by event as by iteration.
func TestForkAtALoser(t *testing.T) {
	s := open(t, map[string]string{"search.yaml": searching}, private)
	id := s.run(map[string]any{"definition": "search"}).Run
	s.wait(id)
	result := func(id string) any {
		var state struct{ State map[string]any }
		s.ok("GET", "/api/v1/runs/"+id+"/state", nil, &state)
		return state.State["said"]
	}
	if got := result(id); got != "bold 10" {
		t.Fatalf("the run said %q", got)
	}
	for n, want := range map[int]string{1: "bold 10", 2: "calm 5"} {
		var fork listed
		s.ok("POST", "/api/v1/runs/"+id+":fork", map[string]any{"loop": "all/search/calm", "iteration": n, "resume": true}, &fork)
		if got := s.wait(fork.Run); got != "completed" || result(fork.Run) != want {
			t.Errorf("after iteration %d the fork is %s and said %q, want %q", n, got, result(fork.Run), want)
		}
	}
}

// searching has two loops of which the first is better after two iterations, and goes on.
const searching = `
name: all
type: sequential
state: {points: 0}
sub_agents:
  - name: search
    type: parallel
    race: {slices: [2 iterations, rest]}
    sub_agents:
      - name: bold
        max_iterations: 5
        score: points
        sub_agents:
          - {name: b, set: {points: state.points + 2}}
      - name: calm
        max_iterations: 5
        score: points
        sub_agents:
          - {name: c, set: {points: state.points + 1}}
  - {name: say, text: "{{search_winner}} {{points}}", output_key: said}
`

// A text for a run whose definition has no loop would never be read.
func TestTellNeedsALoop(t *testing.T) {
	question := `{name: q, question: "Which?", ask: answer, options: [a, b]}`
	s := open(t, map[string]string{"asking.yaml": asking(question), "loop.yaml": "name: loop\nmax_iterations: 2\nsub_agents:\n  - " + question + "\n"})
	loop, line := s.run(map[string]any{"definition": "loop"}).Run, s.run(map[string]any{"definition": "asking"}).Run
	s.wait(loop)
	s.wait(line)
	s.ok("POST", "/api/v1/runs/"+loop+":tell", map[string]any{"text": "be quick"}, nil)
	s.refused(http.StatusConflict, "no_loop", "POST", "/api/v1/runs/"+line+":tell", map[string]any{"text": "be quick"})
	s.refused(http.StatusNotFound, "run_not_found", "POST", "/api/v1/runs/none:tell", map[string]any{"text": "be quick"})
}

// What a coding agent has said and done is an artifact of its step.
func TestTranscript(t *testing.T) {
	files := artifact.InMemoryService()
	s := open(t, map[string]string{"counting.yaml": counting}, func(c *server.Config) { c.ArtifactService = files })
	run := s.run(map[string]any{"definition": "counting"}).Run
	s.wait(run)
	for _, text := range []string{"first", "I look.\x1b[2J"} {
		if _, err := files.Save(t.Context(), &artifact.SaveRequest{AppName: "app", UserID: "ana", SessionID: run,
			FileName: taskagent.TranscriptName("counting[1]/say"), Part: genai.NewPartFromText(text)}); err != nil {
			t.Fatal(err)
		}
	}
	var got struct{ Text string }
	at := "/api/v1/runs/" + run + "/transcript?address="
	s.ok("GET", at+"counting%5B1%5D/say", nil, &got)
	if !strings.HasPrefix(got.Text, "I look.") || strings.Contains(got.Text, "\x1b") {
		t.Errorf("got %q", got.Text)
	}
	s.refused(http.StatusNotFound, "no_transcript", "GET", at+"counting%5B2%5D/say", nil)
	s.refused(http.StatusNotFound, "no_transcript", "GET", at+"..%2Fx%00", nil)
	s.refused(http.StatusNotFound, "run_not_found", "GET", "/api/v1/runs/none/transcript?address=x", nil)
	s.refused(http.StatusBadRequest, "bad_request", "GET", at, nil)
}
