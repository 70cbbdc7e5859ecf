// SPDX-License-Identifier: Apache-2.0

package openai_test

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
	"github.com/refrain-dev/refrain/model/openai"
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
func record(t *testing.T, name string, to *[]sent, cfg openai.Config) model.LLM {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := sent{Case: name, Request: r.Method + " " + r.RequestURI, Header: map[string]string{}}
		for _, h := range []string{"Accept", "Authorization", "Content-Type", "Openai-Organization", "Openai-Project"} {
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
		io.WriteString(w, `{"choices":[{"message":{"content":"Hi."},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(srv.Close)
	cfg.BaseURL = srv.URL + "/v1/"
	llm, err := openai.NewModel("m", cfg)
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
	image := genai.NewPartFromBytes([]byte("png"), "image/png")
	pdf := genai.NewPartFromBytes([]byte("pdf"), "application/pdf")
	pdf.InlineData.DisplayName = "a.pdf"
	return []*genai.Content{
		{Role: "user", Parts: []*genai.Part{{Text: "One."}, {Text: "Zwölf <b>."}}},
		{Role: "model", Parts: []*genai.Part{{Text: "Hm.", Thought: true}, {Text: "Looking."}, call, empty}},
		{Role: "user", Parts: []*genai.Part{answer, {Text: "Look:"}, image, pdf,
			genai.NewPartFromURI("https://example.org/a.jpg", "image/jpeg"),
			genai.NewPartFromBytes([]byte("wav"), "audio/wav"), genai.NewPartFromBytes([]byte("mp3"), "audio/mpeg"),
			genai.NewPartFromBytes([]byte("plain"), "text/plain"), genai.NewPartFromBytes([]byte("pdf"), "application/pdf")}},
	}
}

func settings() *genai.GenerateContentConfig {
	return &genai.GenerateContentConfig{
		SystemInstruction: &genai.Content{Parts: []*genai.Part{{Text: "Be brief."}, {Text: "Be kind."}}},
		Temperature:       new(float32(0.7)), TopP: new(float32(0)), PresencePenalty: new(float32(-0.1)), FrequencyPenalty: new(float32(2)),
		Seed: new(int32(0)), MaxOutputTokens: 64, StopSequences: []string{"END", "\n"},
		ThinkingConfig: &genai.ThinkingConfig{ThinkingLevel: genai.ThinkingLevelHigh},
		Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{
			{Name: "look", Description: "Looks.", Parameters: &genai.Schema{Type: genai.TypeObject, Required: []string{"at"}, Properties: map[string]*genai.Schema{
				"at": {Type: genai.TypeString, Description: "Where."}, "n": {Type: genai.TypeInteger, Minimum: new(1.0)},
			}}},
			{Name: "wait"},
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

// Requests are on the wire as OpenAI documents them.
func TestRequestsOnTheWire(t *testing.T) {
	text := []*genai.Content{genai.NewContentFromText("Hello.", genai.RoleUser)}
	var got []sent
	for _, tt := range []struct {
		name   string
		cfg    openai.Config
		req    *model.LLMRequest
		stream bool
	}{
		{"a word", openai.Config{}, &model.LLMRequest{Contents: text}, false},
		{"a stream", openai.Config{APIKey: "key", Organization: "org", Project: "proj"}, &model.LLMRequest{Contents: text, Model: "other"}, true},
		{"a conversation", openai.Config{APIKey: "key"}, &model.LLMRequest{Contents: conversation()}, false},
		{"settings", openai.Config{TokensField: "max_completion_tokens"}, &model.LLMRequest{Contents: text, Config: settings()}, false},
		{"JSON of any form", openai.Config{}, &model.LLMRequest{Contents: text, Config: &genai.GenerateContentConfig{ResponseMIMEType: "application/json"}}, true},
		{"a schema of one's own", openai.Config{}, &model.LLMRequest{Contents: text, Config: &genai.GenerateContentConfig{
			ResponseJsonSchema: map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
		}}, false},
	} {
		for range record(t, tt.name, &got, tt.cfg).GenerateContent(t.Context(), tt.req, tt.stream) {
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
