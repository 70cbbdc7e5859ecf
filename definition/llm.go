// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"go.yaml.in/yaml/v4"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent/llmagent"
)

// LLM is what only agents that ask a model have.
type LLM struct {
	// Instructions is a template; {key} is read as well as {{key}}.
	Instructions string
	// OutputSchema is the shape of the answer, which is JSON; nil for words.
	OutputSchema *genai.Schema
	// Context says how much of what was said before the model sees.
	Context llmagent.Context
	// Temperature is nil for the model's own.
	Temperature *float64
	// MaxTokens is the most tokens of one answer; 0 is the model's own limit.
	MaxTokens uint
	// Retry says how a request is sent again that has failed in a way that may
	// pass; a Retry of the step, see [Step], runs the whole agent again.
	Retry llmagent.Retry
	Tools []Tool
}

func llmOf(a *Agent) *LLM {
	if a.LLM == nil {
		a.LLM = &LLM{}
	}
	return a.LLM
}

// llmField reads a field of agents that ask a model, and reports whether it is
// one.
func (r *reader) llmField(a *Agent, p pair) bool {
	switch p.key {
	case "model":
		a.Model, _ = r.text(p.value, p.key)
	case "instructions":
		llmOf(a).Instructions, _ = r.words(p.value, p.key)
	case "output_schema":
		llmOf(a).OutputSchema = answerSchema(r.schema(p.value, p.key))
	case "context":
		r.context(a, p.value)
	case "temperature":
		r.temperature(llmOf(a), p.value)
	case "max_tokens":
		r.maxTokens(llmOf(a), p.value)
	case "request_retry":
		r.requestRetry(a, p.value)
	case "tools":
		r.tools(a, p.value)
	default:
		return false
	}
	return true
}

func (r *reader) temperature(l *LLM, n *yaml.Node) {
	v, ok := r.number(n, "temperature")
	switch {
	case ok && (v < 0 || v > 2):
		r.report(r.src.of(n), CodeValue, "temperature must be between 0 and 2, got %v", v)
	case ok:
		l.Temperature = &v
	}
}

func (r *reader) maxTokens(l *LLM, n *yaml.Node) {
	l.MaxTokens, _ = r.positive(n, "max_tokens", "leave it out for the model's own limit")
}

// requestRetry reads how often a request is sent in all, or a map.
func (r *reader) requestRetry(a *Agent, n *yaml.Node) {
	out := &llmOf(a).Retry
	attempts := func(n *yaml.Node, f string) {
		v, _ := r.positive(n, f)
		out.Attempts = int(v)
	}
	if n.Kind == yaml.ScalarNode {
		attempts(n, "request_retry")
		return
	}
	r.settings(a, n, "request_retry", within("request_retry"), func(key, f string, n *yaml.Node) {
		switch key {
		case "attempts":
			attempts(n, f)
		case "backoff":
			out.Delay, _ = r.duration(n, f)
		case "max_backoff":
			out.MaxDelay, _ = r.duration(n, f)
		case "max_retry_after":
			out.MaxRetryAfter, _ = r.duration(n, f)
		}
	})
	if out.MaxDelay > 0 && out.MaxDelay < out.Delay {
		r.report(r.src.of(a.nodes["request_retry.max_backoff"]), CodeValue, "request_retry: max_backoff %s is shorter than backoff %s", out.MaxDelay, out.Delay)
	}
}

var contexts = []string{
	string(llmagent.ContextFull), string(llmagent.ContextIteration), string(llmagent.ContextDigest), string(llmagent.ContextNone),
}

const contextForms = "context must be full, iteration, digest, none or {last: n, digest: true}"

// context reads the name of a policy, or {last: n, digest: true}.
func (r *reader) context(a *Agent, n *yaml.Node) {
	out := &llmOf(a).Context
	if n.Kind == yaml.MappingNode {
		*out = r.contextOf(a, n)
		return
	}
	text, ok := r.text(n, "context")
	for _, c := range contexts {
		if text == c {
			*out = llmagent.Context{Policy: llmagent.ContextPolicy(c)}
			return
		}
	}
	if !ok {
		return
	}
	p := r.report(r.src.of(n), CodeValue, contextForms+", got %q", text)
	if p.Hint = didYouMean(text, contexts, "%q", ""); text == "last" {
		p.Hint = "say how many iterations, as {last: 3}"
	}
}

// contextOf reads how many iterations are shown, and whether the older ones are
// told in a digest. Without a number only the running one is shown then.
func (r *reader) contextOf(a *Agent, n *yaml.Node) (c llmagent.Context) {
	digest := false
	ok := r.settings(a, n, "context", within("context"), func(key, f string, n *yaml.Node) {
		switch key {
		case "last":
			v, _ := r.positive(n, f, "for nothing of what was said, write context: none")
			c.Last = int(v)
		case "digest":
			digest, _ = r.boolean(n, f)
		case "best_chars":
			v, _ := r.positive(n, f)
			c.BestChars = int(v)
		}
	})
	switch c.Policy = llmagent.ContextLast; {
	case !ok:
	case digest:
		c.Policy = llmagent.ContextDigest
	case c.Last == 0:
		r.report(r.src.of(n), CodeValue, contextForms)
	case c.BestChars > 0:
		r.report(r.src.of(a.nodes["context.best_chars"]), CodeValue, "context.best_chars is about a digest; there is none").Hint = "add digest: true"
	}
	return c
}
