// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/server"
)

// Runs of definitions that clients send wait for one another, and only so many wait, over any protocol that takes such
// definitions. Runs of the folder's definitions wait for none.
func TestRunsOfClientsDefinitionsAreLimited(t *testing.T) {
	g := newGate(t)
	s := open(t, map[string]string{"gated.yaml": g.gated(1)}, private, func(c *server.Config) { c.MaxClientRuns, c.MaxQueued = 1, 1 })
	sent := map[string]any{"text": g.gated(1)}
	first := s.run(sent).Run
	<-g.came
	second := s.run(sent).Run
	if got := s.refused(http.StatusTooManyRequests, "queue_full", "POST", "/api/v1/runs", sent); !strings.Contains(got, "the limit is 1") {
		t.Errorf("the third run was refused with %q", got)
	}
	s.dialed("").fails("run", map[string]any{"text": g.gated(1)}, "Too many runs wait")
	s.refused(http.StatusTooManyRequests, "queue_full", "POST", "/api/v1/runs/"+first+":fork", map[string]any{"iteration": 0, "resume": true})
	own := s.run(map[string]any{"definition": "gated"}).Run
	<-g.came // it does not wait
	for range 3 {
		g.let <- struct{}{}
	}
	for _, id := range []string{first, second, own} {
		if got := s.wait(id); got != "completed" {
			t.Errorf("run %s is %s", id, got)
		}
	}
}

// A run of a client's definition fails when its log has reached the limit. A definition of the folder has no limit.
func TestLogLimitOfClientsDefinitions(t *testing.T) {
	fills := strings.Replace(counting, `"It is {{n}}."`, `"`+strings.Repeat("{{n}} ", 2000)+`"`, 1)
	s := open(t, map[string]string{"fills.yaml": fills}, func(c *server.Config) { c.LogLimit, c.LogLimitName = 128<<10, "the limit --log-limit" })
	id := s.run(map[string]any{"text": fills}).Run
	if got := s.wait(id); got != "failed" {
		t.Fatalf("the run is %s", got)
	}
	var rows struct{ Runs []listed }
	s.ok("GET", "/api/v1/runs?q="+id, nil, &rows)
	if got := rows.Runs[0].Error; !strings.Contains(got, "the limit --log-limit is 131072") || !strings.Contains(got, "retry") {
		t.Errorf("the run failed with %q", got)
	}
	size := 0
	for _, ev := range s.log(id) {
		size += ev.Weight()
	}
	if size < 64<<10 || size > 192<<10 {
		t.Errorf("its log weighs %d", size)
	}
	if got := s.wait(s.run(map[string]any{"definition": "fills"}).Run); got != "completed" {
		t.Errorf("the run of the folder's definition is %s", got)
	}
}

// ADK's clients cannot fill the store with sessions, nor a session with state, before or with a run.
func TestSessionsAreLimited(t *testing.T) {
	s := open(t, map[string]string{"counting.yaml": counting}, func(c *server.Config) {
		c.MaxSessions, c.StateLimit, c.LogLimit = 3, 10<<10, 32<<10
	})
	const at = "/api/apps/counting/users/u/sessions"
	large := map[string]any{"x": strings.Repeat("x", 11<<10)}
	s.refused(http.StatusRequestEntityTooLarge, "too_large", "POST", at+"/large", map[string]any{"state": large})
	for i := range 3 {
		s.ok("POST", fmt.Sprintf("%s/s%d", at, i), map[string]any{"state": map[string]any{"k": 1}}, nil)
	}
	if got := s.refused(http.StatusTooManyRequests, "too_many_sessions", "POST", at, nil); !strings.Contains(got, "--max-sessions) is 3") {
		t.Errorf("refused with %q", got)
	}
	run := func(delta map[string]any) map[string]any {
		return map[string]any{"appName": "counting", "userId": "u", "sessionId": "s0", "stateDelta": delta,
			"newMessage": map[string]any{"role": "user", "parts": []any{map[string]any{"text": "go"}}}}
	}
	s.refused(http.StatusRequestEntityTooLarge, "too_large", "POST", "/api/run", run(large))
	s.ok("POST", "/api/run", run(nil), nil)
	s.ok("POST", at+"/s3", nil, nil) // there is room, because s0 has a run now

	s.ok("PATCH", at+"/s1", map[string]any{"stateDelta": map[string]any{"x": strings.Repeat("x", 6<<10)}}, nil)
	s.refused(http.StatusRequestEntityTooLarge, "too_large", "PATCH", at+"/s1", map[string]any{"stateDelta": map[string]any{"y": strings.Repeat("x", 6<<10)}})
	for i := 0; ; i++ {
		got := s.do("PATCH", at+"/s1", map[string]any{"stateDelta": map[string]any{"x": strings.Repeat("x", 6<<10)}})
		if got.status == http.StatusRequestEntityTooLarge && strings.Contains(string(got.body), "its limit is ") {
			break
		}
		if got.status != http.StatusOK || i > 5 {
			t.Fatalf("change %d of the state: %d %.200s", i, got.status, got.body)
		}
	}
}

// One client has at most half of the streams.
func TestOneClientLeavesStreamsToOthers(t *testing.T) {
	s := open(t, map[string]string{"counting.yaml": counting}, func(c *server.Config) { c.MaxStreams = 4 })
	l := s.port()
	s.listening(l)
	id := s.run(map[string]any{"definition": "counting"}).Run
	s.wait(id)
	status := func(kind string) int {
		conn := s.dial(l, "GET /api/v1/"+kind+" HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode
	}
	if got := []int{status("runs/" + id + "/events"), status("runs")}; !slices.Equal(got, []int{200, 200}) {
		t.Fatalf("the first streams: %d", got)
	}
	got := s.refused(http.StatusServiceUnavailable, "busy", "GET", "/api/v1/runs/"+id+"/events?follow=1", nil, "Accept", "application/x-ndjson")
	if !strings.Contains(got, "half of the 4") {
		t.Errorf("refused with %q", got)
	}
	s.dialed("").fails("watch", map[string]any{"run": id}, "too many streams")
	body := map[string]any{"appName": "counting", "userId": "u", "sessionId": "s"}
	for _, path := range []string{"/api/run", "/api/run_sse"} {
		s.refused(http.StatusServiceUnavailable, "busy", "POST", path, body)
	}
}

// The table of limits in doc/security.md is that of the code.
func TestBoundsInTheDocumentation(t *testing.T) {
	text, err := os.ReadFile("../doc/security.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, b := range operations.Bounds {
		fmt.Fprintf(&want, "| %s | `--%s` | %s | %s |\n", b.Of, b.Flag, b, b.Full)
	}
	table := regexp.MustCompile(`(?s)\| what \| flag of .serve. \| default \| at the limit \|\n\|[-|]+\|\n(.*?)\n\n`).FindSubmatch(text)
	if table == nil || string(table[1])+"\n" != want.String() {
		t.Errorf("write into doc/security.md:\n%s", want.String())
	}
}
