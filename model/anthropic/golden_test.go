// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/anthropic"
)

var update = flag.Bool("update", false, "write the golden file")

// sent is a request as the server gets it, as far as the API documents it.
type sent struct {
	Case    string
	Request string
	Header  map[string]string
	Body    any
}

// record returns a model at a server that keeps what it gets.
func record(t *testing.T, name string, to *[]sent) model.LLM {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := sent{Case: name, Request: r.Method + " " + r.RequestURI, Header: map[string]string{}}
		for _, h := range []string{"Accept", "Anthropic-Version", "Authorization", "Content-Type", "X-Api-Key"} {
			if v := r.Header.Get(h); v != "" {
				s.Header[h] = v
			}
		}
		data, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(data, &s.Body)
		}
		if err != nil {
			t.Error(err)
		}
		*to = append(*to, s)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, hello)
	}))
	t.Cleanup(srv.Close)
	llm, err := anthropic.NewModel("m", anthropic.Config{BaseURL: srv.URL + "/proxy/", APIKey: "key"})
	if err != nil {
		t.Fatal(err)
	}
	return llm
}

// conversation has a part of every kind in it that the API takes.
func conversation() []*genai.Content {
	call := genai.NewPartFromFunctionCall("look", map[string]any{"at": "<a> & b", "n": 3})
	call.FunctionCall.ID = "call_1"
	empty := genai.NewPartFromFunctionCall("wait", nil)
	empty.FunctionCall.ID = "call_2"
	answer := genai.NewPartFromFunctionResponse("look", map[string]any{"seen": []any{"x", 1.5, nil}})
	answer.FunctionResponse.ID = "call_1"
	answer.FunctionResponse.Parts = []*genai.FunctionResponsePart{
		{InlineData: &genai.FunctionResponseBlob{MIMEType: "image/png", Data: []byte("png")}},
		{InlineData: &genai.FunctionResponseBlob{MIMEType: "application/pdf", Data: []byte("pdf")}},
		{InlineData: &genai.FunctionResponseBlob{MIMEType: "text/plain", Data: []byte("plain")}},
	}
	failed := genai.NewPartFromFunctionResponse("wait", map[string]any{"error": "no time"})
	failed.FunctionResponse.ID = "call_2"
	return []*genai.Content{
		{Role: "user", Parts: []*genai.Part{{Text: "One."}, {Text: "Zwölf <b>."}, {Text: " "}}},
		{Role: "model", Parts: []*genai.Part{
			{Text: "Hm.", Thought: true, ThoughtSignature: []byte("anthropic:sig")}, {Thought: true, ThoughtSignature: []byte("anthropic-redacted:data")},
			{Text: "Looking."}, call, empty,
		}},
		{Role: "user", Parts: []*genai.Part{answer, failed, {Text: "Look:"},
			genai.NewPartFromBytes([]byte("png"), "image/png"), genai.NewPartFromBytes([]byte("pdf"), "application/pdf"),
			genai.NewPartFromBytes([]byte("plain"), "text/plain"),
			genai.NewPartFromURI("https://example.org/a.jpg", "image/jpeg"), genai.NewPartFromURI("https://example.org/a.pdf", "application/pdf")}},
	}
}

func settings() *genai.GenerateContentConfig {
	return &genai.GenerateContentConfig{
		SystemInstruction: &genai.Content{Parts: []*genai.Part{{Text: "Be brief."}, {Text: "Be kind."}}},
		Temperature:       new(float32(0.7)), TopP: new(float32(0)), TopK: new(float32(40)),
		MaxOutputTokens: 64, StopSequences: []string{"END", "\n"},
		ThinkingConfig: &genai.ThinkingConfig{ThinkingLevel: genai.ThinkingLevelHigh, IncludeThoughts: true},
		Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{
			{Name: "look", Description: "Looks.", Parameters: &genai.Schema{Type: genai.TypeObject, Required: []string{"at"}, Properties: map[string]*genai.Schema{
				"at": {Type: genai.TypeString, Description: "Where."}, "n": {Type: genai.TypeInteger, Minimum: new(1.0)},
			}}},
			{Name: "wait"}, {Name: "left out"},
		}}},
		ToolConfig: &genai.ToolConfig{FunctionCallingConfig: &genai.FunctionCallingConfig{
			Mode: genai.FunctionCallingConfigModeAny, AllowedFunctionNames: []string{"look", "wait"},
		}},
		ResponseMIMEType: "application/json",
		ResponseSchema: &genai.Schema{Type: genai.TypeObject, Required: []string{"score"}, Properties: map[string]*genai.Schema{
			"score": {Type: genai.TypeNumber, Maximum: new(10.0)},
		}},
	}
}

// Requests are on the wire as Anthropic documents them.
func TestRequestsOnTheWire(t *testing.T) {
	text := []*genai.Content{genai.NewContentFromText("Hello.", genai.RoleUser)}
	choose := func(mode genai.FunctionCallingConfigMode, think *genai.ThinkingConfig) *genai.GenerateContentConfig {
		return &genai.GenerateContentConfig{
			ThinkingConfig: think, Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{Name: "f"}}}},
			ToolConfig: &genai.ToolConfig{FunctionCallingConfig: &genai.FunctionCallingConfig{Mode: mode}},
		}
	}
	var got []sent
	for _, tt := range []struct {
		name   string
		req    *model.LLMRequest
		stream bool
	}{
		{"a word", &model.LLMRequest{Contents: text}, false},
		{"a stream", &model.LLMRequest{Contents: text, Model: "other"}, true},
		{"a conversation", &model.LLMRequest{Contents: conversation()}, false},
		{"settings", &model.LLMRequest{Contents: text, Config: settings()}, false},
		{"one tool, a budget", &model.LLMRequest{Contents: text, Config: choose(genai.FunctionCallingConfigModeAny, &genai.ThinkingConfig{ThinkingBudget: new(int32(2000)), IncludeThoughts: true})}, false},
		{"no tool, no thoughts", &model.LLMRequest{Contents: text, Config: choose(genai.FunctionCallingConfigModeNone, &genai.ThinkingConfig{ThinkingBudget: new(int32(0))})}, true},
		{"a tool if it likes, thoughts shown", &model.LLMRequest{Contents: text, Config: choose(genai.FunctionCallingConfigModeAuto, &genai.ThinkingConfig{IncludeThoughts: true})}, false},
	} {
		for range record(t, tt.name, &got).GenerateContent(t.Context(), tt.req, tt.stream) {
		}
	}
	golden(t, "testdata/requests.json", got)
}

// golden compares what was sent with a file.
func golden(t *testing.T, file string, got []sent) {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(got); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("(-want +got; -update writes them):\n%s", diff)
	}
}
