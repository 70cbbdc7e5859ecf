// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/model/modeltest"
	"github.com/refrain-dev/refrain/model/scripted"
)

// found is what refrain doctor found in one check.
type found struct{ Area, Name, Found, Detail, Fix string }

// askDoctor runs refrain doctor --ask with these variables and nothing else.
func askDoctor(t *testing.T, vars map[string]string) (code int, checks map[string]found, out string) {
	t.Helper()
	t.Chdir(t.TempDir())
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), nil, []string{"doctor", "--ask", "--json", "--store", "memory"}, func(name string) string { return vars[name] },
		strings.NewReader(""), &stdout, &stderr)
	var report struct{ Checks []found }
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout.String(), stderr.String())
	}
	checks = make(map[string]found)
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
	if code != 0 || c.Found != "ok" || !strings.HasPrefix(c.Detail, "answers, after ") {
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
	if code != term.ExitFailed || c.Found != "broken" || !strings.Contains(c.Detail, "provided: [") {
		t.Errorf("exit code %d: %+v", code, c)
	}
	if c.Fix != "the server refuses this key; check OPENAI_API_KEY" {
		t.Errorf("it advises %q", c.Fix)
	}
	if strings.Contains(out, "sk-1234567890") {
		t.Errorf("it shows the key:\n%s", out)
	}
}

// A28: a model whose server cannot be reached, or has no such model, is broken, with
// what to look at.
func TestDoctorWithoutANetwork(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	address := gone.URL
	vars := map[string]string{"REFRAIN_MODEL": "openai/m", "OPENAI_BASE_URL": address, "OPENAI_API_KEY": "sk-1234567890"}
	_, checks, _ := askDoctor(t, vars)
	if c := checks["models openai/m"]; c.Found != "broken" || c.Fix !=
		"the server has no such model, or the address is wrong; check the name of the model and OPENAI_BASE_URL and the network" {
		t.Errorf("a server that has nothing: %+v", c)
	}
	gone.Close()
	code, checks, out := askDoctor(t, vars)
	c := checks["models openai/m"]
	if code != term.ExitFailed || c.Found != "broken" || c.Fix != "the server cannot be reached; check OPENAI_BASE_URL and the network" {
		t.Errorf("exit code %d: %+v", code, c)
	}
	if strings.Contains(out, "sk-1234567890") {
		t.Errorf("it shows the key:\n%s", out)
	}
}

// A28: for a store that does not answer nobody waits longer than they like, and its
// password is not shown.
func TestDoctorWithAStoreThatIsAway(t *testing.T) {
	hangs, err := net.Listen("tcp", "127.0.0.1:0") // it takes calls, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Close()
	var stdout, stderr bytes.Buffer
	args := []string{"doctor", "--timeout", "100ms", "--store", "postgres://user:secret-password@" + hangs.Addr().String() + "/runs?sslmode=disable"}
	code := run(t.Context(), nil, args, func(string) string { return "" }, strings.NewReader(""), &stdout, &stderr)
	out := stdout.String() + stderr.String()
	if code != term.ExitFailed || !strings.Contains(out, " cannot be opened: ") || !strings.Contains(out, "no answer within 100ms") ||
		!strings.Contains(out, "check that the server runs and accepts this user") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if strings.Contains(out, "secret-password") {
		t.Errorf("it shows the password:\n%s", out)
	}
}
