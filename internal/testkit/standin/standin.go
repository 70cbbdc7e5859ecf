// SPDX-License-Identifier: Apache-2.0

// Package standin replaces the model servers of coding CLIs. It serves Anthropic's Messages API, OpenAI's Responses
// and Chat Completions APIs and Google's Gemini API, with streaming, and answers from a script. Tests run the real
// programs against it.
//
//	server := standin.New(standin.Write("/work/roman.go", "package roman"), standin.Say("done"))
//	defer server.Close()
package standin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// Answer is the server's answer to one request of an agent.
type Answer struct {
	// Status is the HTTP status; 0 is 200.
	Status int
	// Kind is the error's type, in place of the type for the Status. The error then also says when the limit resets.
	Kind string
	// RetryAfter is the header Retry-After, in seconds; 0 is none.
	RetryAfter int
	// Text is the text of the model, or of an error in place of the text for the Status.
	Text string
	// Tool and Input are a call of a tool of the CLI. Without Tool there is no call. A text of Input that begins with WORKDIR begins
	// with the folder in which the CLI says that it works, for tools that demand absolute paths.
	Tool  string
	Input map[string]any
	// Hang keeps the request waiting until the client disconnects.
	Hang bool
	// Cut ends the stream in the middle of the answer.
	Cut bool
}

// Say returns an answer with a text.
func Say(text string) Answer { return Answer{Text: text} }

// Write returns a call of Claude Code's tool that writes a file.
func Write(path, content string) Answer {
	return Answer{Tool: "Write", Input: map[string]any{"file_path": path, "content": content}}
}

// Shell returns a call of Codex's tool that runs a shell command.
func Shell(line string) Answer {
	return Answer{Tool: "exec_command", Input: map[string]any{"cmd": line}}
}

// Fail returns an answer with an HTTP status.
func Fail(status int) Answer { return Answer{Status: status} }

// Server is a stand-in server. It reports 100 input tokens and 10 output tokens for each request.
type Server struct {
	*httptest.Server

	mu    sync.Mutex
	rest  []Answer
	asked []string
}

// New returns a server that gives the answers in order, and then repeats the last one.
func New(answers ...Answer) *Server {
	s := &Server{rest: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// Asked returns the bodies of the requests that got an answer from the script.
func (s *Server) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}

// formats has a function for each API that writes an answer, by the end of the request's path.
var formats = map[string]func(Answer, http.ResponseWriter){
	"/messages": Answer.messages, "/responses": Answer.responses, "/completions": Answer.completions,
	":streamGenerateContent": Answer.contents,
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	write := formats[r.URL.Path[strings.LastIndexAny(r.URL.Path, "/:"):]]
	if write == nil {
		http.NotFound(w, r)
		return
	}
	var body json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/chat/completions") && !bytes.Contains(body, []byte(`"tools"`)) { // a request for a title
		Say("A title").completions(w)
		return
	}
	a := s.next(body)
	switch {
	case a.Hang:
		<-r.Context().Done()
	case a.Status != 0:
		if a.RetryAfter > 0 {
			w.Header().Set("Retry-After", fmt.Sprint(a.RetryAfter))
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(a.Status)
		text := cmp.Or(a.Text, http.StatusText(a.Status))
		failed := object{"type": kinds[a.Status], "code": a.Status, "status": statuses[a.Status], "message": text}
		if a.Kind != "" {
			failed = object{"type": a.Kind, "message": text, "resets_at": time.Now().Add(time.Hour).Unix()}
		}
		_ = json.NewEncoder(w).Encode(object{"type": "error", "error": failed})
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		write(a, w)
	}
}

// The names of errors, for Anthropic and OpenAI, and for Google.
var (
	kinds    = map[int]string{401: "authentication_error", 429: "rate_limit_error", 400: "invalid_request_error"}
	statuses = map[int]string{401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 400: "INVALID_ARGUMENT"}
)

func (s *Server) next(body json.RawMessage) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, string(body))
	if len(s.rest) == 0 {
		return Say("")
	}
	a := s.rest[0]
	if len(s.rest) > 1 {
		s.rest = s.rest[1:]
	}
	if said := workdir().FindSubmatch(body); said != nil {
		a.Input = maps.Clone(a.Input)
		for name, v := range a.Input {
			if text, ok := v.(string); ok && strings.HasPrefix(text, "WORKDIR") {
				a.Input[name] = string(said[1]) + strings.TrimPrefix(text, "WORKDIR")
			}
		}
	}
	return a
}

// workdir finds the folder in which Gemini CLI and Qwen Code say that they work.
var workdir = lazyregexp.New(`working in the directory: ([^\\"]+)`)

// sends writes the events of a stream. With Cut it ends before the last two.
func (a Answer) sends(w http.ResponseWriter, events []map[string]any) {
	if a.Cut {
		events = events[:len(events)-2]
	}
	for _, ev := range events {
		if ev["type"] != nil {
			_, _ = fmt.Fprintf(w, "event: %s\n", ev["type"])
		}
		data, _ := json.Marshal(ev)
		_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
	}
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

type object = map[string]any

// messages writes the answer in the format of Anthropic's Messages API.
func (a Answer) messages(w http.ResponseWriter) {
	id := fmt.Sprintf("msg_%d", time.Now().UnixNano())
	reason, block, delta := "end_turn", object{"type": "text", "text": ""}, object{"type": "text_delta", "text": a.Text}
	if a.Tool != "" {
		input, _ := json.Marshal(a.Input)
		reason = "tool_use"
		block = object{"type": "tool_use", "id": "toolu_" + id, "name": a.Tool, "input": object{}}
		delta = object{"type": "input_json_delta", "partial_json": string(input)}
	}
	a.sends(w, []object{
		{"type": "message_start", "message": object{"id": id, "type": "message", "role": "assistant", "model": "stand-in",
			"content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": object{"input_tokens": 100, "output_tokens": 1}}},
		{"type": "content_block_start", "index": 0, "content_block": block},
		{"type": "content_block_delta", "index": 0, "delta": delta},
		{"type": "content_block_stop", "index": 0},
		{"type": "message_delta", "delta": object{"stop_reason": reason, "stop_sequence": nil}, "usage": object{"output_tokens": 10}},
		{"type": "message_stop"},
	})
}

// responses writes the answer in the format of OpenAI's Responses API.
func (a Answer) responses(w http.ResponseWriter) {
	id := fmt.Sprintf("resp_%d", time.Now().UnixNano())
	item := object{"type": "message", "id": "msg_" + id, "role": "assistant", "status": "completed",
		"content": []any{object{"type": "output_text", "text": a.Text, "annotations": []any{}}}}
	if a.Tool != "" {
		input, _ := json.Marshal(a.Input)
		item = object{"type": "function_call", "id": "fc_" + id, "call_id": "call_" + id, "name": a.Tool,
			"arguments": string(input), "status": "completed"}
	}
	a.sends(w, []object{
		{"type": "response.created", "response": object{"id": id, "object": "response", "status": "in_progress"}},
		{"type": "response.output_item.done", "output_index": 0, "item": item},
		{"type": "response.completed", "response": object{"id": id, "object": "response", "status": "completed",
			"output": []any{item}, "usage": object{"input_tokens": 100, "input_tokens_details": object{"cached_tokens": 40},
				"output_tokens": 10, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 110}}},
	})
}

// completions writes the answer in the format of OpenAI's Chat Completions API.
func (a Answer) completions(w http.ResponseWriter) {
	id := fmt.Sprintf("chatcmpl_%d", time.Now().UnixNano())
	delta, reason := object{"role": "assistant", "content": a.Text}, "stop"
	if a.Tool != "" {
		input, _ := json.Marshal(a.Input)
		reason = "tool_calls"
		delta = object{"role": "assistant", "tool_calls": []any{object{"index": 0, "id": "call_" + id, "type": "function",
			"function": object{"name": a.Tool, "arguments": string(input)}}}}
	}
	chunk := func(choices ...any) object {
		return object{"id": id, "object": "chat.completion.chunk", "created": 1, "model": "stand-in", "choices": choices}
	}
	usage := chunk()
	usage["choices"], usage["usage"] = []any{}, object{"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
	a.sends(w, []object{chunk(object{"index": 0, "delta": delta}),
		chunk(object{"index": 0, "delta": object{}, "finish_reason": reason}), usage})
	if !a.Cut {
		_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
	}
}

// contents writes the answer in the format of Google's Gemini API.
func (a Answer) contents(w http.ResponseWriter) {
	part := object{"text": a.Text}
	if a.Tool != "" {
		part = object{"functionCall": object{"name": a.Tool, "args": a.Input}}
	}
	a.sends(w, []object{
		{"candidates": []any{object{"index": 0, "content": object{"role": "model", "parts": []any{part}}}}},
		{"candidates": []any{object{"index": 0, "content": object{"role": "model", "parts": []any{object{"text": ""}}}, "finishReason": "STOP"}},
			"usageMetadata": object{"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}},
		{"usageMetadata": object{"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}},
	})
}
