// SPDX-License-Identifier: Apache-2.0

// Package scripted is a model that answers from a script: for demonstrations
// without a network, for tests and for rehearsals. It can stream, think, call
// tools, be slow and fail in each way in which a provider fails. Every response
// says that it is scripted, in ModelVersion and in CustomMetadata.
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

// Script is what a model says. For each request it gives the first answer in
// its list that fits and was not given yet.
type Script struct {
	// Name is the model's name; by default "scripted".
	Name string `yaml:"name"`
	// Answers are the answers, in order of preference.
	Answers []Answer `yaml:"answers"`
	// RepeatLast gives the last answer that fits again once all that fit were
	// given; without it, a request for which none is left fails.
	RepeatLast bool `yaml:"repeat_last"`
}

// Answer is one answer and the requests that it fits. The zero value of each of
// Agent, Turn, Match and MatchRequest fits all.
type Answer struct {
	// Agent is the name of the agent that asks, as it stands in the system
	// instruction: Your internal name is "critic".
	Agent string `yaml:"agent"`
	// Turn is the number of the agent's request, from 1. Failed ones count.
	Turn int `yaml:"turn"`
	// Match is a regular expression over the last text of the user.
	Match string `yaml:"match"`
	// MatchRequest is a regular expression over the whole request: the system
	// instruction and each turn's texts, calls and answers of functions.
	MatchRequest string `yaml:"match_request"`
	// Repeat lets the answer be given any number of times.
	Repeat bool `yaml:"repeat"`

	// Thought is what the model thinks before it speaks.
	Thought string `yaml:"thought"`
	// Text is what it says. By default that of Chunks, or JSON's.
	Text string `yaml:"text"`
	// JSON is a value that it says as JSON, in place of Text.
	JSON any `yaml:"json"`
	// Calls are the functions that it calls.
	Calls []Call `yaml:"calls"`
	// Finish is why it stopped; by default "STOP".
	Finish string `yaml:"finish"`
	// Refusal, if set, is said in place of an answer, as a provider refuses.
	Refusal string `yaml:"refusal"`
	// Usage counts tokens; nil means that the provider does not say.
	Usage *Usage `yaml:"usage"`

	// Delay is how long the first piece of the answer takes.
	Delay time.Duration `yaml:"delay"`
	// Pace is how long each further piece of a streamed answer takes.
	Pace time.Duration `yaml:"pace"`
	// Chunks are the pieces of a streamed text; by default a few words each.
	Chunks []string `yaml:"chunks"`

	// Error fails the request, in place of an answer.
	Error *Failure `yaml:"error"`
	// Cut ends the answer, streamed or not, in its middle.
	Cut bool `yaml:"cut"`
	// Garbage sends what nobody understands, in place of an answer.
	Garbage bool `yaml:"garbage"`
	// Hang says nothing more after the first piece, or the request if the
	// answer is not streamed, until whoever asks goes away.
	Hang bool `yaml:"hang"`
}

// Call is a call of a function.
type Call struct {
	// ID is the call's ID; by default one is made up from agent, turn and
	// place, the same in each run.
	ID   string         `yaml:"id"`
	Name string         `yaml:"name"`
	Args map[string]any `yaml:"args"`
	// Raw is what is sent in place of Args, as it stands, such as JSON that
	// breaks off: models get that wrong, too.
	Raw string `yaml:"raw"`
}

// Usage counts tokens. Cached ones are among Prompt; Thoughts are not among
// Output.
type Usage struct {
	Prompt   int32 `yaml:"prompt"`
	Cached   int32 `yaml:"cached"`
	Output   int32 `yaml:"output"`
	Thoughts int32 `yaml:"thoughts"`
}

// Failure is an error that a provider answers with.
type Failure struct {
	// Status is the HTTP status; 0 means that the provider cannot be reached.
	Status     int           `yaml:"status"`
	Code       string        `yaml:"code"`
	Message    string        `yaml:"message"`
	RetryAfter time.Duration `yaml:"retry_after"`
}

// Pieces are the pieces in which the text is streamed.
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

// Metadata is the usage as responses carry it; nil for nil.
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
		return a, fmt.Errorf("turn is %d: they count from 1", a.Turn)
	case a.Delay < 0 || a.Pace < 0:
		return a, errors.New("a time is negative")
	case a.Error != nil && (a.Text != "" || a.Refusal != "" || len(a.Calls) > 0):
		return a, errors.New("an error and an answer: give one")
	}
	if a.Finish == "" {
		a.Finish = string(genai.FinishReasonStop)
	}
	return a, nil
}
