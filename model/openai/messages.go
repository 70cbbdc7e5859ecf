// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model/internal/turns"
)

// messages puts a conversation in OpenAI's words: a system message, then each
// turn; the answers of functions are messages of their own.
func messages(system *genai.Content, contents []*genai.Content) ([]openai.ChatCompletionMessageParamUnion, error) {
	var out []openai.ChatCompletionMessageParamUnion
	if text := plainText(system); text != "" {
		out = append(out, openai.SystemMessage(text))
	}
	contents, err := turns.Prepare(contents)
	if err != nil {
		return nil, err
	}
	for i, c := range contents {
		var msgs []openai.ChatCompletionMessageParamUnion
		if c.Role == genai.RoleModel {
			msgs, err = assistant(c)
		} else {
			msgs, err = user(c)
		}
		if err != nil {
			return nil, fmt.Errorf("turn %d: %w", i+1, err)
		}
		out = append(out, msgs...)
	}
	return out, nil
}

// plainText is the text of a content, its parts on lines of their own.
func plainText(c *genai.Content) string {
	if c == nil {
		return ""
	}
	var texts []string
	for _, p := range c.Parts {
		if p != nil && p.Text != "" && !p.Thought {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// assistant is a model's turn. Its thoughts stay behind: Chat Completions takes
// none back.
func assistant(c *genai.Content) ([]openai.ChatCompletionMessageParamUnion, error) {
	var msg openai.ChatCompletionAssistantMessageParam
	var text strings.Builder
	for _, p := range c.Parts {
		switch {
		case p.Thought:
		case p.FunctionCall != nil:
			call, err := toolCall(p.FunctionCall)
			if err != nil {
				return nil, err
			}
			msg.ToolCalls = append(msg.ToolCalls, call)
		case p.Text != "":
			text.WriteString(p.Text)
		case len(p.ThoughtSignature) > 0: // another provider's, without text
		default:
			return nil, fmt.Errorf("a model's turn with %s cannot be sent back", kind(p))
		}
	}
	if text.Len() > 0 {
		msg.Content.OfString = param.NewOpt(text.String())
	}
	if text.Len() == 0 && len(msg.ToolCalls) == 0 {
		return nil, nil
	}
	return []openai.ChatCompletionMessageParamUnion{{OfAssistant: &msg}}, nil
}

func toolCall(fc *genai.FunctionCall) (openai.ChatCompletionMessageToolCallUnionParam, error) {
	args := "{}"
	if len(fc.Args) > 0 {
		data, err := json.Marshal(fc.Args)
		if err != nil {
			return openai.ChatCompletionMessageToolCallUnionParam{}, fmt.Errorf("arguments of function %q: %w", fc.Name, err)
		}
		args = string(data)
	}
	return openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
		ID:       fc.ID,
		Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: fc.Name, Arguments: args},
	}}, nil
}

// user is a user's turn: a message for each function's answer, then one with
// the rest.
func user(c *genai.Content) ([]openai.ChatCompletionMessageParamUnion, error) {
	var out []openai.ChatCompletionMessageParamUnion
	var rest []openai.ChatCompletionContentPartUnionParam
	onlyText := true
	for _, p := range c.Parts {
		if fr := p.FunctionResponse; fr != nil {
			if len(fr.Parts) > 0 {
				return nil, fmt.Errorf("the answer of function %q has media in it, which Chat Completions does not take", fr.Name)
			}
			data, err := json.Marshal(fr.Response)
			if err != nil {
				return nil, fmt.Errorf("answer of function %q: %w", fr.Name, err)
			}
			out = append(out, openai.ToolMessage(string(data), fr.ID))
			continue
		}
		part, err := contentPart(p)
		if err != nil {
			return nil, err
		}
		onlyText = onlyText && part.OfText != nil
		rest = append(rest, part)
	}
	switch {
	case len(rest) == 0:
	case onlyText: // as a string, which the oldest servers understand too
		out = append(out, openai.UserMessage(plainText(c)))
	default:
		out = append(out, openai.UserMessage(rest))
	}
	return out, nil
}

func contentPart(p *genai.Part) (openai.ChatCompletionContentPartUnionParam, error) {
	switch {
	case p.Text != "":
		return openai.TextContentPart(p.Text), nil
	case p.InlineData != nil:
		return inline(p.InlineData)
	case p.FileData != nil:
		uri := p.FileData.FileURI
		web := strings.HasPrefix(uri, "https://") || strings.HasPrefix(uri, "http://") || strings.HasPrefix(uri, "data:")
		if web && (strings.HasPrefix(p.FileData.MIMEType, "image/") || p.FileData.MIMEType == "") {
			return openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: uri}), nil
		}
		return openai.ChatCompletionContentPartUnionParam{}, fmt.Errorf("file %q of type %q: Chat Completions takes only images by web address", uri, p.FileData.MIMEType)
	}
	return openai.ChatCompletionContentPartUnionParam{}, fmt.Errorf("a user's turn with %s cannot be sent", kind(p))
}

func inline(b *genai.Blob) (openai.ChatCompletionContentPartUnionParam, error) {
	data := base64.StdEncoding.EncodeToString(b.Data)
	url := "data:" + b.MIMEType + ";base64," + data
	switch {
	case strings.HasPrefix(b.MIMEType, "image/"):
		return openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: url}), nil
	case b.MIMEType == "application/pdf":
		name := b.DisplayName
		if name == "" {
			name = "document.pdf"
		}
		return openai.FileContentPart(openai.ChatCompletionContentPartFileFileParam{FileData: param.NewOpt(url), Filename: param.NewOpt(name)}), nil
	case b.MIMEType == "audio/wav" || b.MIMEType == "audio/x-wav":
		return openai.InputAudioContentPart(openai.ChatCompletionContentPartInputAudioInputAudioParam{Data: data, Format: "wav"}), nil
	case b.MIMEType == "audio/mpeg" || b.MIMEType == "audio/mp3":
		return openai.InputAudioContentPart(openai.ChatCompletionContentPartInputAudioInputAudioParam{Data: data, Format: "mp3"}), nil
	case strings.HasPrefix(b.MIMEType, "text/"):
		return openai.TextContentPart(string(b.Data)), nil
	}
	return openai.ChatCompletionContentPartUnionParam{}, fmt.Errorf("data of type %q: Chat Completions takes images, PDF, wav and mp3", b.MIMEType)
}

// kind names what is in a part, for an error.
func kind(p *genai.Part) string {
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
