// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
)

// problem has the fields of a provider's error in JSON; missing fields are zero.
type problem struct {
	status        int
	code, message string
	retryAfter    time.Duration
}

// problemJSON holds the forms that are in use: OpenAI's and Anthropic's error
// with a type, Google's with status and details, vLLM's without an "error"
// around it.
type problemJSON struct {
	Message string          `json:"message"`
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"` // a word or a status
	Status  string          `json:"status"`
	Detail  any             `json:"detail"` // FastAPI
	Details []struct {
		RetryDelay string `json:"retryDelay"`
	} `json:"details"`
}

// parseProblem reads an error body as far as it is understood.
func parseProblem(data []byte) problem {
	data = bytes.TrimSpace(data)
	if list := []json.RawMessage(nil); json.Unmarshal(data, &list) == nil && len(list) > 0 {
		data = list[0] // Gemini, if it is asked to stream without SSE
	}
	var outer struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &outer) != nil {
		return problem{}
	}
	if len(outer.Error) > 0 {
		data = outer.Error
	}
	var text string
	if json.Unmarshal(data, &text) == nil {
		return problem{message: text} // Ollama
	}
	var in problemJSON
	if json.Unmarshal(data, &in) != nil {
		return problem{}
	}
	p := problem{message: in.Message, code: in.Status}
	if p.message == "" {
		p.message, _ = in.Detail.(string)
	}
	var code string
	if n, err := strconv.Atoi(string(in.Code)); err == nil {
		p.status = n
	} else if json.Unmarshal(in.Code, &code) == nil && p.code == "" {
		p.code = code
	}
	if p.code == "" {
		p.code = in.Type
	}
	for _, d := range in.Details {
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil && wait > 0 {
			p.retryAfter = min(wait, longestWait)
		}
	}
	return p
}

// longestWait is the most that a stranger can ask for.
const longestWait = 24 * time.Hour
