// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"math"
	"strings"
	"sync"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/model"
)

// Sizes in bytes that stand for parts without text, at three bytes for a token. Providers count pictures by
// their size, up to about 1600 tokens, and sound, films and pages by time and number. A file that
// is only named can be any of these.
const (
	contentBytes = 12 // added for each content
	imageBytes   = 3 * 1600
	fileBytes    = 3 * 10_000
	blobShare    = 5 // a blob that is not a picture counts as a fifth of its bytes
)

// sizeMemo remembers the sizes in bytes of the last request's contents, because the next request
// nearly always begins with the same contents.
type sizeMemo struct {
	contents []*genai.Content
	upTo     []int64 // bytes of the contents up to and including this one
}

// request returns the size of a request in bytes. A picture or the like counts as a text with as
// many tokens.
func (c *sizeMemo) request(req *model.LLMRequest) int64 {
	n := c.conversation(req.Contents)
	cfg := req.Config
	if cfg == nil {
		return n
	}
	if cfg.SystemInstruction != nil {
		n += contentBytes + partsBytes(cfg.SystemInstruction.Parts)
	}
	if len(cfg.Tools) > 0 {
		n += int64(len(asJSON(cfg.Tools)))
	}
	if cfg.ResponseSchema != nil {
		n += int64(len(asJSON(cfg.ResponseSchema)))
	}
	if cfg.ResponseJsonSchema != nil {
		n += int64(len(asJSON(cfg.ResponseJsonSchema)))
	}
	return n
}

func (c *sizeMemo) conversation(contents []*genai.Content) int64 {
	same := 0
	for same < min(len(contents), len(c.contents)) && contents[same] == c.contents[same] {
		same++
	}
	c.contents, c.upTo = append(c.contents[:same], contents[same:]...), c.upTo[:same]
	var sum int64
	if same > 0 {
		sum = c.upTo[same-1]
	}
	for _, content := range contents[same:] {
		if content != nil {
			sum += contentBytes + partsBytes(content.Parts)
		}
		c.upTo = append(c.upTo, sum)
	}
	return sum
}

func partsBytes(parts []*genai.Part) int64 {
	var n int
	for _, p := range parts {
		if p == nil {
			continue
		}
		n += len(p.Text)
		if f := p.FunctionCall; f != nil {
			n += len(f.Name) + len(asJSON(f.Args))
		}
		if f := p.FunctionResponse; f != nil {
			n += len(f.Name) + len(asJSON(f.Response))
		}
		if e := p.ExecutableCode; e != nil {
			n += len(e.Code)
		}
		if e := p.CodeExecutionResult; e != nil {
			n += len(e.Output)
		}
		if p.FileData != nil {
			n += fileBytes
		}
		switch b := p.InlineData; {
		case b == nil:
		case strings.HasPrefix(b.MIMEType, "image/"):
			n += imageBytes
		case strings.HasPrefix(b.MIMEType, "text/"):
			n += len(b.Data)
		default:
			n += len(b.Data) / blobShare
		}
	}
	return int64(n)
}

// perThree estimates the tokens in a text of which only the size is known, at one token for three bytes. Most texts
// have three or four bytes for each token.
func perThree(bytes int64) int64 { return (bytes + 2) / 3 }

// meter estimates tokens, and learns from the provider's counts.
type meter struct {
	mu      sync.Mutex
	known   bool
	bytes   float64 // size of the last request that the provider counted
	tokens  float64 // input tokens of that request
	perByte float64
	longest int64 // output tokens of the longest answer
	recent  int64 // output tokens of about the longest of the last answers

	answered bool // there was an answer

	cached int64 // input tokens of the last request that came from the provider's cache
	writes bool  // the provider has reported writing to a cache
}

// input returns an upper estimate of the tokens in a number of bytes: 10% above a line through the last
// request, with a slope between an eighth and a third of a token for each byte.
func (m *meter) input(bytes int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.known {
		return perThree(bytes)
	}
	return int64(math.Ceil(1.1 * max(0, m.tokens+m.perByte*(float64(bytes)-m.bytes))))
}

// output returns the expected, the largest and the least output tokens of an answer. The expected
// number is one and a half times the longest of the last answers.
func (m *meter) output(cfg *genai.GenerateContentConfig) (expected, most, least int64) {
	var bound, thoughts int64
	if cfg != nil {
		bound = max(0, int64(cfg.MaxOutputTokens))
		if t := cfg.ThinkingConfig; t != nil && t.ThinkingBudget != nil {
			thoughts = max(0, int64(*t.ThinkingBudget))
		}
	}
	least = thoughts + MinOutputTokens // providers refuse or raise a limit that is below the thoughts
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case bound == 0:
		most = max(thoughts+DefaultOutputTokens, m.longest)
	case bound <= thoughts:
		most = thoughts + bound
	default:
		most = bound
	}
	expected = min(most, thoughts+DefaultOutputTokens)
	if m.answered {
		expected = min(most, max(least, m.recent+m.recent/2))
	}
	return expected, most, least
}

// estimateOutput estimates the output tokens of an answer that was cut off before its first piece, from
// earlier answers.
func (m *meter) estimateOutput() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.recent
}

// learn records the provider's counts for a request.
func (m *meter) learn(bytes, input, output int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer(output)
	if bytes > 0 && input > 0 {
		m.known, m.bytes, m.tokens = true, float64(bytes), float64(input)
		m.perByte = max(1.0/8, min(1.0/3, m.tokens/m.bytes))
	}
}

// caches sets how a call is expected to use the provider's cache, before the call is reserved. The call is expected to
// read what the call before it in the same run of the agent has read, and to write the rest if it asks for a cache.
func (m *meter) caches(ask *budget.Request, hint *model.CacheHint, further bool, rules model.Caches) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if further {
		ask.CachedTokens = m.cached
	}
	switch charged := rules.Charged || m.writes; {
	case charged && rules.MinTokens > 0 && !rules.Asked:
		ask.CacheWrite = true
	case charged && hint != nil:
		ask.CacheWrite = hint.Later || hint.Next
		ask.CacheWrite1h = ask.CacheWrite && hint.Hour
	}
}

// learnCache records what the provider has reported of its cache.
func (m *meter) learnCache(u budget.Usage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cached = u.CachedTokens
	m.writes = m.writes || u.CacheWriteTokens+u.CacheWrite1hTokens > 0
}

// learnOutput records the estimated output of an answer that the provider has not counted.
func (m *meter) learnOutput(output int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer(output)
}

// answer records the length of an answer. The effect of a long answer decreases by a quarter with each further answer.
func (m *meter) answer(output int64) {
	m.answered = true
	m.longest = max(m.longest, output)
	m.recent = max(output, m.recent*3/4)
}
