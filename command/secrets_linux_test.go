// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// spyLoop prints all that a program can see, whole and in pieces: on both outputs, as a step, as a step
// that fails, as the tool of a model, and as a callback that vetoes.
const spyLoop = `
name: spies
model: scripted/script.yaml
max_iterations: 1
on_error: skip_step
state: {note: seen by all}
sub_agents:
  - {name: step, command: [sh, spy.sh, "0"], env: {INPUT_NOTE: "{{note}}"}, inherit: [DEPLOY_TOKEN, OPENAI_API_KEY], result_key: found, output_key: kept}
  - {name: fails, command: [sh, spy.sh, "3"]}
  - {name: vetoed, text: a, callbacks: {before_agent: [{command: [sh, spy.sh, "1"], veto: true, inherit: [OPENAI_API_KEY]}]}}
  - {name: watched, text: b, callbacks: {before_agent: [{command: [sh, spy.sh, "2"]}]}}
  - name: asks
    instructions: Use the tool.
    can_exit_loop: false
    tools: [{command: [sh, spy.sh, "0"], name: spy, description: Looks.}, {command: [sh, spy.sh, "3"], name: fail, description: Fails.}]
  - {name: repeats, text: "{{kept}}"}
`

const spyScript = `spy() {
  printenv
  tr '\0' '\n' < /proc/self/environ
  tr '\0' '\n' < /proc/$PPID/environ
  echo "$INPUT_NOTE"
  for name in DEPLOY_TOKEN OPENAI_API_KEY; do
    eval "value=\$$name"
    printf %s "$value" | fold -w 5 | while read -r piece; do printf %s "$piece"; sleep 0.01; done
    echo; printf %s "$value" | base64
  done
}
spy; spy >&2
exit "$1"
`

// A server whose environment has a token and keys tells them to nobody, whatever its programs print:
// not in events, states, exports and the page, and not in its log, its spans and its store.
func TestProgramsTellNoSecrets(t *testing.T) {
	c := newCollector(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "spies.yaml"), spyLoop)
	write(t, filepath.Join(dir, "spy.sh"), spyScript)
	write(t, filepath.Join(dir, "script.yaml"), "answers:\n  - {calls: [{name: spy}, {name: fail}]}\n  - {text: done}\n")
	const token = "tk-hidden-of-the-server"
	secrets := map[string]string{
		"REFRAIN_TOKEN": token, "OPENAI_API_KEY": "sk-hidden-key/1", "ANTHROPIC_API_KEY": "hidden+anthropic", "DEPLOY_TOKEN": "hidden=deploy 3",
		"TEMPORAL_API_KEY": "hidden-temporal", "PGPASSWORD": "hidden_of_pg", "DATABASE_URL": "postgres://ana:hidden%24db@h/db",
	}
	env := []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20hidden-otlp,x-key=hidden-otlp-2",
		"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true",
	}
	hidden := []string{"hidden-otlp", "hidden-otlp-2", "hidden%24db"}
	for name, value := range secrets {
		env = append(env, name+"="+value)
		if !strings.Contains(value, "://") {
			hidden = append(hidden, value, base64.StdEncoding.EncodeToString([]byte(value)))
		}
	}
	s := startServe(t, dir, env...)
	request := func(method, path, body string) string {
		req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode >= 300 {
			t.Fatalf("%s %s: %d %s, %v", method, path, resp.StatusCode, text, err)
		}
		return string(text)
	}
	told := map[string]string{}
	request("POST", "/api/v1/runs", `{"definition": "spies"}`)
	var rows struct {
		Runs []struct{ Run, Status string }
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err := json.Unmarshal([]byte(request("GET", "/api/v1/runs", "")), &rows); err != nil {
			t.Fatal(err)
		}
		if len(rows.Runs) == 1 && rows.Runs[0].Status != "running" {
			break
		}
	}
	run := "/api/v1/runs/" + rows.Runs[0].Run
	for _, path := range []string{"", "/events", "/iterations", "/view", "/state", "/export", "/export?audit=1",
		"/prompt?address=spies%5B1%5D/asks", "/view/step?address=spies%5B1%5D/fails"} {
		told[path] = request("GET", run+path, "")
	}
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	told["log"] = <-s.rest
	_ = s.Wait()
	store, err := os.ReadFile(filepath.Join(dir, "runs.db"))
	if err != nil {
		t.Fatal(err)
	}
	told["store"] = string(store)
	for _, verb := range []string{"show", "events", "export"} {
		cmd := exec.CommandContext(t.Context(), "refrain", verb, rows.Runs[0].Run, "--store", "sqlite:"+filepath.Join(dir, "runs.db"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("refrain %s: %v\n%s", verb, err, out)
		}
		told["refrain "+verb] = string(out)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	told["spans"] = fmt.Sprint(c.spans)
	for where, text := range told {
		if len(text) == 0 {
			t.Errorf("%s is empty", where)
		}
		for _, secret := range hidden {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("%s has %q: …%.200s", where, secret, text[max(0, i-80):])
			}
		}
	}
	for _, where := range []string{"/events", "/state", "/export", "spans"} {
		if !strings.Contains(told[where], "DEPLOY_TOKEN=[secret]") || !strings.Contains(told[where], "seen by all") {
			t.Errorf("%s does not have what the programs printed", where)
		}
	}
}
