// SPDX-License-Identifier: Apache-2.0

package definition

import "go.yaml.in/yaml/v4"

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
func (r *reader) content(a *Agent, n *yaml.Node, field string) (any, bool) {
	if n.Kind == yaml.ScalarNode {
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
