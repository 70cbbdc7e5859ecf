// SPDX-License-Identifier: Apache-2.0

package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/genai"
)

// say adds parts to a request's contents; neighbours of one role are one
// content, so that requests compare alike.
func say(req *Request, isModel bool, parts ...*genai.Part) {
	role := string(genai.RoleUser)
	if isModel {
		role = string(genai.RoleModel)
	}
	if n := len(req.Contents); n > 0 && req.Contents[n-1].Role == role {
		req.Contents[n-1].Parts = append(req.Contents[n-1].Parts, parts...)
		return
	}
	req.Contents = append(req.Contents, &genai.Content{Role: role, Parts: parts})
}

// lastWord checks that the user speaks last.
func lastWord(req *Request) error {
	if n := len(req.Contents); n == 0 || req.Contents[n-1].Role != string(genai.RoleUser) {
		return errors.New("the user has not the last word")
	}
	return nil
}

// addFunction checks a function's declaration and adds it to a request.
func addFunction(req *Request, name, description string, schema json.RawMessage) error {
	if !functionName.MatchString(name) {
		return fmt.Errorf("function name %q", name)
	}
	var s struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(schema, &s); err != nil || s.Type != "object" {
		return fmt.Errorf("function %q: parameters are not an object: %s", name, schema)
	}
	if len(req.Config.Tools) == 0 {
		req.Config.Tools = []*genai.Tool{{}}
	}
	t := req.Config.Tools[0]
	if slices.ContainsFunc(t.FunctionDeclarations, func(f *genai.FunctionDeclaration) bool { return f.Name == name }) {
		return fmt.Errorf("function %q is declared twice", name)
	}
	t.FunctionDeclarations = append(t.FunctionDeclarations, &genai.FunctionDeclaration{Name: name,
		Description: description, ParametersJsonSchema: schema})
	return nil
}

// functionResponse is a function's answer whose JSON came as text.
func functionResponse(id, name string, parts []*genai.Part) ([]*genai.Part, error) {
	if len(parts) != 1 {
		return nil, fmt.Errorf("the answer to call %q has %d parts", id, len(parts))
	}
	var response map[string]any
	if err := json.Unmarshal([]byte(parts[0].Text), &response); err != nil {
		return nil, fmt.Errorf("the answer to call %q is not JSON: %w", id, err)
	}
	return []*genai.Part{{FunctionResponse: &genai.FunctionResponse{ID: id, Name: name, Response: response}}}, nil
}

// checkClosed checks that each object of a schema is closed and, for OpenAI's strict
// mode, that each of its properties is required.
func checkClosed(schema json.RawMessage, allRequired bool) error {
	var s struct {
		Type       any                        `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
		Additional *bool                      `json:"additionalProperties"`
		Items      json.RawMessage            `json:"items"`
		AnyOf      []json.RawMessage          `json:"anyOf"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return err
	}
	if s.Type == "object" && (s.Additional == nil || *s.Additional) {
		return errors.New("additionalProperties is not false")
	}
	if allRequired && len(s.Required) != len(s.Properties) {
		return fmt.Errorf("properties that are not required: %s", schema)
	}
	below := s.AnyOf
	for _, p := range s.Properties {
		below = append(below, p)
	}
	if len(s.Items) > 0 {
		below = append(below, s.Items)
	}
	for _, sub := range below {
		if err := checkClosed(sub, allRequired); err != nil {
			return err
		}
	}
	return nil
}
