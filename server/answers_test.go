// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// What the API answers fits the schema that openapi.json gives for it, also where there is nothing to list.
func TestAnswersFitTheOpenAPIDocument(t *testing.T) {
	s := open(t, map[string]string{"counting.yaml": counting, "asking.yaml": asking(`{name: q, question: "Which?", ask: answer, options: [a, b]}`)})
	empty := open(t, nil)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(s.ok("GET", "/api/v1/openapi.json", nil, nil).body))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("http://openapi.json/", doc); err != nil {
		t.Fatal(err)
	}
	fits := func(s *site, method, operation, path string, body any) {
		t.Helper()
		got := s.do(method, "/api/v1"+path, body)
		status := fmt.Sprint(got.status)
		kind := "application~1json"
		if got.status >= 400 {
			status, kind = "4XX", "application~1problem+json"
		}
		escaped := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(operation)
		schema, err := c.Compile("http://openapi.json/#/paths/" + escaped + "/" + strings.ToLower(method) + "/responses/" + status + "/content/" + kind + "/schema")
		if err != nil {
			t.Errorf("%s %s answers %s, of which the document says: %v", method, path, status, err)
			return
		}
		answer, err := jsonschema.UnmarshalJSON(bytes.NewReader(got.body))
		if err == nil {
			err = schema.Validate(answer)
		}
		if err != nil {
			t.Errorf("%s %s answers %.300s, which does not fit: %v", method, path, got.body, err)
		}
	}
	run, waits := s.run(map[string]any{"definition": "counting"}).Run, s.run(map[string]any{"definition": "asking"}).Run
	s.wait(run)
	s.wait(waits)
	for _, x := range []struct {
		method, operation string
		body              any
	}{
		{"GET", "/definitions", nil},
		{"GET", "/definitions/{name}", nil},
		{"POST", "/definitions:validate", map[string]any{"text": counting}},
		{"POST", "/definitions:validate", map[string]any{"text": "name: x\n"}},
		{"POST", "/definitions:edit", map[string]any{"text": counting, "changes": []any{}}},
		{"POST", "/definitions:edit", map[string]any{"text": counting, "changes": []any{map[string]any{"op": "rename_agent", "path": "/", "name": "other"}}}},
		{"POST", "/definitions:edit", map[string]any{"text": counting, "changes": []any{map[string]any{"op": "nonsense"}}}},
		{"POST", "/definitions:outline", map[string]any{"text": counting}},
		{"POST", "/definitions:complete", map[string]any{"text": "name: x\nma", "line": 2, "column": 3}},
		{"POST", "/definitions:complete", map[string]any{"text": "", "line": 9, "column": 9}},
		{"POST", "/definitions:try", map[string]any{"text": counting}},
		{"GET", "/schema/fields.json", nil},
		{"GET", "/runs", nil},
		{"POST", "/runs", map[string]any{"definition": "none"}},
		{"POST", "/runs", map[string]any{"definition": "counting"}},
		{"GET", "/runs/{id}", nil},
		{"GET", "/runs/{id}/iterations", nil},
		{"GET", "/runs/{id}/scores", nil},
		{"GET", "/runs/{id}/view", nil},
		{"GET", "/runs/{id}/view/iterations", nil},
		{"GET", "/runs/{id}/state", nil},
		{"GET", "/runs/{id}/diff", nil},
		{"GET", "/runs/{id}/files", nil},
		{"GET", "/runs/{id}/files/iterations", nil},
		{"POST", "/runs:backtest", map[string]any{}},
		{"GET", "/runs:backtest", nil},
		{"GET", "/server", nil},
		{"POST", "/runs/{id}:pause", map[string]any{}},
		{"POST", "/runs/{id}:tell", map[string]any{"text": "be quick"}},
		{"POST", "/runs/{id}:tell", map[string]any{}},
		{"POST", "/runs/{id}:resume", map[string]any{}},
		{"POST", "/runs/{id}:fork", map[string]any{}},
		{"POST", "/runs/{id}:answer", map[string]any{"value": "a"}},
		{"POST", "/runs/{id}:cancel", map[string]any{}},
	} {
		for _, id := range []string{run, waits, "none"} {
			at := strings.NewReplacer("{id}", id, "{name}", "counting").Replace(x.operation)
			fits(s, x.method, x.operation, at, x.body)
		}
		fits(empty, x.method, x.operation, strings.NewReplacer("{id}", "none", "{name}", "none").Replace(x.operation), x.body)
	}
	// Each operation says that a request can be wrong.
	var listed struct {
		Paths map[string]map[string]struct{ Responses map[string]any }
	}
	s.ok("GET", "/api/v1/openapi.json", nil, &listed)
	for path, operations := range listed.Paths {
		for method, op := range operations {
			if op.Responses["4XX"] == nil {
				text, _ := json.Marshal(op.Responses)
				t.Errorf("%s %s lists no 4XX: %.80s", method, path, text)
			}
		}
	}
}
