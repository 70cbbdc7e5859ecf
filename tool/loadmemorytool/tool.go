// SPDX-License-Identifier: Apache-2.0

// Package loadmemorytool provides load_memory, with which a model searches the user's earlier sessions.
//
//	a, err := llmagent.New(llmagent.Config{Name: "helper", Model: llm, Tools: []tool.Tool{loadmemorytool.New()}})
//
// The runner needs a memory service. Package preloadmemorytool searches without a call of the model.
package loadmemorytool

import (
	"errors"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/tool"
)

const (
	name        = "load_memory"
	instruction = "You have memory: you can search what was said in earlier conversations with this user. If the answer may be there, call " +
		"`" + name + "` with a query before you answer."
)

// New returns load_memory. Its answer is a map with "memories", a list of [memory.Entry].
func New() tool.Function { return loadMemory{} }

type loadMemory struct{}

func (loadMemory) Name() string        { return name }
func (loadMemory) Description() string { return "Loads the memory for the current user." }
func (loadMemory) IsLongRunning() bool { return false }

func (t loadMemory) Declaration() *genai.FunctionDeclaration {
	return &genai.FunctionDeclaration{Name: name, Description: t.Description(), Parameters: &genai.Schema{
		Type:       genai.TypeObject,
		Properties: map[string]*genai.Schema{"query": {Type: genai.TypeString, Description: "What to search for, in a few words."}},
		Required:   []string{"query"},
	}}
}

func (t loadMemory) ProcessRequest(_ tool.Context, req *model.LLMRequest) error {
	if err := tool.Pack(req, t); err != nil {
		return err
	}
	tool.Instruct(req, instruction)
	return nil
}

func (loadMemory) Run(ctx tool.Context, args any) (map[string]any, error) {
	m, _ := args.(map[string]any)
	query, ok := m["query"].(string)
	if !ok {
		return nil, errors.New(`query: a text is needed, such as {"query": "favourite colour"}`)
	}
	found, err := ctx.SearchMemory(ctx, query)
	if err != nil {
		return nil, err
	}
	if found == nil || found.Memories == nil {
		return map[string]any{"memories": []memory.Entry{}}, nil
	}
	return map[string]any{"memories": found.Memories}, nil
}
