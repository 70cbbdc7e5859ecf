// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"encoding/json"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
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

// several reads a list that is not empty, and keeps where its elements are.
func (r *reader) several(a *Agent, n *yaml.Node, what string, read func(*yaml.Node, string) (string, bool)) []string {
	items, ok := r.items(n, what)
	if ok && len(items) == 0 {
		r.report(r.src.Of(n), CodeValue, "%s is an empty list", what).Hint = "leave it out, or name some"
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

func answerTo() shape {
	return &jsonschema.Schema{Types: []string{"boolean", "string", "number", "object"}, Title: "true or false, text or map"}
}

// defaultAnswer reads an answer as JSON; nil if it can be none. Whether it is one
// to the question is looked at when that is known.
func (r *reader) defaultAnswer(a *Agent, n *yaml.Node, field string) (json.RawMessage, bool) {
	if n.Kind == yaml.SequenceNode {
		r.wrong(n, field, "true or false, a text, or a map of keys")
		return nil, false
	}
	v, ok := r.any(n, field)
	if !ok {
		return nil, false
	}
	r.note(a, field, n)
	if n.Kind == yaml.ScalarNode && n.ShortTag() != "!!bool" {
		v = n.Value // a number is text for people
	}
	data, err := json.Marshal(v)
	if err != nil {
		r.report(r.src.Of(n), CodeValue, "default: %v", err).err = err
	}
	return data, err == nil
}

var humanRows = []row[Human]{
	field("question", "question to the person, with placeholders", aWords, func(h *Human) *string { return &h.Question }).must(),
	field("ask", "kind of question: approve (default), answer in words, or edit of state keys", oneWord[session.QuestionKind]("approve", "answer", "edit"), func(h *Human) *session.QuestionKind { return &h.Ask }).helped("approve wants a yes or no, answer words, edit new values of state keys").or("approve"),
	field("options", "answers to choose from; any answer if left out", each(aWords, listing{empty: "leave it out, or name some"}), func(h *Human) *[]string { return &h.Options }),
	field("keys", "state keys to show and edit", each(aText, listing{empty: "leave it out, or name some", unique: true}), func(h *Human) *[]string { return &h.Keys }),
	field("deadline", "time limit of the answer, such as 24h; none if left out", aSpan, func(h *Human) *time.Duration { return &h.Deadline }),
	field("default", "answer to use at the deadline: true or false, a text, or a map of keys; without a default the step fails", own(answerTo, (*reader).defaultAnswer), func(h *Human) *json.RawMessage { return &h.Default }),
}
