// SPDX-License-Identifier: Apache-2.0

// Package toolconfirmation describes a tool call that waits for a person's
// consent. Names and wire form are those of ADK for Go.
//
// An agent whose tool needs consent yields a function call named FunctionCallName and ends its
// turn. The client shows the call to a person and sends the answer as the user's next message:
//
//	original, err := toolconfirmation.OriginalCallFrom(question)
//	…
//	yes := &genai.FunctionResponse{
//		ID: question.ID, Name: toolconfirmation.FunctionCallName,
//		Response: map[string]any{"confirmed": true},
//	}
package toolconfirmation

import (
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/genai"
)

// FunctionCallName is the name of the function call by which an agent asks its
// client for a confirmation. Its arguments are originalFunctionCall, which is
// the call that waits, and toolConfirmation, which is a [ToolConfirmation].
const FunctionCallName = "adk_request_confirmation"

// ToolConfirmation is a question about one tool call, and its answer.
type ToolConfirmation struct {
	// Hint tells the person the subject of the consent.
	Hint string `json:"hint"`
	// Confirmed is the answer; false before there is one.
	Confirmed bool `json:"confirmed"`
	// Payload is further data that the tool gets back.
	Payload any `json:"payload"`

	// Form describes the data that the tool needs from the person; the answer's Payload has the data. Nil asks for consent
	// alone. ADK has no forms: its clients show the Hint and send the data as the payload. No answer can change the Form.
	Form *Form `json:"form,omitempty"`
	// Canceled reports that the person has closed the Form without a decision; Confirmed is false then.
	Canceled bool `json:"canceled,omitempty"`
}

// Form describes data that a tool needs from a person.
type Form struct {
	// Schema is the JSON Schema of an object of plain fields.
	Schema json.RawMessage `json:"schema"`
	// State is what the tool gets back with the answer.
	State json.RawMessage `json:"state,omitempty"`
}

const (
	originalCall = "originalFunctionCall"
	confirmation = "toolConfirmation"
)

// Question returns the call with which an agent asks about a tool call. id is the question's ID.
// Its arguments are a *genai.FunctionCall and a ToolConfirmation, as in ADK; a question from a
// store has plain maps instead, and [OriginalCallFrom] accepts both.
func Question(id string, original *genai.FunctionCall, c ToolConfirmation) *genai.FunctionCall {
	return &genai.FunctionCall{ID: id, Name: FunctionCallName, Args: map[string]any{
		originalCall: &genai.FunctionCall{ID: original.ID, Name: original.Name, Args: original.Args},
		confirmation: c,
	}}
}

// OriginalCallFrom returns the call that a question is about. It fails if functionCall is not a
// question.
func OriginalCallFrom(functionCall *genai.FunctionCall) (*genai.FunctionCall, error) {
	if functionCall == nil {
		return nil, errors.New("original call of a confirmation: there is no function call")
	}
	v, ok := functionCall.Args[originalCall]
	if !ok {
		return nil, fmt.Errorf("original call of confirmation %q: the argument %s is missing", functionCall.ID,
			originalCall)
	}
	if given, ok := v.(*genai.FunctionCall); ok && given != nil {
		return given, nil
	}
	var call *genai.FunctionCall
	if err := convert(v, &call); err != nil {
		return nil, fmt.Errorf("original call of confirmation %q: %w", functionCall.ID, err)
	}
	if call == nil {
		return nil, fmt.Errorf("original call of confirmation %q: the argument %s is null", functionCall.ID,
			originalCall)
	}
	return call, nil
}

// RequestFrom returns what a question asks: its Hint and Form. It fails if functionCall is not a question.
func RequestFrom(functionCall *genai.FunctionCall) (ToolConfirmation, error) {
	var c ToolConfirmation
	if functionCall == nil {
		return c, errors.New("request of a confirmation: there is no function call")
	}
	if given, ok := functionCall.Args[confirmation].(ToolConfirmation); ok {
		return given, nil
	}
	if err := convert(functionCall.Args[confirmation], &c); err != nil {
		return c, fmt.Errorf("request of confirmation %q: %w", functionCall.ID, err)
	}
	return c, nil
}

// AnswerFrom reads a person's answer: {"confirmed": true} or false, with a payload if the tool
// asked for one. ADK's web page sends the same as JSON in a text, {"response": "…"}. It fails on an
// answer that says neither yes nor no.
func AnswerFrom(r *genai.FunctionResponse) (*ToolConfirmation, error) {
	if r == nil {
		return nil, errors.New("answer to a confirmation: there is no function response")
	}
	said := r.Response
	if text, ok := said["response"].(string); ok && len(said) == 1 {
		said = nil
		if err := json.Unmarshal([]byte(text), &said); err != nil {
			return nil, fmt.Errorf("answer to confirmation %q: %w", r.ID, err)
		}
	}
	if _, ok := said["confirmed"].(bool); !ok {
		return nil, fmt.Errorf(`answer to confirmation %q: send {"confirmed": true} or {"confirmed": false}`, r.ID)
	}
	c := new(ToolConfirmation)
	if err := convert(said, c); err != nil {
		return nil, fmt.Errorf("answer to confirmation %q: %w", r.ID, err)
	}
	return c, nil
}

// convert gives a value another type, by way of JSON.
func convert(from, to any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}
