// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model/internal/turns"
)

// Signatures of thoughts are kept in genai's field with their origin before
// them, as a conversation may have signatures of other providers in it, which
// are not to be sent here.
const (
	signedPrefix   = "anthropic:"
	redactedPrefix = "anthropic-redacted:"
)

func system(c *genai.Content) []anthropic.TextBlockParam {
	var out []anthropic.TextBlockParam
	if c == nil {
		return nil
	}
	for _, p := range c.Parts {
		if p != nil && strings.TrimSpace(p.Text) != "" {
			out = append(out, anthropic.TextBlockParam{Text: p.Text})
		}
	}
	return out
}

func messages(contents []*genai.Content) ([]anthropic.MessageParam, error) {
	contents, err := turns.Prepare(contents)
	if err != nil {
		return nil, err
	}
	var out []anthropic.MessageParam
	for i, c := range contents {
		role := anthropic.MessageParamRoleUser
		if c.Role == genai.RoleModel {
			role = anthropic.MessageParamRoleAssistant
		}
		var blocks []anthropic.ContentBlockParamUnion
		for _, p := range c.Parts {
			block, ok, err := blockOf(p, role)
			if err != nil {
				return nil, fmt.Errorf("turn %d: %w", i+1, err)
			}
			if ok {
				blocks = append(blocks, block)
			}
		}
		switch n := len(out); {
		case len(blocks) == 0:
		case n > 0 && out[n-1].Role == role: // what was between had nothing to send
			out[n-1].Content = append(out[n-1].Content, blocks...)
		default:
			out = append(out, anthropic.MessageParam{Role: role, Content: blocks})
		}
	}
	return out, nil
}

// blockOf is a part in Anthropic's words; not ok if there is nothing to send.
func blockOf(p *genai.Part, role anthropic.MessageParamRole) (anthropic.ContentBlockParamUnion, bool, error) {
	var block anthropic.ContentBlockParamUnion
	signature := string(p.ThoughtSignature)
	switch {
	case p.Thought:
		if data, ok := strings.CutPrefix(signature, redactedPrefix); ok {
			return anthropic.NewRedactedThinkingBlock(data), true, nil
		}
		if signed, ok := strings.CutPrefix(signature, signedPrefix); ok {
			return anthropic.NewThinkingBlock(signed, p.Text), true, nil
		}
		return block, false, nil // the API takes no thought that it did not sign
	case p.FunctionCall != nil:
		args := p.FunctionCall.Args
		if args == nil {
			args = map[string]any{}
		}
		block.OfToolUse = &anthropic.ToolUseBlockParam{ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Input: args}
		return block, true, nil
	case p.FunctionResponse != nil:
		result, err := toolResult(p.FunctionResponse)
		block.OfToolResult = result
		return block, err == nil, err
	case p.Text != "":
		// The API refuses a text of white space alone.
		return anthropic.NewTextBlock(p.Text), strings.TrimSpace(p.Text) != "", nil
	case p.InlineData != nil && role == anthropic.MessageParamRoleUser:
		block, err := inline(p.InlineData)
		return block, err == nil, err
	case p.FileData != nil && role == anthropic.MessageParamRoleUser:
		block, err := file(p.FileData)
		return block, err == nil, err
	case len(p.ThoughtSignature) > 0: // another provider's, without text
		return block, false, nil
	}
	return block, false, fmt.Errorf("a part that the Messages API does not take from the %s: %s", role, kind(p))
}

// toolResult is the answer of a function. One with nothing but an "error" is
// marked as a failure.
func toolResult(fr *genai.FunctionResponse) (*anthropic.ToolResultBlockParam, error) {
	data, err := json.Marshal(fr.Response)
	if err != nil {
		return nil, fmt.Errorf("answer of function %q: %w", fr.Name, err)
	}
	result := &anthropic.ToolResultBlockParam{ToolUseID: fr.ID}
	result.Content = append(result.Content, anthropic.ToolResultBlockParamContentUnion{OfText: &anthropic.TextBlockParam{Text: string(data)}})
	for _, p := range fr.Parts {
		if p == nil || p.InlineData == nil {
			return nil, fmt.Errorf("answer of function %q: a part that is not inline data", fr.Name)
		}
		block, err := inline(&genai.Blob{Data: p.InlineData.Data, MIMEType: p.InlineData.MIMEType})
		if err != nil {
			return nil, fmt.Errorf("answer of function %q: %w", fr.Name, err)
		}
		result.Content = append(result.Content, anthropic.ToolResultBlockParamContentUnion{OfImage: block.OfImage, OfDocument: block.OfDocument, OfText: block.OfText})
	}
	if _, failed := fr.Response["error"]; failed && len(fr.Response) == 1 {
		result.IsError = param.NewOpt(true)
	}
	return result, nil
}

func inline(b *genai.Blob) (anthropic.ContentBlockParamUnion, error) {
	data := base64.StdEncoding.EncodeToString(b.Data)
	switch {
	case b.MIMEType == "image/jpeg" || b.MIMEType == "image/png" || b.MIMEType == "image/gif" || b.MIMEType == "image/webp":
		return anthropic.NewImageBlockBase64(b.MIMEType, data), nil
	case b.MIMEType == "application/pdf":
		return anthropic.NewDocumentBlock(anthropic.Base64PDFSourceParam{Data: data}), nil
	case strings.HasPrefix(b.MIMEType, "text/"):
		return anthropic.NewDocumentBlock(anthropic.PlainTextSourceParam{Data: string(b.Data)}), nil
	}
	return anthropic.ContentBlockParamUnion{}, fmt.Errorf("data of type %q: the Messages API takes JPEG, PNG, GIF, WebP, PDF and text", b.MIMEType)
}

func file(f *genai.FileData) (anthropic.ContentBlockParamUnion, error) {
	if strings.HasPrefix(f.FileURI, "https://") || strings.HasPrefix(f.FileURI, "http://") {
		switch {
		case strings.HasPrefix(f.MIMEType, "image/") || f.MIMEType == "":
			return anthropic.NewImageBlock(anthropic.URLImageSourceParam{URL: f.FileURI}), nil
		case f.MIMEType == "application/pdf":
			return anthropic.NewDocumentBlock(anthropic.URLPDFSourceParam{URL: f.FileURI}), nil
		}
	}
	return anthropic.ContentBlockParamUnion{}, fmt.Errorf("file %q of type %q: the Messages API takes images and PDF by web address", f.FileURI, f.MIMEType)
}

// kind names what is in a part, for an error.
func kind(p *genai.Part) string {
	switch {
	case p.InlineData != nil:
		return "data of type " + p.InlineData.MIMEType
	case p.FileData != nil:
		return "a file of type " + p.FileData.MIMEType
	case p.ExecutableCode != nil, p.CodeExecutionResult != nil:
		return "code that another provider ran"
	}
	return "unknown"
}
