// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// OutputError reports that two answers of the model did not fit the agent's OutputSchema.
type OutputError struct {
	// Answer is the model's second answer.
	Answer string
	// Problems has a line for each problem, such as
	//	score: expected a number, got the string "high"
	Problems []string
}

// Error lists the problems.
func (e *OutputError) Error() string {
	return "the model's answer does not fit the output schema: " + strings.Join(e.Problems, "; ")
}

// output is the required shape of an agent's final answer; nil for free text.
type output struct {
	schema *genai.Schema
	shape  *functiontool.Shape
}

func newOutput(s *genai.Schema) (*output, error) {
	if s == nil {
		return nil, nil
	}
	shape, err := functiontool.NewShape(functiontool.SchemaOf(s))
	if err != nil {
		return nil, fmt.Errorf("output schema: %w", err)
	}
	return &output{schema: s, shape: shape}, nil
}

// isObject reports whether a schema describes an object. Its type may be in lower case.
func isObject(s *genai.Schema) bool {
	return strings.EqualFold(string(s.Type), string(genai.TypeObject))
}

// problems returns the problems of an answer, one text each; nil if it fits.
func (o *output) problems(text string) []string {
	if o == nil {
		return nil
	}
	if strings.TrimSpace(text) == "" {
		return []string{"it is empty"}
	}
	var v any
	d := json.NewDecoder(strings.NewReader(text))
	err := d.Decode(&v)
	if err == nil {
		if _, err = d.Token(); err == nil {
			err = errors.New("there is more after the value")
		} else if errors.Is(err, io.EOF) {
			return o.shape.Check(v)
		}
	}
	return []string{fmt.Sprintf("it is not JSON alone, without fences or words around it (%v)", err)}
}

// demand makes a request ask for an answer of the required shape. It returns an instruction for the model.
//
// An agent without tools asks for JSON by the schema, which every provider supports. An agent with tools gets an
// additional tool, as in ADK, whose arguments are the answer. Many models and servers refuse a request for both JSON
// and calls, and some answer in JSON and never call a tool.
func (o *output) demand(req *model.LLMRequest) (string, error) {
	if o == nil {
		return "", nil
	}
	if len(req.Config.Tools) == 0 {
		req.Config.ResponseSchema, req.Config.ResponseMIMEType = o.schema, "application/json"
		return "", nil
	}
	t := &answerTool{shape: o.shape, schema: o.schema}
	if t.inside = !isObject(o.schema); t.inside {
		t.schema = &genai.Schema{
			Type: genai.TypeObject, Properties: map[string]*genai.Schema{insideKey: o.schema},
			Required: []string{insideKey},
		}
	}
	return fmt.Sprintf("When you are done, call %s: its arguments are your final answer. Do not give the answer "+
		"as text.", answerName), tool.Pack(req, t)
}

const (
	answerName = "set_model_response"
	insideKey  = "response" // argument that holds an answer that is not an object
)

// answerTool is the tool that records the final answer of a turn. Each request has its own.
type answerTool struct {
	schema *genai.Schema
	shape  *functiontool.Shape
	inside bool // the answer is not an object, so it is in the argument insideKey

	mu       sync.Mutex
	text     string // the answer, as JSON
	problems []string
}

func (*answerTool) Name() string        { return answerName }
func (*answerTool) IsLongRunning() bool { return false }
func (*answerTool) Description() string {
	return "Takes your final answer. Call it once, when nothing else is left to do."
}

func (t *answerTool) Declaration() *genai.FunctionDeclaration {
	return &genai.FunctionDeclaration{Name: t.Name(), Description: t.Description(), Parameters: t.schema}
}

func (t *answerTool) Run(_ tool.Context, args any) (map[string]any, error) {
	if m, ok := args.(map[string]any); ok && t.inside {
		args = m[insideKey]
	}
	text, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	var v any // a copy, because Check removes null values
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, err
	}
	problems := t.shape.Check(v)
	if problems == nil {
		if text, err = json.Marshal(v); err != nil {
			return nil, err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text, t.problems = string(text), problems
	if problems != nil {
		return nil, &functiontool.ArgumentsError{Tool: answerName, Problems: problems}
	}
	return map[string]any{}, nil
}

// structured returns the event with the final answer if a call of the turn gave it, or nil. A
// second answer that does not fit is an [*OutputError], unless the turn leaves the loop and so
// needs no answer.
func (r *run) structured(req *model.LLMRequest, leaves bool) (*session.Event, error) {
	t, _ := req.Tools[answerName].(*answerTool)
	if t == nil {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.problems != nil && leaves:
		return nil, nil
	case t.problems != nil:
		return nil, r.misfit(t.text, t.problems)
	case t.text == "":
		return nil, nil
	}
	ev := &session.Event{Author: r.Name()}
	ev.Content = genai.NewContentFromText(t.text, genai.RoleModel)
	r.keep(ev)
	return ev, nil
}

// misfit counts an answer that does not fit. After the first one the agent asks again.
func (r *run) misfit(answer string, problems []string) error {
	if r.misfits++; r.misfits > 1 {
		return &OutputError{Answer: answer, Problems: problems}
	}
	r.prompt = "Your answer does not fit its schema: " + strings.Join(problems, "; ") + ". Give the whole answer again."
	return nil
}
