// SPDX-License-Identifier: Apache-2.0

// Package scripted provides a model that answers from a script, for demonstrations without a
// network, tests and rehearsals. It can stream, think, call tools, be slow, and fail in every way
// in which a provider fails. ModelVersion and CustomMetadata mark every response as scripted.
//
// A script is YAML or JSON:
//
//	answers:
//	  - agent: critic
//	    text: The second paragraph repeats the first.
//	  - agent: refiner
//	    calls: [{name: exitLoop, args: {reason: done}}]
//	  - match: (?i)hello
//	    text: Hello yourself.
//	    usage: {prompt: 12, output: 3}
//	  - error: {status: 429, retry_after: 2s}
//	repeat_last: true
//
//	llm, err := scripted.Load("script.yaml")
package scripted

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"

	"google.golang.org/genai"
)

// Script is a list of answers. Each request gets the first answer that fits and was not given yet.
type Script struct {
	// Name is the model's name; by default "scripted".
	Name string `yaml:"name"`
	// Answers are the answers, in order of preference.
	Answers []Answer `yaml:"answers"`
	// RepeatLast repeats the last fitting answer after all that fit were given; without it, such a
	// request fails.
	RepeatLast bool `yaml:"repeat_last"`
}

// Answer is one answer and the requests that it fits. Agent, Turn, Match and MatchRequest fit all
// requests if they are not set.
type Answer struct {
	// Agent is the name of the agent that sends the request, read from the system instruction: Your
	// internal name is "critic".
	Agent string `yaml:"agent"`
	// Turn is the number of the agent's request, from 1. Failed requests count.
	Turn int `yaml:"turn"`
	// Match is a regular expression for the last text of the user.
	Match string `yaml:"match"`
	// MatchRequest is a regular expression for the whole request: the system instruction, and the
	// texts, calls and answers of each turn.
	MatchRequest string `yaml:"match_request"`
	// Repeat allows the answer to be given any number of times.
	Repeat bool `yaml:"repeat"`

	// Thought is the model's thought before the answer.
	Thought string `yaml:"thought"`
	// Text is the text of the answer. The default is that of Chunks, or of JSON.
	Text string `yaml:"text"`
	// JSON is a value that is sent as JSON, in place of Text.
	JSON any `yaml:"json"`
	// Calls are the function calls of the answer.
	Calls []Call `yaml:"calls"`
	// Finish is the finish reason; the default is "STOP".
	Finish string `yaml:"finish"`
	// Refusal, if set, replaces the answer by a provider's refusal.
	Refusal string `yaml:"refusal"`
	// Usage counts tokens; nil means that the provider does not report them.
	Usage *Usage `yaml:"usage"`

	// Delay is the time before the first piece of the answer.
	Delay time.Duration `yaml:"delay"`
	// Pace is the time before each further piece of a streamed answer.
	Pace time.Duration `yaml:"pace"`
	// Chunks are the pieces of a streamed text; the default is a few words each.
	Chunks []string `yaml:"chunks"`

	// Error fails the request, in place of an answer.
	Error *Failure `yaml:"error"`
	// Cut ends the answer, streamed or not, in its middle.
	Cut bool `yaml:"cut"`
	// Garbage sends bytes that cannot be read, in place of an answer.
	Garbage bool `yaml:"garbage"`
	// Hang sends nothing after the first piece, or after the request if the answer is not streamed,
	// until the caller ends the request.
	Hang bool `yaml:"hang"`
}

// Call is a call of a function.
type Call struct {
	// ID is the call's ID; the default is made from agent, turn and place, and the same in each
	// run.
	ID   string         `yaml:"id"`
	Name string         `yaml:"name"`
	Args map[string]any `yaml:"args"`
	// Raw is sent in place of Args, such as incomplete JSON, as a model may send it.
	Raw string `yaml:"raw"`
}

// Usage counts tokens. Prompt includes Cached; Output does not include Thoughts.
type Usage struct {
	Prompt   int32 `yaml:"prompt"`
	Cached   int32 `yaml:"cached"`
	Output   int32 `yaml:"output"`
	Thoughts int32 `yaml:"thoughts"`
}

// Failure is an error answer of a provider.
type Failure struct {
	// Status is the HTTP status; 0 means that the provider cannot be reached.
	Status     int           `yaml:"status"`
	Code       string        `yaml:"code"`
	Message    string        `yaml:"message"`
	RetryAfter time.Duration `yaml:"retry_after"`
}

// Pieces returns the pieces in which the text is streamed.
func (a Answer) Pieces() []string {
	if len(a.Chunks) > 0 || a.Text == "" {
		return a.Chunks
	}
	const size = 24 // letters, about four words
	var out []string
	start, length := 0, 0
	for i, r := range a.Text {
		if length++; length >= size && unicode.IsSpace(r) {
			end := i + len(string(r))
			out = append(out, a.Text[start:end])
			start, length = end, 0
		}
	}
	if start < len(a.Text) {
		out = append(out, a.Text[start:])
	}
	return out
}

// Metadata returns the usage in the form of a response; nil for nil.
func (u *Usage) Metadata() *genai.GenerateContentResponseUsageMetadata {
	if u == nil {
		return nil
	}
	return &genai.GenerateContentResponseUsageMetadata{
		PromptTokenCount:        u.Prompt,
		CachedContentTokenCount: u.Cached,
		CandidatesTokenCount:    u.Output,
		ThoughtsTokenCount:      u.Thoughts,
		TotalTokenCount:         u.Prompt + u.Output + u.Thoughts,
	}
}

// normal fills in what follows from the rest and checks the answer.
func (a Answer) normal() (Answer, error) {
	for _, pattern := range []string{a.Match, a.MatchRequest} {
		if _, err := regexp.Compile(pattern); err != nil {
			return a, fmt.Errorf("pattern %q: %w", pattern, err)
		}
	}
	if a.JSON != nil {
		if a.Text != "" {
			return a, errors.New("text and json are two answers: give one")
		}
		data, err := json.Marshal(a.JSON)
		if err != nil {
			return a, fmt.Errorf("json: %w", err)
		}
		a.Text, a.JSON = string(data), nil
	}
	if joined := strings.Join(a.Chunks, ""); a.Text == "" {
		a.Text = joined
	} else if joined != "" && joined != a.Text {
		return a, fmt.Errorf("chunks come to %q, not to the text", joined)
	}
	calls := make([]Call, 0, len(a.Calls))
	for i, c := range a.Calls {
		if c.Name == "" {
			return a, fmt.Errorf("call %d has no name", i+1)
		}
		if c.Raw != "" && c.Args != nil {
			return a, fmt.Errorf("call %d has args and raw: give one", i+1)
		}
		// As it would be after a journey in JSON: each number a float64.
		data, err := json.Marshal(c.Args)
		if err != nil {
			return a, fmt.Errorf("arguments of call %d: %w", i+1, err)
		}
		c.Args = nil
		if err := json.Unmarshal(data, &c.Args); err != nil {
			return a, fmt.Errorf("arguments of call %d: %w", i+1, err)
		}
		if c.Args == nil {
			c.Args = map[string]any{}
		}
		calls = append(calls, c)
	}
	a.Calls = calls
	switch {
	case a.Turn < 0:
		return a, fmt.Errorf("turn is %d; turns count from 1", a.Turn)
	case a.Delay < 0 || a.Pace < 0:
		return a, errors.New("a time is negative; use 0 or more")
	case a.Error != nil && (a.Text != "" || a.Refusal != "" || len(a.Calls) > 0):
		return a, errors.New("both an error and an answer are set; give one")
	}
	if a.Finish == "" {
		a.Finish = string(genai.FinishReasonStop)
	}
	return a, nil
}
