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

func a2aOf(a *Agent) *A2A {
	if a.A2A == nil {
		a.A2A = &A2A{}
	}
	return a.A2A
}

// remoteField reads a field of an agent elsewhere, and reports whether it is one.
func (r *reader) remoteField(a *Agent, p pair) bool {
	if a.Type != TypeA2A {
		return false
	}
	x := a2aOf(a)
	switch p.key {
	case "endpoint":
		x.Endpoint, _ = r.text(p.value, p.key)
	case "payload":
		if p.value.Kind == yaml.ScalarNode {
			x.Payload, _ = r.words(p.value, p.key)
			return true
		}
		x.Payload, _ = r.any(p.value, p.key)
		r.note(a, p.key, p.value)
	case "headers":
		x.Headers = r.texts(a, p.value, p.key)
	case "size_limit":
		x.SizeLimit, _ = r.size(p.value, p.key)
	case "new_context":
		x.NewContext, _ = r.boolean(p.value, p.key)
	default:
		return false
	}
	return true
}
