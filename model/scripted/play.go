// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/internal/turns"
)

// rule is an answer with its patterns compiled.
type rule struct {
	Answer
	match, matchRequest *regexp.Regexp
}

var internalName = lazyregexp.New(`Your internal name is "([^"]*)"`)

// Take returns the next answer to a request and marks it as given, as GenerateContent does. It is
// for code that sends the answers in another way, such as a server with a provider's format. Calls
// have their IDs. If no answer is left, it fails with an [*model.APIError] that is not retryable.
func (m *Model) Take(req *model.LLMRequest) (Answer, error) {
	system := systemText(req)
	agent := ""
	if found := internalName().FindStringSubmatch(system); found != nil {
		agent = found[1]
	}
	last, all := lastUserText(req.Contents), ""
	if m.readsAll { // it may be long
		all = "system: " + system + "\n" + transcript(req.Contents)
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	m.turns[agent]++
	turn := m.turns[agent]
	fits := -1
	for i, r := range m.rules {
		if r.Agent != "" && r.Agent != agent || r.Turn != 0 && r.Turn != turn || !r.match.MatchString(last) ||
			!r.matchRequest.MatchString(all) {
			continue
		}
		fits = i
		if r.Repeat || !m.given[i] {
			m.given[i] = true
			return r.Answer.withIDs(agent, turn), nil
		}
	}
	if fits >= 0 && m.script.RepeatLast {
		return m.rules[fits].Answer.withIDs(agent, turn), nil
	}
	who := "an agent that does not say its name"
	if agent != "" {
		who = fmt.Sprintf("agent %q", agent)
	}
	return Answer{}, &model.APIError{
		Provider: provider, Code: "no_answer",
		Message: fmt.Sprintf("the script has no answer for turn %d of %s: add one, or repeat_last: true", turn, who),
	}
}

// withIDs gives the calls IDs that are the same in each run and differ within
// one.
func (a Answer) withIDs(agent string, turn int) Answer {
	calls := make([]Call, len(a.Calls))
	for i, c := range a.Calls {
		if c.ID == "" {
			c.ID = fmt.Sprintf("call_%s_%d_%d", agent, turn, i+1)
		}
		calls[i] = c
	}
	a.Calls = calls
	return a
}

func systemText(req *model.LLMRequest) string {
	if req.Config == nil {
		return ""
	}
	return turns.Text(req.Config.SystemInstruction, "\n")
}

func lastUserText(contents []*genai.Content) string {
	for i := len(contents) - 1; i >= 0; i-- {
		if c := contents[i]; c != nil && c.Role != string(genai.RoleModel) {
			if text := turns.Text(c, "\n"); text != "" {
				return text
			}
		}
	}
	return ""
}

// transcript is a conversation as text, one line for each part.
func transcript(contents []*genai.Content) string {
	var b strings.Builder
	for _, c := range contents {
		if c == nil {
			continue
		}
		for _, p := range c.Parts {
			switch {
			case p == nil:
			case p.FunctionCall != nil:
				args, _ := json.Marshal(p.FunctionCall.Args)
				fmt.Fprintf(&b, "%s: call %s %s\n", c.Role, p.FunctionCall.Name, args)
			case p.FunctionResponse != nil:
				answer, _ := json.Marshal(p.FunctionResponse.Response)
				fmt.Fprintf(&b, "%s: answer %s %s\n", c.Role, p.FunctionResponse.Name, answer)
			case p.InlineData != nil:
				fmt.Fprintf(&b, "%s: data %s\n", c.Role, p.InlineData.MIMEType)
			case p.FileData != nil:
				fmt.Fprintf(&b, "%s: file %s\n", c.Role, p.FileData.FileURI)
			case p.Text != "" && !p.Thought:
				fmt.Fprintf(&b, "%s: %s\n", c.Role, p.Text)
			}
		}
	}
	return b.String()
}
