// SPDX-License-Identifier: Apache-2.0

//go:build linux

package command

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
)

// servedRun is refrain serve in a process of its own.
type servedRun struct {
	*exec.Cmd
	url  string
	rest chan string // what it says after its address
}

func startServe(t *testing.T, dir string, env ...string) *servedRun {
	t.Helper()
	return startServeBehind(t, dir, nil, env...)
}

// startServeBehind starts refrain serve as the last arguments of other commands.
func startServeBehind(t *testing.T, dir string, before []string, env ...string) *servedRun {
	t.Helper()
	argv := append(slices.Clone(before), "refrain", "serve", "--dir", dir, "--store", "sqlite:"+filepath.Join(dir, "runs.db"), "--addr", "127.0.0.1:0")
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &servedRun{Cmd: cmd, rest: make(chan string, 1)}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewReader(out)
	var said strings.Builder
	for s.url == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("refrain serve says %q: %v", said.String()+line, err)
		}
		said.WriteString(line)
		if _, at, ok := strings.Cut(line, "refrain serves "); ok {
			s.url = strings.TrimSpace(at)
		}
	}
	go func() {
		var rest strings.Builder
		for {
			line, err := lines.ReadString('\n')
			rest.WriteString(line)
			if err != nil {
				s.rest <- rest.String()
				return
			}
		}
	}()
	return s
}

// events follows a run until the consumer has enough, or to its end.
func (s *servedRun) events(t *testing.T, id string, each func(seq int64, line string) bool) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/api/v1/runs/"+id+"/events?follow=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/x-ndjson")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		var ev struct{ Seq int64 }
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if !each(ev.Seq, line) {
			return
		}
	}
}

// G8, LOOP 30: the runs of a server that was killed go on when it is started again, and so do those of
// one that was stopped in order. Whoever watches gets each event once.
func TestServeIsKilledAndStartedAgain(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "work.sh"), "echo $N >> done\nwhile [ ! -e go ]; do sleep 0.02; done\n")
	write(t, filepath.Join(dir, "jobs.yaml"), `name: jobs
max_iterations: 3
state: {n: 0}
sub_agents:
  - name: count
    set: {n: state.n + 1}
  - name: work
    command: [sh, work.sh]
    env: {N: "{{n}}"}
`)
	s := startServe(t, dir)
	var ids []string
	last := map[string]int64{}
	for range 3 {
		resp, err := http.Post(s.url+"/api/v1/runs", "application/json", bytes.NewReader([]byte(`{"definition":"jobs"}`)))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		var row struct{ Run string }
		if err != nil || json.Unmarshal(text, &row) != nil || row.Run == "" {
			t.Fatalf("%d %s: %v", resp.StatusCode, text, err)
		}
		ids = append(ids, row.Run)
	}
	begun := func(id string) {
		s.events(t, id, func(seq int64, line string) bool {
			if seq > last[id] {
				last[id] = seq
			}
			return !strings.Contains(line, `"address":"jobs[1]/work"`)
		})
	}
	for _, id := range ids {
		begun(id)
	}
	if err := s.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.Wait()
	s = startServe(t, dir)
	for _, id := range ids {
		begun(id)
	}
	// Stopped in order, it waits for its steps.
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "go"), "")
	if err := s.Wait(); err != nil {
		t.Errorf("stopped in order: %v: %s", err, <-s.rest)
	}
	s = startServe(t, dir)
	for _, id := range ids {
		next, end := int64(1), ""
		s.events(t, id, func(seq int64, line string) bool {
			if seq != next {
				t.Fatalf("run %s: event %d comes after %d", id, seq, next-1)
			}
			next, end = seq+1, line
			return true
		})
		if !strings.Contains(end, `"kind":"run_ended"`) || !strings.Contains(end, "completed") {
			t.Errorf("run %s ends with %s", id, end)
		}
	}
	done, err := os.ReadFile(filepath.Join(dir, "done"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(done, []byte("3\n")); n != len(ids) {
		t.Errorf("the last step was made %d times for %d runs", n, len(ids))
	}
	if err := s.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(); err != nil {
		t.Error(fmt.Errorf("interrupted: %w: %s", err, <-s.rest))
	}
}

// G8, LOOP 30: a task over A2A outlives the server: whoever comes back after a kill hears what it asks,
// sends nothing twice, and gets the answer.
func TestServeIsKilledInTheMiddleOfATask(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "trip.yaml"), `name: trip
max_iterations: 2
sub_agents:
  - {name: ask, question: "On?"}
  - {name: note, command: [sh, -c, "echo $N >> done"], env: {N: "{{iteration}}"}}
  - {name: say, text: "Day {{iteration}}.", output_key: said}
`)
	connect := func(s *servedRun) *a2aclient.Client {
		card, err := agentcard.NewResolver(nil).Resolve(t.Context(), s.url+"/a2a/v1/trip")
		if err != nil {
			t.Fatal(err)
		}
		c, err := a2aclient.NewFromCard(t.Context(), card)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	send := func(c *a2aclient.Client, m *a2a.Message) *a2a.Task {
		got, err := c.SendMessage(t.Context(), &a2a.SendMessageRequest{Message: m})
		if err != nil {
			t.Fatal(err)
		}
		return got.(*a2a.Task)
	}
	s := startServe(t, dir)
	start := a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart("Go!"))
	c := connect(s)
	task := send(c, start)
	yes := a2a.NewMessageForTask(a2a.MessageRoleUser, task, a2a.NewTextPart("yes"))
	if next := send(c, yes); next.Status.State != a2a.TaskStateInputRequired {
		t.Fatalf("the first answer leads to %+v", next)
	}
	if err := s.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.Wait()
	s = startServe(t, dir)
	c = connect(s)
	for ev, err := range c.SubscribeToTask(t.Context(), &a2a.SubscribeToTaskRequest{ID: task.ID}) {
		if now, ok := ev.(*a2a.Task); err != nil || !ok || now.Status.State != a2a.TaskStateInputRequired || now.ID != task.ID {
			t.Fatalf("after the kill there comes %+v: %v", ev, err)
		}
	}
	for _, again := range []*a2a.Message{start, yes} {
		if now := send(c, again); now.ID != task.ID || now.Status.State != a2a.TaskStateInputRequired {
			t.Errorf("sent again, %q leads to %+v", again.Parts[0].Text(), now)
		}
	}
	end := send(c, a2a.NewMessageForTask(a2a.MessageRoleUser, task, a2a.NewTextPart("yes")))
	if end.Status.State != a2a.TaskStateCompleted || end.Artifacts[0].Parts[0].Text() != "Day 2." {
		t.Errorf("the second answer leads to %+v", end)
	}
	if done, err := os.ReadFile(filepath.Join(dir, "done")); err != nil || string(done) != "1\n2\n" {
		t.Errorf("done is %q: %v", done, err)
	}
}
