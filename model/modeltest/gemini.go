// SPDX-License-Identifier: Apache-2.0

package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model/scripted"
)

// GeminiServer starts a server of the Gemini API.
func GeminiServer(t testing.TB, script scripted.Script) *Server {
	t.Helper()
	return newServer(t, gemini{}, script, "/")
}

type gemini struct{}

// blankLine is Google's, whose lines end as the Web's do.
func (gemini) blankLine() string { return "\r\n\r\n" }

func (gemini) problem(f scripted.Failure) any {
	return object{"error": object{"code": f.Status, "message": f.Message, "status": f.Code}}
}

func (gemini) whole(a scripted.Answer) any {
	var parts []object
	if a.Thought != "" {
		parts = append(parts, object{"text": a.Thought, "thought": true})
	}
	if a.Text != "" {
		parts = append(parts, object{"text": a.Text})
	}
	return geminiAnswer(a, append(parts, geminiCalls(a)...), true)
}

func (d gemini) frames(a scripted.Answer, _ *Request) []frame {
	var out []frame
	chunk := func(last, shows bool, parts ...object) {
		out = append(out, frame{"data: " + marshal(geminiAnswer(a, parts, last)) + d.blankLine(), shows})
	}
	if a.Thought != "" {
		chunk(false, true, object{"text": a.Thought, "thought": true})
	}
	for _, piece := range a.Pieces() {
		chunk(false, true, object{"text": piece})
	}
	if calls := geminiCalls(a); calls != nil {
		chunk(false, false, calls...)
	}
	chunk(true, false, object{"text": ""})
	return out
}

// geminiCalls are the parts of a model's calls. After a thought the first is
// signed, and the signature has to come back. Google reads the arguments itself:
// a call with wrong ones is in the finish reason only.
func geminiCalls(a scripted.Answer) []object {
	var parts []object
	for i, c := range a.Calls {
		if isMalformed(c) {
			continue
		}
		part := object{"functionCall": object{"id": c.ID, "name": c.Name, "args": json.RawMessage(arguments(c))}}
		if i == 0 && a.Thought != "" {
			part["thoughtSignature"] = signature
		}
		parts = append(parts, part)
	}
	return parts
}

func geminiAnswer(a scripted.Answer, parts []object, last bool) object {
	out := object{"modelVersion": "scripted", "responseId": "1"}
	if a.Refusal != "" {
		out["promptFeedback"] = object{"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": a.Refusal}
	} else {
		candidate := object{"index": 0, "content": object{"role": "model", "parts": parts}}
		if last {
			candidate["finishReason"] = a.Finish
			if i := slices.IndexFunc(a.Calls, isMalformed); i >= 0 {
				candidate["finishReason"] = genai.FinishReasonMalformedFunctionCall
				candidate["finishMessage"] = "Malformed function call: " + a.Calls[i].Name + a.Calls[i].Raw
			}
		}
		out["candidates"] = []object{candidate}
	}
	if u := a.Usage; u != nil { // in each chunk, as totals
		usage := object{"promptTokenCount": u.Prompt, "totalTokenCount": u.Prompt}
		if last {
			usage = object{
				"promptTokenCount": u.Prompt, "cachedContentTokenCount": u.Cached, "candidatesTokenCount": u.Output,
				"thoughtsTokenCount": u.Thoughts, "totalTokenCount": u.Prompt + u.Output + u.Thoughts,
			}
		}
		out["usageMetadata"] = usage
	}
	return out
}

type geminiRequest struct {
	Contents          []*genai.Content `json:"contents"`
	SystemInstruction *genai.Content   `json:"systemInstruction"`
	Tools             []struct {
		FunctionDeclarations []*genai.FunctionDeclaration `json:"functionDeclarations"`
		GoogleSearch         *genai.GoogleSearch          `json:"googleSearch"`
		CodeExecution        *genai.ToolCodeExecution     `json:"codeExecution"`
	} `json:"tools"`
	ToolConfig       *genai.ToolConfig `json:"toolConfig"`
	GenerationConfig struct {
		Temperature        *float32              `json:"temperature"`
		TopP               *float32              `json:"topP"`
		TopK               *float32              `json:"topK"`
		MaxOutputTokens    int32                 `json:"maxOutputTokens"`
		StopSequences      []string              `json:"stopSequences"`
		ResponseMIMEType   string                `json:"responseMimeType"`
		ResponseSchema     *genai.Schema         `json:"responseSchema"`
		ResponseJSONSchema json.RawMessage       `json:"responseJsonSchema"`
		ThinkingConfig     *genai.ThinkingConfig `json:"thinkingConfig"`
		Seed               *int32                `json:"seed"`
	} `json:"generationConfig"`
}

func (gemini) decode(r *http.Request, body []byte) (*Request, error) {
	path, ok := strings.CutPrefix(r.URL.Path, "/v1beta/models/")
	name, method, _ := strings.Cut(path, ":")
	stream := method == "streamGenerateContent"
	switch {
	case r.Method != http.MethodPost || !ok || name == "" || !stream && method != "generateContent":
		return nil, errors.New("want POST /v1beta/models/{model}:generateContent or :streamGenerateContent")
	case stream && r.URL.Query().Get("alt") != "sse":
		return nil, errors.New("a stream without alt=sse")
	case r.Header.Get("X-Goog-Api-Key") == "":
		return nil, errors.New("no API key")
	}
	var in geminiRequest
	if err := strict(body, &in); err != nil {
		return nil, err
	}
	g := in.GenerationConfig
	if (g.ResponseSchema != nil || g.ResponseJSONSchema != nil) && g.ResponseMIMEType != "application/json" {
		return nil, errors.New("a response schema without responseMimeType application/json")
	}
	req := &Request{Stream: stream}
	req.Model = name
	req.Config = &genai.GenerateContentConfig{
		SystemInstruction: in.SystemInstruction, Temperature: g.Temperature, TopP: g.TopP, TopK: g.TopK,
		MaxOutputTokens: g.MaxOutputTokens,
		StopSequences:   g.StopSequences, ThinkingConfig: g.ThinkingConfig, Seed: g.Seed, ToolConfig: in.ToolConfig,
	}
	if g.ResponseSchema != nil {
		req.Config.ResponseJsonSchema = json.RawMessage(marshal(g.ResponseSchema))
	} else if g.ResponseJSONSchema != nil {
		req.Config.ResponseJsonSchema = g.ResponseJSONSchema
	}
	for _, t := range in.Tools {
		for _, f := range t.FunctionDeclarations {
			if f.Parameters != nil && f.ParametersJsonSchema != nil {
				return nil, fmt.Errorf("function %q has two schemas", f.Name)
			}
			schema := `{"type":"object"}`
			if f.ParametersJsonSchema != nil {
				schema = marshal(f.ParametersJsonSchema)
			} else if f.Parameters != nil {
				schema = strings.ReplaceAll(marshal(f.Parameters), `"type":"OBJECT"`, `"type":"object"`)
			}
			if err := addFunction(req, f.Name, f.Description, json.RawMessage(schema)); err != nil {
				return nil, err
			}
		}
		if t.GoogleSearch != nil || t.CodeExecution != nil {
			own := &genai.Tool{GoogleSearch: t.GoogleSearch, CodeExecution: t.CodeExecution}
			req.Config.Tools = append(req.Config.Tools, own)
		}
	}
	return req, geminiContents(req, in.Contents)
}

// geminiContents checks the conversation: a turn with calls is followed by one
// with as many answers, and a call after a thought comes back signed.
func geminiContents(req *Request, contents []*genai.Content) error {
	calls, thought := 0, false
	for i, c := range contents {
		answers, made := 0, 0
		if c.Role != string(genai.RoleUser) && c.Role != string(genai.RoleModel) || len(c.Parts) == 0 {
			return fmt.Errorf("content %d: role %q with %d parts", i, c.Role, len(c.Parts))
		}
		for _, p := range c.Parts {
			if p.FunctionResponse != nil {
				answers++
			}
			thought = thought || p.Thought
			if p.FunctionCall != nil {
				if made++; made == 1 && thought && string(p.ThoughtSignature) != "signature" {
					return fmt.Errorf("content %d: the call lost its signature", i)
				}
			}
		}
		if answers != calls {
			return fmt.Errorf("content %d: %d answers to %d calls", i, answers, calls)
		}
		if calls = made; c.Role == string(genai.RoleUser) {
			thought = false
		}
		say(req, c.Role == string(genai.RoleModel), c.Parts...)
	}
	if calls > 0 {
		return fmt.Errorf("%d calls are not answered", calls)
	}
	return lastWord(req)
}
