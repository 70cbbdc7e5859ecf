// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/anthropic"
)

// breakpoints are the places of a request that have one, with the life that is asked for.
func breakpoints(asked map[string]any) (at []string) {
	look := func(where string, list any) {
		blocks, _ := list.([]any)
		for i, b := range blocks {
			if c, ok := b.(map[string]any)["cache_control"].(map[string]any); ok {
				at = append(at, strings.TrimSpace(fmt.Sprintf("%s %d %s", where, i, strings.TrimPrefix(fmt.Sprint(c["ttl"]), "<nil>"))))
			}
		}
	}
	look("tool", asked["tools"])
	look("system", asked["system"])
	messages, _ := asked["messages"].([]any)
	for i, m := range messages {
		look(fmt.Sprintf("message %d block", i), m.(map[string]any)["content"])
	}
	return at
}

// Breakpoints stand behind what is asked for again, and are never more than four nor before the minimum.
func TestBreakpoints(t *testing.T) {
	text := func(role genai.Role, s string) *genai.Content { return genai.NewContentFromText(s, role) }
	talk := func(n int) (list []*genai.Content) {
		for range n {
			list = append(list, text(genai.RoleUser, "go on"), text(genai.RoleModel, "well"))
		}
		return append(list, text(genai.RoleUser, "and now"))
	}
	fresh := append(talk(1), text(genai.RoleUser, "only now"))
	thought := append(talk(0), &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{Text: "said"},
		{Text: "hm", Thought: true, ThoughtSignature: []byte("anthropic:s")}}}, text(genai.RoleUser, "only now"))
	for name, c := range map[string]struct {
		model string
		rules int // bytes of the system
		tool  int // bytes of a tool's description; 0 without a tool
		hint  *model.CacheHint
		said  []*genai.Content
		want  []string
	}{
		"nothing is asked for":          {"claude-sonnet-4-5", 9000, 0, nil, talk(1), nil},
		"nobody reads it again":         {"claude-sonnet-4-5", 9000, 0, &model.CacheHint{Key: "k", Static: 9000}, talk(1), nil},
		"all of the system":             {"claude-sonnet-4-5", 9000, 0, &model.CacheHint{Later: true, Static: 9000}, talk(1), []string{"system 0"}},
		"its beginning":                 {"claude-sonnet-4-5", 9000, 0, &model.CacheHint{Later: true, Static: 6000}, talk(1), []string{"system 0"}},
		"for an hour":                   {"claude-sonnet-4-5", 9000, 0, &model.CacheHint{Later: true, Static: 6000, Hour: true}, talk(1), []string{"system 0 1h"}},
		"too little stays":              {"claude-sonnet-4-5", 9000, 0, &model.CacheHint{Later: true, Static: 4000}, talk(1), nil},
		"below this model's minimum":    {"claude-opus-4-5", 9000, 0, &model.CacheHint{Later: true, Static: 9000}, talk(1), nil},
		"below that of a model unknown": {"m", 9000, 0, &model.CacheHint{Later: true, Next: true, Static: 9000}, talk(1), nil},
		"only the tools stay":           {"claude-sonnet-4-5", 9000, 5000, &model.CacheHint{Later: true}, talk(1), []string{"tool 0"}},
		"at most four": {"claude-sonnet-4-5", 9000, 5000, &model.CacheHint{Later: true, Next: true, Static: 6000, Hour: true}, talk(3),
			[]string{"system 0 1h", "system 1", "message 4 block 0", "message 6 block 0"}},
		"the first turn":      {"claude-sonnet-4-5", 9000, 0, &model.CacheHint{Next: true}, talk(0), []string{"system 0", "message 0 block 0"}},
		"not what is fresh":   {"claude-sonnet-4-5", 9000, 0, &model.CacheHint{Next: true, Fresh: 1}, fresh, []string{"system 0", "message 0 block 0", "message 2 block 0"}},
		"not at a thought":    {"claude-sonnet-4-5", 9000, 0, &model.CacheHint{Next: true, Fresh: 1}, thought, []string{"system 0", "message 0 block 0", "message 1 block 0"}},
		"all of it is fresh":  {"claude-sonnet-4-5", 9000, 0, &model.CacheHint{Next: true, Fresh: 9}, talk(1), []string{"system 0"}},
		"short, but it grows": {"claude-sonnet-4-5", 4090, 0, &model.CacheHint{Next: true}, talk(1), []string{"message 2 block 0"}},
	} {
		url, asked := serve(t, "application/json", hello)
		llm, err := anthropic.NewModel(c.model, anthropic.Config{BaseURL: url, APIKey: "k"})
		if err != nil {
			t.Fatal(err)
		}
		rules := strings.Repeat("Rules! ", c.rules/7+1)[:c.rules]
		req := &model.LLMRequest{Contents: c.said, Config: &genai.GenerateContentConfig{
			SystemInstruction: genai.NewContentFromText(rules, genai.RoleUser)}}
		if c.tool > 0 {
			req.Config.Tools = []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{
				{Name: "look", Description: strings.Repeat("x", c.tool)}}}}
		}
		for _, err := range llm.GenerateContent(model.WithCacheHint(t.Context(), c.hint), req, false) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := breakpoints(*asked); !slices.Equal(got, c.want) {
			t.Errorf("%s (-want +got):\n%s", name, cmp.Diff(c.want, got))
		}
		var system strings.Builder
		for _, b := range (*asked)["system"].([]any) {
			system.WriteString(b.(map[string]any)["text"].(string))
		}
		if system.String() != rules {
			t.Errorf("%s: the system is another", name)
		}
	}
}
