// SPDX-License-Identifier: Apache-2.0

// Package turns helps the adapters with turns: it prepares a conversation for strict providers, and
// assembles an answer from its pieces.
//
//	contents, err := turns.Prepare(req.Contents)
package turns

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/genai"
)

// Texts added for the user where the model could not answer otherwise. ADK does the same, in other
// words.
const (
	beginPrompt    = "Follow your instructions."
	continuePrompt = "Continue with your instructions. If nothing is left to do, say so briefly."
)

// Prepare returns a conversation that strict providers accept: user and model alternate and the
// user has the last word; empty parts are gone; each function call has an ID that every provider
// accepts, and the answers to a model's calls come first in the user's next turn, in any order. A
// call that was never answered gets an answer that says so. The given contents are not changed.
//
// It fails on an answer to a call that is not there.
func Prepare(contents []*genai.Content) ([]*genai.Content, error) {
	out, err := pair(merge(contents))
	if err != nil {
		return nil, err
	}
	return LastWord(out), nil
}

// LastWord adds a short text of the user if the last content is not the user's, because some models
// do not answer otherwise.
func LastWord(contents []*genai.Content) []*genai.Content {
	text := beginPrompt
	if n := len(contents); n > 0 {
		if role(contents[n-1]) == genai.RoleUser {
			return contents
		}
		text = continuePrompt
	}
	return append(slices.Clip(contents), genai.NewContentFromText(text, genai.RoleUser))
}

func role(c *genai.Content) genai.Role {
	if c != nil && c.Role == string(genai.RoleModel) {
		return genai.RoleModel
	}
	return genai.RoleUser
}

// merge drops empty contents and joins neighbours of one role.
func merge(contents []*genai.Content) []*genai.Content {
	var out []*genai.Content
	for _, c := range contents {
		if c == nil {
			continue
		}
		var parts []*genai.Part
		for _, p := range c.Parts {
			if p != nil && !Empty(p) {
				parts = append(parts, p)
			}
		}
		if len(parts) == 0 {
			continue
		}
		r := role(c)
		if n := len(out); n > 0 && role(out[n-1]) == r {
			out[n-1].Parts = append(out[n-1].Parts, parts...)
			continue
		}
		out = append(out, &genai.Content{Role: string(r), Parts: parts})
	}
	return out
}

// Text returns the texts of a content without its thoughts, with a separator between them.
func Text(c *genai.Content, separator string) string {
	if c == nil {
		return ""
	}
	var texts []string
	for _, p := range c.Parts {
		if p != nil && p.Text != "" && !p.Thought {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, separator)
}

// Empty reports whether a part has no content.
func Empty(p *genai.Part) bool {
	return p.Text == "" && len(p.ThoughtSignature) == 0 && p.InlineData == nil && p.FileData == nil &&
		p.FunctionCall == nil && p.FunctionResponse == nil && p.ExecutableCode == nil && p.CodeExecutionResult == nil &&
		p.ToolCall == nil && p.ToolResponse == nil
}

// Kind names the content of a part, for an error.
func Kind(p *genai.Part) string {
	switch {
	case p.InlineData != nil:
		return "data of type " + p.InlineData.MIMEType
	case p.FileData != nil:
		return "a file of type " + p.FileData.MIMEType
	case p.ExecutableCode != nil, p.CodeExecutionResult != nil:
		return "code that the provider ran"
	case p.FunctionCall != nil:
		return "a function call"
	case p.FunctionResponse != nil:
		return "a function's answer"
	}
	return "nothing that is known"
}

// Foreign reports whether a part is a thought, or has a signature, of another
// provider than the named one. Adapters other than Gemini's write their name
// and a colon or dash before a signature; only they make foreign parts known.
func Foreign(p *genai.Part, provider string) bool {
	for _, other := range []string{"anthropic"} {
		if other != provider && bytes.HasPrefix(p.ThoughtSignature, []byte(other)) {
			return true
		}
	}
	return false
}

// call is a function call that waits for its answer.
type call struct{ id, name, wireID string }

// pair gives IDs to calls and to their answers.
func pair(contents []*genai.Content) ([]*genai.Content, error) {
	var out []*genai.Content
	var open []call // calls of the last model turn; turns alternate, and a user's turn closes them
	made := 0
	for _, c := range contents {
		if role(c) == genai.RoleModel {
			next := &genai.Content{Role: c.Role}
			for _, p := range c.Parts {
				if p.FunctionCall == nil {
					next.Parts = append(next.Parts, p)
					continue
				}
				made++
				fc, copied := *p.FunctionCall, *p
				id := wireID(fc.ID, made)
				open = append(open, call{fc.ID, fc.Name, id})
				fc.ID = id
				copied.FunctionCall = &fc
				next.Parts = append(next.Parts, &copied)
			}
			out = append(out, next)
			continue
		}
		next, err := answers(c, open)
		if err != nil {
			return nil, err
		}
		open = nil
		out = append(out, next)
	}
	if len(open) > 0 {
		next, err := answers(&genai.Content{Role: string(genai.RoleUser)}, open)
		if err != nil {
			return nil, err
		}
		out = append(out, next)
	}
	return out, nil
}

// answers is a user's turn with the answers to the open calls first.
func answers(c *genai.Content, open []call) (*genai.Content, error) {
	open = slices.Clone(open)
	var first, rest []*genai.Part
	for _, p := range c.Parts {
		fr := p.FunctionResponse
		if fr == nil {
			rest = append(rest, p)
			continue
		}
		i := slices.IndexFunc(open, func(o call) bool {
			if fr.ID != "" && o.id != "" {
				return fr.ID == o.id
			}
			return fr.Name == o.name
		})
		if i < 0 {
			return nil, fmt.Errorf("the answer of function %q (id %q) belongs to no call in the turn before it",
				fr.Name, fr.ID)
		}
		answer, copied := *fr, *p
		answer.ID = open[i].wireID
		copied.FunctionResponse = &answer
		first = append(first, &copied)
		open = slices.Delete(open, i, i+1)
	}
	for _, o := range open {
		first = append(first, &genai.Part{FunctionResponse: &genai.FunctionResponse{
			ID: o.wireID, Name: o.name, Response: map[string]any{"error": "this call was not answered"},
		}})
	}
	return &genai.Content{Role: c.Role, Parts: append(first, rest...)}, nil
}

// wireID is an ID that every provider accepts: OpenAI takes 40 characters,
// Anthropic letters, digits, - and _. An ID of another provider that does not
// fit is replaced by one that follows from it; a missing one is numbered.
func wireID(id string, n int) string {
	if id == "" {
		return fmt.Sprintf("call_%d", n)
	}
	fits := len(id) <= 40 && !strings.ContainsFunc(id, func(r rune) bool {
		return !(r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	})
	if fits {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:12])
}
