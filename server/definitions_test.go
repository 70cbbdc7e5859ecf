// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/runs/operations"
)

// U4, U12: definitions are written, and nobody's change is lost.
func TestDefinitions(t *testing.T) {
	s := open(t, map[string]string{"counting.yaml": counting, "other/loop.yaml": counting, "values.yaml": "image: nginx\n"})
	var list struct {
		Definitions []struct {
			Name, File string
			Valid      bool
		}
	}
	s.ok("GET", "/api/v1/definitions", nil, &list)
	var names []string
	for _, d := range list.Definitions {
		names = append(names, d.Name+" "+d.File)
	}
	if diff := cmp.Diff([]string{"counting counting.yaml", "other other/loop.yaml"}, names); diff != "" {
		t.Errorf("definitions (-want +got):\n%s", diff)
	}
	path := "/api/v1/definitions/counting"
	first := s.ok("GET", path, nil, nil).header.Get("ETag")
	if got := s.ok("GET", path, nil, nil, "Accept", "application/yaml"); string(got.body) != counting {
		t.Errorf("the text is %s", got.body)
	}
	if got := s.do("GET", path, nil, "If-None-Match", first); got.status != http.StatusNotModified {
		t.Errorf("the same again: %d", got.status)
	}
	changed := strings.Replace(counting, "max_iterations: 40", "max_iterations: 4 # fewer", 1)
	s.refused(428, "no_etag", "PUT", path, changed)
	s.refused(412, "changed", "PUT", path, changed, "If-Match", `"old"`)
	s.refused(412, "exists", "PUT", path, changed, "If-None-Match", "*")
	s.refused(428, "no_etag", "PUT", path, changed, "If-None-Match", `"another"`)
	s.refused(422, "bad_definition", "PUT", path, "name: counting\nmax_iteration: 4\n", "If-Match", first)
	second := s.ok("PUT", path, changed, nil, "If-Match", first).header.Get("ETag")
	s.refused(412, "changed", "PUT", path, counting, "If-Match", first)
	s.refused(412, "changed", "DELETE", path, nil, "If-Match", first)
	if text, err := os.ReadFile(filepath.Join(s.dir, "counting.yaml")); err != nil || string(text) != changed {
		t.Errorf("the file has %q, %v", text, err)
	}
	s.ok("DELETE", path, nil, nil, "If-Match", second)
	s.refused(404, "definition_not_found", "GET", path, nil)
	if got := s.ok("PUT", "/api/v1/definitions/new", counting, nil); got.status != http.StatusCreated {
		t.Errorf("a new one: %d", got.status)
	}
	s.refused(412, "changed", "PUT", "/api/v1/definitions/gone", counting, "If-Match", first)
}

// The file of schedules is no definition: no author reads, writes or deletes it as one, or adds a case to it.
func TestScheduleFileIsNoDefinition(t *testing.T) {
	const text = "schedules: [{name: s, definition: counting, every: 1h}]\n"
	s := open(t, map[string]string{"counting.yaml": counting, "schedules.yaml": text})
	for _, name := range []string{"schedules", "Schedules", "schedules.yaml"} {
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			detail := s.refused(400, "bad_request", method, "/api/v1/definitions/"+name, counting, "If-Match", operations.TagOf([]byte(text)))
			if !strings.Contains(detail, "schedules.yaml is the file of schedules") {
				t.Errorf("%s %s: %s", method, name, detail)
			}
		}
	}
	s.refused(400, "bad_request", "POST", "/api/v1/runs/r_1:case", map[string]any{"file": "schedules.yaml"})
	if now, err := os.ReadFile(filepath.Join(s.dir, "schedules.yaml")); err != nil || string(now) != text {
		t.Errorf("the file has %q, %v", now, err)
	}
}

// A definition has the name of its file without the ending: whoever gives another name is told so.
func TestNameOfADefinitionThatIsNone(t *testing.T) {
	s := open(t, map[string]string{"counting.yaml": counting, "other/loop.yaml": counting})
	for name, want := range map[string]string{
		"counting.yaml": `"counting.yaml": a name has no ending, write "counting"`,
		"countin":       `"countin": did you mean "counting"?`,
		"othr":          `"othr": did you mean "other"?`,
		"nothing":       `"nothing"`,
	} {
		if got := s.refused(404, "definition_not_found", "POST", "/api/v1/runs", map[string]any{"definition": name}); got != want {
			t.Errorf("a run of %s: %s, want %s", name, got, want)
		}
	}
}

// C20: the problems of a text have their positions, and the changes that solve them.
func TestValidate(t *testing.T) {
	s := open(t, nil)
	type checked struct {
		Valid    bool
		Problems []struct {
			Line, Column, Length int
			Code, Severity       string
			Fixes                []struct {
				Line, Column, Length int
				Text                 string
			}
		}
		Agents []struct{ Name, Type string }
		Stops  []struct{ Reason string }
	}
	var got checked
	s.ok("POST", "/api/v1/definitions:validate", strings.Replace(counting, "max_iterations", "max_iteration", 1), &got)
	if got.Valid || len(got.Problems) == 0 || got.Problems[0].Line != 2 || len(got.Problems[0].Fixes) != 1 ||
		got.Problems[0].Fixes[0].Text != "max_iterations" {
		t.Errorf("got %+v", got)
	}
	got = checked{}
	s.ok("POST", "/api/v1/definitions:validate", counting, &got)
	if !got.Valid || len(got.Agents) != 3 || got.Agents[0].Type != "loop" || len(got.Stops) == 0 {
		t.Errorf("got %+v", got)
	}
	got = checked{}
	s.ok("POST", "/api/v1/definitions:validate", "name: x\ncommand: [ls]\n", &got)
	if got.Valid {
		t.Error("a command of a client is valid")
	}
	s.ok("POST", "/api/v1/definitions:validate", "a: [", &got)
}

// U5, U6: a form changes the text, and leaves comments as they are.
// U4: a text that this server does not take is told while it is written, and not only when it is saved. What is
// in the folder already is.
func TestOutlineSaysWhatIsRefused(t *testing.T) {
	const text = "name: shell\nmax_iterations: 1\nsub_agents:\n  - name: hello\n    command: [echo, hello]\n"
	s := open(t, map[string]string{"shell.yaml": text})
	for body, refused := range map[string]bool{text: false, text + "\n": true} {
		var got struct {
			Valid, Runs bool
			Problems    []struct{ Path, Code, Message string }
		}
		s.ok("POST", "/api/v1/definitions:outline?name=shell", body, &got, "Content-Type", "application/yaml")
		if got.Valid == refused || got.Runs == refused || refused != slices.ContainsFunc(got.Problems, func(p struct{ Path, Code, Message string }) bool {
			return p.Path == "sub_agents[0].command" && strings.Contains(p.Message, "--allow-commands")
		}) {
			t.Errorf("refused should be %v: %+v", refused, got)
		}
	}
}

// Explanations of fields, problems and reasons are in the language of the browser.
func TestFormInPortuguese(t *testing.T) {
	const text = "name: x\nmax_iterations: many\nsub_agents:\n  - {name: a, text: hello}\n"
	s := open(t, nil)
	pt := []string{"Accept-Language", "pt-BR,pt;q=0.9"}
	yaml := append([]string{"Content-Type", "application/yaml"}, pt...)
	const want = `max_iterations deve ser um número inteiro, e não \"many\"`
	for path, headers := range map[string][]string{"/api/v1/definitions:outline": yaml, "/api/v1/definitions:validate": yaml} {
		if got := s.ok("POST", path, text, nil, headers...); !strings.Contains(string(got.body), want) {
			t.Errorf("%s: %s", path, got.body)
		}
	}
	if got := s.do("PUT", "/api/v1/definitions/x", text, append(yaml, "If-None-Match", "*")...); got.status != 422 || !strings.Contains(string(got.body), want) {
		t.Errorf("saved: %d %s", got.status, got.body)
	}
	if got := s.ok("GET", "/api/v1/schema/fields.json", nil, nil, pt...); !strings.Contains(string(got.body), "objetivo do laço") {
		t.Errorf("the fields: %.300s", got.body)
	}
}

func TestEdit(t *testing.T) {
	s := open(t, nil)
	text := "name: counting # ours\n" + strings.TrimPrefix(counting, "name: counting\n")
	var got struct{ Text string }
	s.ok("POST", "/api/v1/definitions:edit", map[string]any{"text": text, "changes": []map[string]any{
		{"op": "set", "path": "max_iterations", "value": 7},
		{"op": "clear", "path": "description"},
		{"op": "move", "path": "sub_agents", "from": 1, "to": 0},
		{"op": "rename_agent", "path": "say", "name": "tell"},
	}}, &got)
	if !strings.Contains(got.Text, "name: counting # ours") || !strings.Contains(got.Text, "max_iterations: 7") ||
		strings.Index(got.Text, "name: tell") > strings.Index(got.Text, "name: count\n") {
		t.Errorf("the text is\n%s", got.Text)
	}
	s.refused(422, "cannot_edit", "POST", "/api/v1/definitions:edit",
		map[string]any{"text": text, "changes": []map[string]any{{"op": "remove", "path": "nothing"}}})
	s.refused(400, "bad_request", "POST", "/api/v1/definitions:edit", map[string]any{"text": text, "changes": []map[string]any{{"op": "explode"}}})
}
