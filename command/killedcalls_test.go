// SPDX-License-Identifier: Apache-2.0

//go:build linux

package command

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// killedCalls makes two payments that a model's server asks for under one ID.
const killedCalls = `
name: buyer
model: openai/m
instructions: "Pay twice."
tools:
  - name: pay
    description: "Pays."
    command: [sh, pay.sh, "{{n}}"]
    parameters: {type: object, properties: {n: {type: integer}}, required: [n]}
    effect: {at_most_once: true, reconcile: {command: [sh, look.sh, "{{call_id}}"]}}
`

// payScript hangs in its second payment, before or after that took place.
const payScript = `
if test "$1" = 2 && test WHEN = before && test ! -e hung; then touch hung; exec sleep 20; fi
echo "$REFRAIN_CALL_ID $1" >> bank
if test "$1" = 2 && test ! -e hung; then touch hung; exec sleep 20; fi
echo "paid $1"
`

// LOOP 32a: a server that numbers the calls of each answer gives the second payment the ID of the first. If the process is
// killed in the second, reconcile asks about that payment by an ID of its own, and it is made once.
func TestKilledCallIsMadeOnce(t *testing.T) {
	for _, when := range []string{"before", "after"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			var last atomic.Value
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				last.Store(string(body))
				message := map[string]any{"role": "assistant", "content": "done"}
				if n := strings.Count(string(body), `"tool_call_id"`); n < 2 {
					message = map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{"id": "call_0", "type": "function",
						"function": map[string]any{"name": "pay", "arguments": fmt.Sprintf(`{"n": %d}`, n+1)}}}}
				}
				_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": message, "finish_reason": "stop"}}})
			}))
			defer srv.Close()
			dir := t.TempDir()
			for name, text := range map[string]string{
				"buyer.yaml": killedCalls, "pay.sh": strings.ReplaceAll(payScript, "WHEN", when),
				"look.sh": `sed -n "s/^$1 /paid /p" bank | grep .`,
			} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := &refrains{TB: t, dir: dir, binary: "refrain", store: "sqlite:runs.db",
				env: []string{"OPENAI_BASE_URL=" + srv.URL + "/v1", "OPENAI_API_KEY=k"}}
			p := r.start("run", "buyer.yaml", "--session", "r")
			for until := time.Now().Add(mostTime); !p.over(); time.Sleep(5 * time.Millisecond) {
				if _, err := os.Stat(filepath.Join(dir, "hung")); err == nil || time.Now().After(until) {
					break
				}
			}
			_ = p.Process.Signal(syscall.SIGKILL)
			if r.end(p); p.code() >= 0 {
				t.Fatalf("exit code %d\n%s", p.code(), &p.stderr)
			}
			if p = r.do("resume", "r"); p.code() != 0 {
				t.Fatalf("exit code %d\n%s", p.code(), &p.stderr)
			}
			bank, err := os.ReadFile(filepath.Join(dir, "bank"))
			if err != nil {
				t.Fatal(err)
			}
			var ids, paid []string
			for line := range strings.Lines(string(bank)) {
				id, n, _ := strings.Cut(strings.TrimSpace(line), " ")
				ids, paid = append(ids, id), append(paid, n)
			}
			if !slices.Equal(paid, []string{"1", "2"}) || ids[0] == ids[1] {
				t.Errorf("the bank has %q", bank)
			}
			told := last.Load().(string)
			if !strings.Contains(told, "paid 1") || !strings.Contains(told, "paid 2") || strings.Count(told, `"tool_call_id":"call_0"`) != 2 {
				t.Errorf("the model was told %s", told)
			}
		})
	}
}
