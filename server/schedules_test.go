// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/server"
)

// A server starts the runs of its file of schedules from Recover until Shutdown, and serves although the file has a mistake.
func TestServerStartsScheduledRuns(t *testing.T) {
	on := func(cfg *server.Config) { cfg.Schedules = true }
	s := open(t, map[string]string{"counting.yaml": counting, "schedules.yaml": "schedules:\n  - {name: often, definition: counting, every: 1s, overlap: queue}\n"}, on)
	if err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(s.logs.String(), "a schedule has started a run"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no run has started:\n%s", s.logs)
		}
	}
	if got := s.do("GET", "/api/v1/runs", nil); !strings.Contains(string(got.body), `"run":"often@20`) {
		t.Errorf("the runs are %s", got.body)
	}
	if got := s.do("POST", "/api/v1/schedules/often:pause", nil); got.status != 200 || !strings.Contains(string(got.body), `"paused_by":"`) {
		t.Errorf("pause: %d %s", got.status, got.body)
	}
	if got := s.do("GET", "/api/v1/schedules", nil); !strings.Contains(string(got.body), `"outcome":"started"`) || !strings.Contains(string(got.body), `"run_status":"`) ||
		!strings.Contains(string(got.body), `"next":"20`) || !strings.Contains(string(got.body), `"paused":"20`) {
		t.Errorf("the schedules are %s", got.body)
	}
	if got := s.do("POST", "/api/v1/schedules/often:continue", nil); got.status != 200 || strings.Contains(string(got.body), "paused") {
		t.Errorf("continue: %d %s", got.status, got.body)
	}
	if got := s.do("POST", "/api/v1/schedules/oftn:pause", nil); got.status != 404 || !strings.Contains(string(got.body), "did you mean") {
		t.Errorf("another name: %d %s", got.status, got.body)
	}

	wrong := open(t, map[string]string{"schedules.yaml": "schedules: [{name: a, definitio: b, every: 1s}]\n"}, on)
	if err := wrong.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := wrong.do("GET", "/api/v1/definitions", nil); got.status != 200 || strings.Contains(string(got.body), "schedules") {
		t.Errorf("the definitions: %d %s", got.status, got.body)
	}
	if got := wrong.do("GET", "/api/v1/schedules", nil); !strings.Contains(string(got.body), "definitio") {
		t.Errorf("the problems: %d %s", got.status, got.body)
	}
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(wrong.logs.String(), "did you mean"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the mistake is not in the log:\n%s", wrong.logs)
		}
	}
}
