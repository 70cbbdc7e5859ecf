// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/hook"
)

const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// E7, U8: a file has a webhook told, which signs with a secret of the environment
// and can veto; one that only watches and is out of order changes nothing.
func TestWebhooksInAFile(t *testing.T) {
	wh, err := standardwebhooks.NewWebhook(hookSecret)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var told []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var ev hook.Event
		if err := errors.Join(wh.Verify(body, r.Header), json.Unmarshal(body, &ev)); err != nil || ev.ID != r.Header.Get("webhook-id") {
			t.Errorf("%s: %v", body, err)
		}
		mu.Lock()
		defer mu.Unlock()
		told = append(told, string(ev.Type))
		switch {
		case ev.Type == hook.AfterIteration:
			w.WriteHeader(http.StatusBadRequest)
		case ev.Type == hook.BeforeIteration && ev.Data.Iteration == 2:
			io.WriteString(w, `{"veto": true, "reason": "one is enough"}`)
		}
	}))
	defer server.Close()
	var failed []string
	cfg := definition.BuildConfig{
		Getenv:         func(name string) string { return map[string]string{"HOOK_SECRET": hookSecret}[name] },
		CallbackFailed: func(err error) { failed = append(failed, err.Error()) },
	}
	h := newHouse(t, strings.ReplaceAll(`name: watched
max_iterations: 3
callbacks:
  before_iteration: [{webhook: URL/gate, secret_env: HOOK_SECRET, veto: true, timeout: 5s}]
  after_iteration: [{webhook: "URL/watch?key=hidden", secret_env: HOOK_SECRET}]
sub_agents: [{name: a, text: a}]
`, "URL", server.URL), cfg)
	err = h.run()
	if err == nil || !strings.Contains(err.Error(), "webhook "+server.URL+"/… vetoes the iteration: one is enough") {
		t.Errorf("got error %v", err)
	}
	if diff := cmp.Diff([]string{"before_iteration", "after_iteration", "before_iteration"}, told[:3]); diff != "" {
		t.Error(diff)
	}
	if len(failed) == 0 || failed[0] != "after_iteration of webhook "+server.URL+"/…: it answered 400 Bad Request" {
		t.Errorf("failed: %q", failed)
	}
}

// E7: a file has a command told, in the run's root.
func TestCommandsAreTold(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no sh")
	}
	root := t.TempDir()
	h := newHouse(t, `name: watched
max_iterations: 1
callbacks:
  before_run: [{command: [sh, -c, "cat >> told.jsonl"]}]
  after_run: [{command: [sh, -c, "cat >> told.jsonl"]}]
sub_agents:
  - name: a
    text: a
    callbacks: {before_agent: [{command: [sh, -c, "echo not today >&2; exit 1"], veto: true}]}
    on_error: skip_step
  - {name: b, text: b}
`, definition.BuildConfig{Root: root})
	if err := h.run(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(root, "told.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for line := range strings.Lines(string(data)) {
		var ev hook.Event
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		types = append(types, string(ev.Type))
	}
	if diff := cmp.Diff([]string{"before_run", "after_run"}, types); diff != "" {
		t.Error(diff)
	}
	vetoed := false
	for _, ev := range h.events {
		vetoed = vetoed || ev.Mark != nil && strings.Contains(string(ev.Mark.Data), "command sh vetoes the agent: not today")
	}
	if !vetoed {
		t.Error("the log does not say that the step was vetoed")
	}
}

// What callbacks and Go agents need and is not there is told at once, with its
// place, and without secrets.
func TestBuildTellsWhatIsMissing(t *testing.T) {
	d := parse(t, `name: x
callbacks:
  before_run:
    - {webhook: "https://example.org/", secret_env: NOT_SET}
    - {webhook: "https://example.org/", secret_env: NO_SECRET}
  after_run: [{func: heer}]
sub_agents:
  - {name: a, func: reviwer}
  - {name: b, text: b, callbacks: {after_agent: [{func: other}]}}
`)
	cfg := new(listener).config()
	cfg.Agents = map[string]definition.NewAgent{"reviewer": reviewer}
	cfg.Getenv = func(name string) string { return map[string]string{"NO_SECRET": "no base64: hidden"}[name] }
	_, err := d.Build(t.Context(), cfg)
	problems, ok := errors.AsType[definition.Problems](err)
	if !ok {
		t.Fatalf("got error %v", err)
	}
	var b strings.Builder
	problems.Format(&b)
	const want = `x.yaml:4:7: error: the webhook is signed with NOT_SET, which is not set [LOOP048]
    4 |     - {webhook: "https://example.org/", secret_env: NOT_SET}
      |       ^ set NOT_SET in the environment
x.yaml:5:7: error: NO_SECRET: the secret is not base64 with or without whsec_ before it, as Standard Webhooks have it [LOOP048]
    5 |     - {webhook: "https://example.org/", secret_env: NO_SECRET}
      |       ^
x.yaml:6:15: error: there is no callback function "heer" [LOOP048]
    6 |   after_run: [{func: heer}]
      |               ^ did you mean "hear"?
x.yaml:8:21: error: there is no Go agent "reviwer" [LOOP040]
    8 |   - {name: a, func: reviwer}
      |                     ^^^^^^^ did you mean "reviewer"?
x.yaml:9:50: error: there is no callback function "other" [LOOP048]
    9 |   - {name: b, text: b, callbacks: {after_agent: [{func: other}]}}
      |                                                  ^ the functions are hear
5 errors
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	cfg.StandIns.NoCallbacks = true
	if _, err := d.Build(t.Context(), cfg); err == nil || strings.Contains(err.Error(), definition.CodeCallback) {
		t.Errorf("callbacks that are left out: %v", err)
	}
	if _, err := d.Build(t.Context(), definition.BuildConfig{}); !strings.Contains(err.Error(), "no Go agent") {
		t.Errorf("got error %v", err)
	}
}
