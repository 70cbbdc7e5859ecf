// SPDX-License-Identifier: Apache-2.0

// Package a2apart converts parts of messages between A2A, the Agent2Agent protocol, and genai.
//
//	msg.Parts = a2apart.Outgoing(content)
package a2apart

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"google.golang.org/genai"
)

// Outgoing returns the parts of a message for another agent, which are text and files without thoughts.
func Outgoing(c *genai.Content) []*a2a.Part {
	var parts []*a2a.Part
	if c == nil {
		return nil
	}
	for _, p := range c.Parts {
		switch {
		case p == nil || p.Thought:
		case p.Text != "":
			parts = append(parts, a2a.NewTextPart(p.Text))
		case p.InlineData != nil:
			part := a2a.NewRawPart(p.InlineData.Data)
			part.MediaType, part.Filename = p.InlineData.MIMEType, p.InlineData.DisplayName
			parts = append(parts, part)
		case p.FileData != nil:
			part := a2a.NewFileURLPart(a2a.URL(p.FileData.FileURI), p.FileData.MIMEType)
			part.Filename = p.FileData.DisplayName
			parts = append(parts, part)
		}
	}
	return parts
}

// OutgoingValue returns the part for a value. A string becomes text, and any other value becomes data.
func OutgoingValue(v any) *a2a.Part {
	if text, ok := v.(string); ok {
		return a2a.NewTextPart(text)
	}
	return a2a.NewDataPart(v)
}

// incoming converts a part of another agent. It returns nil for an empty part. Data becomes text in JSON, and never a
// function call, even if it looks like one.
func incoming(p *a2a.Part) *genai.Part {
	if p == nil {
		return nil
	}
	switch v := p.Content.(type) {
	case a2a.Text:
		if v != "" {
			return &genai.Part{Text: string(v)}
		}
	case a2a.Data:
		if text, err := json.Marshal(v.Value); err == nil {
			return &genai.Part{Text: string(text)}
		}
	case a2a.Raw:
		if len(v) > 0 {
			return &genai.Part{InlineData: &genai.Blob{Data: v, MIMEType: typeOr(p.MediaType), DisplayName: p.Filename}}
		}
	case a2a.URL:
		if strings.HasPrefix(string(v), "https://") || strings.HasPrefix(string(v), "http://") {
			return &genai.Part{FileData: &genai.FileData{FileURI: string(v), MIMEType: typeOr(p.MediaType),
				DisplayName: p.Filename}}
		}
		return &genai.Part{Text: string(v)} // models and tools read no other media types
	}
	return nil
}

func typeOr(mediaType string) string {
	return cmp.Or(mediaType, "application/octet-stream")
}

// IncomingAll converts parts, and joins consecutive text parts.
func IncomingAll(parts []*a2a.Part) []*genai.Part {
	var all []*genai.Part
	var words strings.Builder
	flush := func() {
		if words.Len() > 0 {
			all = append(all, &genai.Part{Text: words.String()})
			words.Reset()
		}
	}
	for _, p := range parts {
		in := incoming(p)
		switch {
		case in == nil:
		case in.Text != "":
			words.WriteString(in.Text)
		default:
			flush()
			all = append(all, in)
		}
	}
	flush()
	return all
}
