// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/server"
)

// A definition is tried without a model, and nothing of it is kept.
func TestTry(t *testing.T) {
	s := open(t, map[string]string{"counting.yaml": counting})
	text := `name: polish
max_iterations: 8
score: {key: review, target: 8.0}
sub_agents:
  - {name: writer, model: openai/none, instructions: "Improve {{draft?}}", output_key: draft}
  - {name: judge, model: openai/none, instructions: "Score {{draft}}", output_key: review}
`
	var got struct {
		Loops []struct {
			Name       string
			Ended      bool
			Iterations int
			Shown      struct {
				Points  []struct{ Score float64 }
				Outlook struct {
					Words  struct{ Lead string }
					Ledger []struct{ Name, Tense string }
				}
			}
		}
		StandIns []struct{ Agent, Kind string } `json:"stand_ins"`
		Answer   string
	}
	s.ok("POST", "/api/v1/definitions:try", map[string]any{"text": text}, &got)
	if len(got.Loops) != 1 || got.Loops[0].Iterations != 4 || !got.Loops[0].Ended || len(got.StandIns) != 2 {
		t.Fatalf("got %+v", got)
	}
	if l := got.Loops[0].Shown; len(l.Points) != 4 || l.Points[3].Score != 8 || l.Outlook.Words.Lead != "The score reached 8" ||
		len(l.Outlook.Ledger) == 0 {
		t.Errorf("got %+v", l)
	}
	s.ok("POST", "/api/v1/definitions:try", map[string]any{"text": text, "course": "never_enough"}, &got, "Accept-Language", "pt-BR")
	if lead := got.Loops[0].Shown.Outlook.Words.Lead; got.Loops[0].Iterations != 8 || !strings.HasPrefix(lead, "Parou depois de 8") {
		t.Errorf("never enough: %d, %q", got.Loops[0].Iterations, lead)
	}
	var page struct{ Runs []listed }
	s.ok("GET", "/api/v1/runs", nil, &page)
	if len(page.Runs) != 0 {
		t.Errorf("tries are listed as runs: %+v", page.Runs)
	}
	s.refused(400, "bad_request", "POST", "/api/v1/definitions:try", map[string]any{"text": text, "course": "up"})
	s.refused(422, "bad_definition", "POST", "/api/v1/definitions:try", map[string]any{"text": "max_iterations: x\n"})
}

// What a client wants to try starts no program, reaches nobody, reads no file of others and no
// environment, and is bounded.
func TestTryOfAClientHasNoEffects(t *testing.T) {
	g := newGate(t)
	s := open(t, map[string]string{"notes.txt": "hidden"}, private, func(c *server.Config) {
		c.Getenv = func(name string) string { return "secret-of-" + name }
	})
	made := filepath.Join(t.TempDir(), "made")
	text := fmt.Sprintf(`name: x
max_iterations: 2
callbacks:
  after_agent: [{command: [touch, %[1]q]}, {webhook: %[2]q}]
sub_agents:
  - {name: c, command: [touch, %[1]q]}
  - {name: h, url: %[2]q, headers: {X: "${SECRET}"}}
  - {name: a, endpoint: %[2]q}
  - {name: p, question: "May we?"}
  - name: m
    model: openai/none
    instructions: go
    tools: [{mcp: {command: [touch, %[1]q]}}, {mcp: {url: %[2]q}}]
`, made, g.url)
	got := s.ok("POST", "/api/v1/definitions:try", map[string]any{"text": text}, nil)
	if _, err := os.Stat(made); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a command was run: %v", err)
	}
	if len(g.came) > 0 {
		t.Errorf("%d requests were sent", len(g.came))
	}
	if body := string(got.body); strings.Contains(body, "secret-of") || strings.Contains(body, "root:") {
		t.Errorf("the answer tells %s", body)
	}
	s.refused(422, "bad_definition", "POST", "/api/v1/definitions:try",
		map[string]any{"text": "name: s\nmodel: scripted//etc/passwd\ninstructions: go\n"})
	for _, ref := range []string{"../../etc/passwd", "/etc/passwd", "notes.txt"} {
		if got := s.do("POST", "/api/v1/definitions:try", map[string]any{"text": "name: x\nmax_iterations: 1\nsub_agents:\n  - ref: " + ref +
			"\n"}); got.status != 422 {
			t.Errorf("%s: %d %s", ref, got.status, got.body)
		}
	}
	s.refused(413, "too_large", "POST", "/api/v1/definitions:try", map[string]any{"text": "name: x\ntext: " + strings.Repeat("y", 1<<17)})
	grows := "name: x\nmax_iterations: 1000\nstate: {x: \"0123456789\"}\nsub_agents:\n  - {name: a, text: \"{{x}}{{x}}{{x}}{{x}}\", output_key: x}\n"
	s.ok("POST", "/api/v1/definitions:try", map[string]any{"text": grows}, nil)
}
