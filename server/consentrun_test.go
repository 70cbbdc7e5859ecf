// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refrain-dev/refrain/server"
)

// An agent that may only write files cannot change what a run starts that waits, or has failed: before it resumes the run, or answers
// its question, a person accepts the new script. The person's own answer, and a person's resume over the API, are not lost.
func TestAPersonAcceptsWhatAnAgentHasChangedUnderARun(t *testing.T) {
	files := map[string]string{
		"ask.yaml": "name: ask\ntype: sequential\nsub_agents:\n" +
			"  - {name: q, type: human, ask: answer, question: Which?}\n  - {name: go, command: [sh, tools/step.sh]}\n",
		"fail.yaml":     "name: fail\ncommand: [sh, tools/fail.sh]\n",
		"plain.yaml":    asking(`{name: q, question: "Which?", ask: answer}`),
		"tools/step.sh": "echo first",
		"tools/fail.sh": "exit 1",
	}
	for _, version := range []string{"", "2025-06-18"} {
		t.Run("protocol "+version, func(t *testing.T) {
			s := open(t, files, func(c *server.Config) { c.Accepts = func(string) bool { return false } })
			var consents []string
			accepts, answers := true, false
			onQuestion := func() {}
			who := func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				if strings.Contains(req.Params.Message, "on your machine") {
					consents = append(consents, req.Params.Message)
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"accept": accepts}}, nil
				}
				if !answers {
					return &mcp.ElicitResult{Action: "decline"}, nil
				}
				onQuestion()
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": "this"}}, nil
			}
			c := s.dialAs(version, who)
			run := c.call("run", map[string]any{"definition": "ask"})
			failed := c.call("run", map[string]any{"definition": "fail"})
			if run.Status != "waiting" || failed.Status != "failed" || len(consents) > 0 {
				t.Fatalf("the runs are %s and %s after %q", run.Status, failed.Status, consents)
			}
			answer := map[string]any{"run": run.Run, "value": "this"}
			retry := map[string]any{"run": failed.Run, "retry": true}
			s.write("tools/step.sh", "touch ran; echo second")
			s.write("tools/fail.sh", "touch ran; echo second")
			accepts = false
			c.fails("answer", answer, "refrain answer "+run.Run)
			c.fails("resume", retry, "refrain resume "+failed.Run)
			plain := s.dialed(version) // a client without forms
			plain.fails("answer", answer, "refrain answer "+run.Run)
			plain.fails("resume", retry, "refrain resume "+failed.Run)
			plain.fails("resume", map[string]any{"run": run.Run, "definition": "fail"}, "refrain trust ")
			if _, err := os.Stat(filepath.Join(s.dir, "ran")); !os.IsNotExist(err) {
				t.Fatalf("a program has run: %v", err)
			}
			if got := plain.call("watch", map[string]any{"run": run.Run}); got.Status != "waiting" || len(got.Waits) != 1 {
				t.Fatalf("refused, the run is %+v", got)
			}
			accepts, consents = true, nil
			if got := c.call("answer", answer); got.Result != "second" || len(consents) != 1 ||
				!strings.Contains(consents[0], "of run "+run.Run) || !strings.Contains(consents[0], "tools/step.sh") {
				t.Errorf("the answer is told as %+v after %q", got, consents)
			}
			if got := c.call("resume", retry); got.Result != "second" || len(consents) != 2 || !strings.Contains(consents[1], "tools/fail.sh") {
				t.Errorf("the resumed run is told as %+v after %q", got, consents)
			}

			// The user answers while the script changes.
			consents, answers = nil, true
			onQuestion = func() { s.write("tools/step.sh", "echo third"); onQuestion = func() {} }
			if args := map[string]any{"definition": "ask"}; version == "" {
				if got := c.call("run", args); got.Result != "third" || len(consents) != 1 {
					t.Errorf("the run is told as %+v after %q", got, consents)
				}
			} else {
				c.fails("run", args, "refrain answer ") // a call of this version asks once
			}
			if got := c.call("run", map[string]any{"definition": "plain"}); got.Status != "completed" || len(consents) > 1 {
				t.Errorf("a run without programs is %+v after %q", got, consents)
			}

			// Whoever is no agent answers as before.
			answers = false
			run = c.call("run", map[string]any{"definition": "ask"})
			s.write("tools/step.sh", "echo fourth")
			s.ok("POST", "/api/v1/runs/"+run.Run+":answer", map[string]any{"value": "this"}, nil)
			if got := s.wait(run.Run); got != "completed" {
				t.Errorf("the run of a person is %s", got)
			}
		})
	}
}
