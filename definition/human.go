// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"encoding/json"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/session"
)

// Human is a question to a person.
type Human struct {
	// Ask is what the person is asked for.
	Ask session.QuestionKind
	// Question is a template.
	Question string
	// Options are the answers to choose from; nil is any.
	Options []string
	// Keys are the state keys that an edit is about.
	Keys []string
	// Deadline is how long the person may take; 0 is for ever. Default is the
	// answer then, as JSON; nil fails the step.
	Deadline time.Duration
	Default  json.RawMessage
}

// questionKinds are what a person can be asked for.
var questionKinds = []string{string(session.AskApproval), string(session.AskText), string(session.AskEdit)}

func humanOf(a *Agent) *Human {
	if a.Human == nil {
		a.Human = &Human{Ask: session.AskApproval}
	}
	return a.Human
}

// humanField reads a field of a question, and reports whether it is one.
func (r *reader) humanField(a *Agent, p pair) bool {
	if a.Type != TypeHuman {
		return false
	}
	h := humanOf(a)
	switch p.key {
	case "question":
		h.Question, _ = r.words(p.value, p.key)
	case "ask":
		kind, ok := r.text(p.value, p.key)
		if ok && !slices.Contains(questionKinds, kind) {
			r.report(r.src.of(p.value), CodeValue, "ask must be approve, answer or edit, got %q", kind).
				Hint = didYouMean(kind, questionKinds, "%q", "approve wants a yes or no, answer words, edit new values of state keys")
		}
		if !ok {
			r.hint("approve wants a yes or no, answer words, edit new values of state keys")
		}
		h.Ask = session.QuestionKind(kind)
	case "options":
		h.Options = r.several(a, p.value, p.key, r.words)
	case "keys":
		before := len(r.problems)
		h.Keys = r.several(a, p.value, p.key, r.text)
		if len(r.problems) > before {
			a.unread = append(a.unread, p.key)
		}
		r.twice(p.value, p.key, h.Keys)
	case "deadline":
		h.Deadline, _ = r.duration(p.value, p.key)
	case "default":
		h.Default = r.defaultAnswer(a, p.value)
	default:
		return false
	}
	return true
}

// several reads a list that is not empty, and keeps where its elements are.
func (r *reader) several(a *Agent, n *yaml.Node, what string, read func(*yaml.Node, string) (string, bool)) []string {
	items, ok := r.items(n, what)
	if ok && len(items) == 0 {
		r.report(r.src.of(n), CodeValue, "%s is an empty list", what).Hint = "leave it out, or name some"
	}
	var all []string
	for i, item := range items {
		f := index(what, i)
		a.nodes[f] = item
		text, _ := read(item, f) // one that is wrong keeps its place
		all = append(all, text)
	}
	return all
}

// twice reports what a list names twice.
func (r *reader) twice(n *yaml.Node, what string, names []string) {
	for i, name := range names {
		if slices.Index(names, name) < i && name != "" {
			r.report(r.src.of(n), CodeValue, "%s names %q twice", what, name)
			return
		}
	}
}

// defaultAnswer reads an answer as JSON; nil if it can be none. Whether it is one
// to the question is looked at when that is known.
func (r *reader) defaultAnswer(a *Agent, n *yaml.Node) json.RawMessage {
	if n = deref(n); n.Kind == yaml.SequenceNode {
		r.wrong(n, "default", "true or false, a text, or a map of keys")
		return nil
	}
	v, ok := r.any(n, "default")
	if !ok {
		return nil
	}
	r.note(a, "default", n)
	if n.Kind == yaml.ScalarNode && n.ShortTag() != "!!bool" {
		v = n.Value // a number is text for people
	}
	data, err := json.Marshal(v)
	if err != nil {
		r.report(r.src.of(n), CodeValue, "default: %v", err).err = err
		return nil
	}
	return data
}
