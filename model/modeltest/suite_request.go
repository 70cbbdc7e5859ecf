// SPDX-License-Identifier: Apache-2.0

package modeltest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
)

// pixel is a PNG image of one pixel.
var pixel = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89")

func testRequest(t *testing.T, o Options) {
	score := &genai.Schema{
		Type: genai.TypeObject, Required: []string{"why", "score"}, PropertyOrdering: []string{"why", "score"},
		Properties: map[string]*genai.Schema{
			"score": {Type: genai.TypeInteger, Minimum: new(0.0), Maximum: new(10.0)},
			"why":   {Type: genai.TypeString, Description: "the reason"},
		},
	}
	written := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}`)
	request := func() *model.LLMRequest {
		return &model.LLMRequest{
			Contents: []*genai.Content{{Role: "user", Parts: []*genai.Part{
				{Text: "How many?"},
				{InlineData: &genai.Blob{MIMEType: "image/png", Data: pixel}},
				{FileData: &genai.FileData{MIMEType: "image/png", FileURI: "https://example.com/b.png"}},
			}}},
			Config: &genai.GenerateContentConfig{
				SystemInstruction: genai.NewContentFromText("You count bananas.", genai.RoleUser),
				Temperature:       new(float32(0.7)), TopP: new(float32(0.9)), MaxOutputTokens: 2000,
				StopSequences:  []string{"END"},
				ResponseSchema: score, ResponseMIMEType: "application/json",
				ThinkingConfig: &genai.ThinkingConfig{IncludeThoughts: true, ThinkingBudget: new(int32(1024))},
				Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{
					{Name: "count", Description: "Counts.", Parameters: score},
					{Name: "read", ParametersJsonSchema: written},
					{Name: "exitLoop", Description: "Ends it."},
				}}},
				ToolConfig: &genai.ToolConfig{FunctionCallingConfig: &genai.FunctionCallingConfig{Mode: genai.FunctionCallingConfigModeAuto}},
			},
		}
	}
	both(t, "arrives in full", func(t *testing.T, stream bool) {
		llm, srv := o.Open(t, script(scripted.Answer{MatchRequest: "You count bananas", Match: "How many",
			Text: "Five."}))
		req := request()
		before := marshal(req)
		if s := ask(t.Context(), t, llm, req, stream); s.err != nil {
			t.Fatal(s.err)
		}
		if after := marshal(req); after != before {
			t.Errorf("the request was changed:\n%s\n%s", before, after)
		}
		if srv != nil {
			checkRequest(t, srv.Requests()[0], stream, llm.Name(), written)
		}
	})
	both(t, "model by request", func(t *testing.T, stream bool) {
		llm, srv := o.Open(t, script(scripted.Answer{Text: "Five."}))
		req := userSays("How many?")
		req.Model = "another-model"
		if s := ask(t.Context(), t, llm, req, stream); s.err != nil {
			t.Fatal(s.err)
		}
		if srv != nil && srv.Requests()[0].Model != "another-model" {
			t.Errorf("asked %q", srv.Requests()[0].Model)
		}
	})
	both(t, "nothing said yet", func(t *testing.T, stream bool) {
		llm, _ := o.Open(t, script(scripted.Answer{Text: "Ready."}))
		req := &model.LLMRequest{Config: &genai.GenerateContentConfig{SystemInstruction: genai.NewContentFromText("Be ready.", genai.RoleUser)}}
		if s := ask(t.Context(), t, llm, req, stream); s.err != nil {
			t.Fatal(s.err)
		}
	})
}

// checkRequest: every wire format carries the same.
func checkRequest(t *testing.T, got *Request, stream bool, name string, written json.RawMessage) {
	t.Helper()
	c := got.Config
	if got.Stream != stream || got.Model != name || c.SystemInstruction.Parts[0].Text != "You count bananas." {
		t.Errorf("stream %v, model %q, system %v", got.Stream, got.Model, c.SystemInstruction)
	}
	if *c.Temperature != 0.7 || *c.TopP != 0.9 || c.MaxOutputTokens != 2000 ||
		!cmp.Equal(c.StopSequences, []string{"END"}) || c.ThinkingConfig == nil {
		t.Errorf("settings: %s", marshal(c))
	}
	parts := got.Contents[0].Parts
	if len(parts) != 3 || parts[0].Text != "How many?" || parts[1].InlineData == nil ||
		parts[1].InlineData.MIMEType != "image/png" ||
		!cmp.Equal(parts[1].InlineData.Data, pixel) || parts[2].FileData == nil ||
		parts[2].FileData.FileURI != "https://example.com/b.png" {
		t.Errorf("contents: %s", marshal(got.Contents))
	}
	var names []string
	for _, f := range c.Tools[0].FunctionDeclarations {
		names = append(names, f.Name)
	}
	if diff := cmp.Diff([]string{"count", "read", "exitLoop"}, names); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(asJSON(t, written), asJSON(t, c.Tools[0].FunctionDeclarations[1].ParametersJsonSchema)); diff != "" {
		t.Errorf("a schema that was written out (-want +got):\n%s", diff)
	}
	// A reason comes before its score, as it is written. Google has a keyword
	// for that.
	for _, schema := range []string{marshal(c.ResponseJsonSchema), marshal(c.Tools[0].FunctionDeclarations[0].ParametersJsonSchema)} {
		why, score := strings.Index(schema, `"why":{`), strings.Index(schema, `"score":{`)
		if why < 0 || score < 0 || why > score && !strings.Contains(schema, `"propertyOrdering":["why","score"]`) ||
			!strings.Contains(schema, "the reason") {
			t.Errorf("schema: %s", schema)
		}
	}
}

func testRoundTrip(t *testing.T, o Options) {
	both(t, "thought, calls, answers", func(t *testing.T, stream bool) {
		first := scripted.Answer{Thought: "I should count.", Text: "Counting.", Calls: []scripted.Call{
			{ID: "call_1", Name: "count", Args: map[string]any{"n": 5.0}}, {ID: "call_2", Name: "look"},
		}}
		llm, srv := o.Open(t, script(first, scripted.Answer{Text: "Five."}))
		req := userSays("How many?")
		s := ask(t.Context(), t, llm, req, stream)
		if s.err != nil {
			t.Fatal(s.err)
		}
		answers := &genai.Content{Role: "user", Parts: []*genai.Part{
			{FunctionResponse: &genai.FunctionResponse{ID: "call_1", Name: "count", Response: map[string]any{"n": 5.0}}},
			{FunctionResponse: &genai.FunctionResponse{ID: "call_2", Name: "look", Response: map[string]any{"error": "it is dark"}}},
		}}
		req.Contents = append(req.Contents, s.final.Content, answers)
		if s = ask(t.Context(), t, llm, req, stream); s.err != nil || s.final.Content.Parts[0].Text != "Five." {
			t.Fatalf("got %v, %v", s.final, s.err)
		}
		if srv == nil {
			return
		}
		got := srv.Requests()[1].Contents
		if len(got) != 3 {
			t.Fatalf("contents: %s", marshal(got))
		}
		if diff := sameContent(answers, got[2]); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
	})
	both(t, "another provider's history", func(t *testing.T, stream bool) {
		llm, srv := o.Open(t, script(scripted.Answer{Text: "Five."}))
		req := userSays("How many?")
		req.Contents = append(req.Contents,
			&genai.Content{Role: "model", Parts: []*genai.Part{
				{Text: "Hm.", Thought: true, ThoughtSignature: []byte("anthropic-redacted:x")},
				{Text: "Counting."},
				{FunctionCall: &genai.FunctionCall{Name: "count", ID: "toolu/very.long:" + strings.Repeat("x", 60)}},
				{FunctionCall: &genai.FunctionCall{Name: "look"}},
			}},
			&genai.Content{Role: "user", Parts: []*genai.Part{
				{FunctionResponse: &genai.FunctionResponse{Name: "look", Response: map[string]any{"seen": "fruit"}}},
				{FunctionResponse: &genai.FunctionResponse{Name: "count", ID: "toolu/very.long:" + strings.Repeat("x", 60), Response: map[string]any{"n": 5.0}}},
			}},
			&genai.Content{Role: "user", Parts: []*genai.Part{{Text: "Well?"}}},
			&genai.Content{Role: "model", Parts: []*genai.Part{{Text: "It was dark."}}},
		)
		if s := ask(t.Context(), t, llm, req, stream); s.err != nil {
			t.Fatal(s.err)
		}
		if srv == nil {
			return
		}
		// The server has checked that calls and answers belong together.
		got := marshal(srv.Requests()[0].Contents)
		for _, want := range []string{"Counting.", `"n":5`, `"seen":"fruit"`, "Well?", "It was dark."} {
			if !strings.Contains(got, want) {
				t.Errorf("%s is missing in %s", want, got)
			}
		}
	})
}

// asJSON is a schema or another value as it looks after a journey.
func asJSON(t testing.TB, v any) any {
	t.Helper()
	var out any
	if err := json.Unmarshal([]byte(marshal(v)), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
