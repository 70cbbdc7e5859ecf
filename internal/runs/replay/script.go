// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
)

// scriptAnswer is an answer of a script, as package scripted reads it.
type scriptAnswer struct {
	Agent   string         `yaml:"agent"`
	Thought string         `yaml:"thought,omitempty"`
	Text    string         `yaml:"text,omitempty"`
	Calls   []scriptCall   `yaml:"calls,omitempty"`
	Finish  string         `yaml:"finish,omitempty"`
	Usage   *scriptUsage   `yaml:"usage,omitempty"`
	Error   *scriptFailure `yaml:"error,omitempty"`
}

type scriptCall struct {
	Name string         `yaml:"name"`
	Args map[string]any `yaml:"args,omitempty"`
}

type scriptUsage struct {
	Prompt   int64 `yaml:"prompt,omitempty"`
	Cached   int64 `yaml:"cached,omitempty"`
	Output   int64 `yaml:"output,omitempty"`
	Thoughts int64 `yaml:"thoughts,omitempty"`
}

type scriptFailure struct {
	Status     int           `yaml:"status,omitempty"`
	Code       string        `yaml:"code,omitempty"`
	Message    string        `yaml:"message,omitempty"`
	RetryAfter time.Duration `yaml:"retry_after,omitempty"`
}

// Script returns the recorded answers of models as a script for package scripted, which a person can edit, and sentences about what it
// cannot have. It has the answers of each agent in their order, and each request that failed. It is nil if no model has answered.
func (rec *Recording) Script() (text []byte, lost []string, err error) {
	var answers []scriptAnswer
	lose := func(format string, args ...any) {
		if s := fmt.Sprintf(format, args...); !slices.Contains(lost, s) {
			lost = append(lost, s)
		}
	}
	seen := make(map[string]bool)
	for _, x := range rec.items {
		name := x.at.Agent()
		if x.outcome {
			continue
		}
		seen[name] = true
		for n := range x.fails {
			var at cause
			if n < len(x.causes) {
				at = x.causes[n]
			}
			answers = append(answers, scriptAnswer{Agent: name, Error: &scriptFailure{Status: at.Status, Code: at.Code, Message: "the recorded request failed"}})
		}
		switch {
		case x.cut:
			lose("a request of %q was cut off, because a step around it ended; the script has no answer for it", name)
		case x.err != nil:
			answers = append(answers, scriptAnswer{Agent: name, Error: failureOf(x.err)})
		default:
			answers = append(answers, x.scriptAnswer(lose))
		}
	}
	for a := range rec.Definition.Root.All {
		if a.LLM != nil && !seen[a.Name] {
			lose("the record has no answer of %q, which did not run, or is a tool of another agent", a.Name)
		}
	}
	if answers == nil {
		return nil, lost, nil
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	err = enc.Encode(map[string]any{"answers": answers})
	return b.Bytes(), lost, errors.Join(err, enc.Close())
}

// scriptAnswer returns the answer of an item. lose gets sentences about what a script cannot have.
func (x *item) scriptAnswer(lose func(string, ...any)) scriptAnswer {
	a := scriptAnswer{Agent: x.at.Agent()}
	var text, thought strings.Builder
	for _, ev := range x.answers {
		if ev.Content != nil {
			for _, p := range ev.Content.Parts {
				a.add(p, &text, &thought, lose)
			}
		}
		if f := ev.FinishReason; f != "" && f != genai.FinishReasonStop {
			a.Finish = string(f)
		}
		if ev.ErrorCode != "" {
			a.Error = &scriptFailure{Code: ev.ErrorCode, Message: ev.ErrorMessage}
		}
		a.use(ev)
	}
	a.Text, a.Thought = text.String(), thought.String()
	return a
}

func (a *scriptAnswer) add(p *genai.Part, text, thought *strings.Builder, lose func(string, ...any)) {
	switch {
	case p == nil:
	case p.FunctionCall != nil:
		a.Calls = append(a.Calls, scriptCall{p.FunctionCall.Name, p.FunctionCall.Args})
	case p.Thought:
		thought.WriteString(p.Text)
	case p.Text != "" && len(a.Calls) > 0:
		lose("an answer of %q has text after a call; in the script all text comes before the calls", a.Agent)
		fallthrough
	case p.Text != "":
		text.WriteString(p.Text)
	case len(p.ThoughtSignature) == 0:
		lose("an answer of %q has a part that is neither text nor a call, such as an image; the script is without it", a.Agent)
	}
	if p != nil && len(p.ThoughtSignature) > 0 {
		lose("answers of %q have signatures of thoughts; the script is without them", a.Agent)
	}
}

func (a *scriptAnswer) use(ev *session.Event) {
	if ev.UsageMetadata == nil {
		return
	}
	if a.Usage == nil {
		a.Usage = new(scriptUsage)
	}
	input, cached, output := model.Tokens(ev.UsageMetadata)
	thoughts := model.ThoughtTokens(ev.UsageMetadata)
	a.Usage.Prompt += input
	a.Usage.Cached += cached
	a.Usage.Output += output - thoughts
	a.Usage.Thoughts += thoughts
}

// failureOf returns the error of a request that was not repeated.
func failureOf(err error) *scriptFailure {
	f := &scriptFailure{Message: err.Error()}
	if api, ok := errors.AsType[*model.APIError](err); ok {
		f.Status, f.Code, f.Message, f.RetryAfter = api.Status, api.Code, api.Message, api.RetryAfter
	}
	return f
}
