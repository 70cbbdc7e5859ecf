// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/tool"
)

// processor is a tool that changes requests.
type processor func(*model.LLMRequest)

func (processor) Name() string        { return "processor" }
func (processor) Description() string { return "" }
func (processor) IsLongRunning() bool { return false }
func (p processor) ProcessRequest(_ tool.Context, req *model.LLMRequest) error {
	p(req)
	return nil
}

func askWith(t *testing.T, p processor, answers ...scripted.Answer) (said string, err error) {
	t.Helper()
	llm, err := scripted.New(scripted.Script{Answers: answers})
	if err != nil {
		t.Fatal(err)
	}
	a, err := llmagent.New(llmagent.Config{Name: "a", Model: llm, Instruction: "Be brief.", Tools: []tool.Tool{p}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.NewInMemory("app", a)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"One?", "Two?"} {
		for ev, err := range r.Run(t.Context(), "ana", "s1", genai.NewContentFromText(text, genai.RoleUser), agent.RunConfig{}) {
			if err != nil {
				return said, err
			}
			said += ev.Text()
		}
	}
	return said, nil
}

// A tool that prepares a request sees the instruction and the conversation. What it adds is in this request, and
// in no later one.
func TestToolsAddToTheRequest(t *testing.T) {
	add := func(req *model.LLMRequest) {
		asked := req.Contents[len(req.Contents)-1].Parts[0].Text
		tool.Instruct(req, "Mind "+asked, "", "And smile.")
		req.Contents = append(req.Contents, genai.NewContentFromText("seen "+asked, genai.RoleUser))
	}
	said, err := askWith(t, add,
		scripted.Answer{MatchRequest: `(?s)^system: Be brief\..*\n\nMind One\?\n\nAnd smile\.\nuser: One\?\nuser: seen One\?\n$`, Text: "1"},
		scripted.Answer{MatchRequest: `(?s)Mind Two\?\n\nAnd smile\.\nuser: One\?\nmodel: 1\nuser: Two\?\nuser: seen Two\?\n$`, Text: "2"})
	if err != nil || said != "12" {
		t.Errorf("%q, %v", said, err)
	}
}

// The conversation in a request is that of the log, which tools cannot change.
func TestToolsCannotChangeTheConversation(t *testing.T) {
	for name, change := range map[string]processor{
		"removed":  func(req *model.LLMRequest) { req.Contents = nil },
		"replaced": func(req *model.LLMRequest) { req.Contents = []*genai.Content{{Role: genai.RoleUser}} },
	} {
		if _, err := askWith(t, change, scripted.Answer{Text: "1"}); err == nil || !strings.Contains(err.Error(), "only append") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
