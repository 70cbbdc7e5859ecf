// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/session/mark"
)

const editable = `name: editable
type: sequential
workspace: {from: project}
sub_agents:
  - {name: begin, command: [sh, -c, echo 1 >n]}
  - {name: ask, question: "Go?"}
  - {name: end, command: [sh, -c, cat n; cat mine || true], output_key: said}
`

// Files that somebody has changed while the run waited: a client decides by any protocol what becomes of them.
func TestAClientDecidesAboutEditedFiles(t *testing.T) {
	if err := workspace.CheckGit(t.Context()); err != nil || runtime.GOOS == "windows" {
		t.Skip("no git, or no shell: ", err)
	}
	type run struct {
		id     string
		answer func(question string, value any)
	}
	ways := map[string]func(*site) run{
		"REST": func(s *site) run {
			id := s.run(map[string]any{"definition": "editable"}).Run
			return run{id, func(q string, value any) {
				if r, ok := value.(mark.Resolution); ok && r.Action != "" {
					bad := map[string]any{"question": q, "value": mark.Resolution{Action: "skip"}}
					s.refused(422, "bad_answer", "POST", "/api/v1/runs/"+id+":answer", bad)
				}
				s.ok("POST", "/api/v1/runs/"+id+":answer", map[string]any{"question": q, "value": value}, nil)
			}}
		},
		"MCP": func(s *site) run {
			c := s.dialed("")
			got := c.call("run", map[string]any{"definition": "editable"})
			return run{got.Run, func(q string, value any) {
				c.call("answer", map[string]any{"run": got.Run, "question": q, "value": value})
			}}
		},
		"A2A": func(s *site) run {
			p := s.peer("editable", speeches[0])
			task := p.send(words("Go on."))
			return run{string(task.ID), func(_ string, value any) {
				word := "yes"
				if r, ok := value.(mark.Resolution); ok {
					if got := p.get(task.ID); got.Status.State != a2a.TaskStateInputRequired || !strings.Contains(messageText(got.Status), "keep, discard, base") {
						s.Errorf("the question is %s", messageText(got.Status))
					}
					word = r.Action
				}
				p.send(to(task, word))
			}}
		},
	}
	for way, start := range ways {
		for action, want := range map[string]string{mark.ResolveKeep: "1\nmine", mark.ResolveBase: "1\nmine", mark.ResolveDiscard: "1"} {
			t.Run(way+"/"+action, func(t *testing.T) {
				s := open(t, map[string]string{"editable.yaml": editable, "project/a.txt": "a\n"})
				r := start(s)
				waits := func() mark.Question {
					t.Helper()
					if status := s.wait(r.id); status != "waiting" {
						t.Fatalf("the run is %s: %s", status, s.logs)
					}
					var row listed
					s.ok("GET", "/api/v1/runs/"+r.id, nil, &row)
					return row.Waits[0]
				}
				q := waits()
				tree, err := filepath.Glob(filepath.Join(runfiles.Store(s.dir), "runs", "*", "tree"))
				if err != nil || len(tree) != 1 {
					t.Fatal(tree, err)
				}
				if err := os.WriteFile(filepath.Join(tree[0], "mine"), []byte("mine\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				r.answer(q.ID, true)
				if q = waits(); !q.IsEdited() || !strings.Contains(q.Text, "mine") {
					t.Fatalf("it asks %+v", q)
				}
				r.answer(q.ID, mark.Resolution{Action: action})
				if status := s.wait(r.id); status != "completed" {
					t.Fatalf("the run is %s: %s", status, s.logs)
				}
				var state struct {
					State struct {
						Said      string
						Workspace struct{ Base string }
					}
				}
				body := s.ok("GET", "/api/v1/runs/"+r.id+"/state", nil, nil).body
				if err := json.Unmarshal(body, &state); err != nil || state.State.Said != want ||
					(state.State.Workspace.Base != "") != (action == mark.ResolveBase) {
					t.Errorf("%v: the state is %s", err, body)
				}
			})
		}
	}
}
