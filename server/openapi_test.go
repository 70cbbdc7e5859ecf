// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The document describes each operation that there is, and no other, with the parameters of its path.
func TestOpenAPIAgreesWithTheRoutes(t *testing.T) {
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID string
			Summary     string
			Parameters  []struct{ Name, In, Description string }
			Responses   map[string]json.RawMessage
		}
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if err := json.Unmarshal(openapi, &doc); err != nil {
		t.Fatal(err)
	}
	inPath := regexp.MustCompile(`\{(\w+)\}`)
	ids := map[string]bool{}
	seen := map[string]bool{}
	for _, r := range new(Server).v1() {
		op, ok := doc.Paths[r.Path][strings.ToLower(r.Method)]
		if !ok {
			t.Errorf("%s %s is not described", r.Method, r.Path)
			continue
		}
		seen[strings.ToLower(r.Method)+" "+r.Path] = true
		if op.OperationID == "" || ids[op.OperationID] || op.Summary == "" || op.Responses["default"] == nil {
			t.Errorf("%s %s: operation %q is described badly", r.Method, r.Path, op.OperationID)
		}
		ids[op.OperationID] = true
		for _, m := range inPath.FindAllStringSubmatch(r.Path, -1) {
			i := slices.IndexFunc(op.Parameters, func(p struct{ Name, In, Description string }) bool { return p.Name == m[1] && p.In == "path" })
			if i < 0 {
				t.Errorf("%s %s: the parameter %s is not described", r.Method, r.Path, m[1])
			}
		}
	}
	for path, ops := range doc.Paths {
		for method := range ops {
			if !seen[method+" "+path] {
				t.Errorf("%s %s is described, and does not exist", method, path)
			}
		}
	}
	for _, ref := range regexp.MustCompile(`#/components/schemas/(\w+)`).FindAllStringSubmatch(string(openapi), -1) {
		if doc.Components.Schemas[ref[1]] == nil {
			t.Errorf("there is no schema %s", ref[1])
		}
	}
}
