// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/remoteagent"
	"github.com/refrain-dev/refrain/definition/internal/source"
	"github.com/refrain-dev/refrain/definition/internal/vocabulary"
	"github.com/refrain-dev/refrain/template"
)

// A2A is an agent that is elsewhere, and asked over A2A.
type A2A struct {
	// Endpoint is where it is, or where its card is: a URL of http or https.
	// Placeholders can stand after the host.
	Endpoint string
	// Payload is what it is sent: a text, or maps and lists, which are sent as
	// data; nil is the user's message. Each text is a template.
	Payload any
	// Headers are sent with every request. The values are templates.
	Headers map[string]string
	// SizeLimit is the most bytes of an answer; 0 is
	// remoteagent.DefaultSizeLimit.
	SizeLimit int64
	// NewContext begins a new conversation at each run of the agent.
	NewContext bool
}

// content reads a text, or what becomes JSON.
func (r *reader) content(a *Agent, n *source.Node, field string) (any, bool) {
	if n.Kind == source.Scalar {
		return r.words(n, field)
	}
	v, _ := r.any(n, field)
	r.note(a, field, n)
	return v, true
}

var remoteRows = []row[A2A]{
	field("endpoint", "http or https address of the agent or its card; no placeholder in its host", aText, func(x *A2A) *string { return &x.Endpoint }).must(),
	field("payload", "message: text, or a map or list, sent as data; the user's message if left out", own(contentShape, (*reader).content), func(x *A2A) *any { return &x.Payload }),
	field("headers", "", named(aWords), func(x *A2A) *map[string]string { return &x.Headers }),
	field("size_limit", "", aSize, func(x *A2A) *int64 { return &x.SizeLimit }),
	field("new_context", "true starts a new conversation each time; otherwise the remote agent remembers this session", aBool, func(x *A2A) *bool { return &x.NewContext }),
}

// remote checks the texts of an agent elsewhere one by one, so that each problem
// has its place, and then asks remoteagent about the whole. It connects to nothing.
func (c *checker) remote(a *Agent) {
	before := len(c.problems)
	texts := map[string]string{"endpoint": a.A2A.Endpoint}
	for name, v := range a.A2A.Headers {
		texts["headers."+name] = v
	}
	textsIn(texts, "payload", a.A2A.Payload)
	for _, field := range slices.Sorted(maps.Keys(texts)) {
		c.template(a, field, texts[field], template.Mustache)
	}
	if Problems(c.problems[before:]).count(SeverityError) > 0 || c.unset(a) || a.broken ||
		vocabulary.AgentName(a.Name) != "" {
		return
	}
	if e := a.A2A.Endpoint; !strings.HasPrefix(e, "http://") && !strings.HasPrefix(e, "https://") {
		c.report(a.at("endpoint"), CodeTask, "endpoint: %q does not begin with http:// or https://", e)
		return
	}
	_, err := newRemote(a, BuildConfig{}, around{})
	for _, e := range taskErrors(err) {
		if _, ok := errors.AsType[template.Errors](e); ok {
			continue // said above
		}
		field, msg := remoteField(e.Error())
		c.report(a.at(field), CodeTask, "%s", msg).err = e
	}
}

var remoteWords = strings.NewReplacer("AgentCardSource", "endpoint", "Payload", "payload", "Headers", "headers",
	"SizeLimit", "size_limit")

// remoteField gives an error of remoteagent in the words of a file, with the field
// that it is about.
func remoteField(msg string) (field, inWords string) {
	msg = remoteWords.Replace(msg)
	field = msg[:strings.IndexAny(msg+" ", ": [")]
	if quoted, err := strconv.QuotedPrefix(strings.TrimPrefix(msg[len(field):], "[")); err == nil {
		if key, err := strconv.Unquote(quoted); err == nil {
			field += "." + key
		}
	}
	return field, msg
}

// newRemote makes an agent that asks one elsewhere.
func newRemote(a *Agent, cfg BuildConfig, cb around) (agent.Agent, error) {
	x := a.A2A
	return remoteagent.NewA2A(remoteagent.A2AConfig{
		Name: a.Name, Description: a.Description, BeforeAgentCallbacks: cb.before, AfterAgentCallbacks: cb.after,
		AgentCardSource: x.Endpoint,
		Payload:         clone(x.Payload), OutputKey: outputKey(a), NewContext: x.NewContext,
		Headers: x.Headers, SizeLimit: x.SizeLimit, Client: cfg.client(), Elsewhere: cfg.queue(a),
	})
}
