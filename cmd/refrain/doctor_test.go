// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/model/modeltest"
	"github.com/refrain-dev/refrain/model/scripted"
)

// askDoctor runs refrain doctor --ask with these variables and nothing else.
func askDoctor(t *testing.T, vars map[string]string) (code int, checks map[string]check, out string) {
	t.Helper()
	t.Chdir(t.TempDir())
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), []string{"doctor", "--ask", "--json", "--store", "memory"}, func(name string) string { return vars[name] },
		strings.NewReader(""), &stdout, &stderr)
	var report struct{ Checks []check }
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout.String(), stderr.String())
	}
	checks = make(map[string]check)
	for _, c := range report.Checks {
		checks[c.Area+" "+c.Name] = c
	}
	return code, checks, stdout.String()
}

// A28: a model that answers, whatever it says, is there.
func TestDoctorAsksTheModel(t *testing.T) {
	server := modeltest.OpenAIServer(t, scripted.Script{Answers: []scripted.Answer{{Text: "ok", Finish: "MAX_TOKENS"}}})
	code, checks, out := askDoctor(t, map[string]string{
		"REFRAIN_MODEL": "openai/m", "OPENAI_BASE_URL": server.BaseURL, "OPENAI_API_KEY": "sk-1234567890",
	})
	c := checks["models openai/m"]
	if code != 0 || c.Found != foundOK || !strings.HasPrefix(c.Detail, "answers, after ") {
		t.Errorf("exit code %d: %+v", code, c)
	}
	if strings.Contains(out, "sk-1234567890") {
		t.Errorf("it shows the key:\n%s", out)
	}
}

// A28: one that does not is broken, and what its server says of the key does
// not show it.
func TestDoctorShowsNoKeyThatAServerRepeats(t *testing.T) {
	server := modeltest.OpenAIServer(t, scripted.Script{RepeatLast: true, Answers: []scripted.Answer{
		{Error: &scripted.Failure{Status: 401, Message: "Incorrect API key provided: sk-1234567890"}},
	}})
	code, checks, out := askDoctor(t, map[string]string{
		"REFRAIN_MODEL": "openai/m", "OPENAI_BASE_URL": server.BaseURL, "OPENAI_API_KEY": "sk-1234567890",
	})
	c := checks["models openai/m"]
	if code != exitFailed || c.Found != foundBroken || !strings.Contains(c.Detail, "provided: [OPENAI_API_KEY]") {
		t.Errorf("exit code %d: %+v", code, c)
	}
	if strings.Contains(out, "sk-1234567890") {
		t.Errorf("it shows the key:\n%s", out)
	}
}
