// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/humanagent"
	"github.com/refrain-dev/refrain/definition/internal/meant"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session/mark"
)

// Human is a question to a person.
type Human struct {
	// Ask is the kind of question.
	Ask mark.QuestionKind
	// Question is a template.
	Question string
	// Options are the possible answers; nil allows any answer.
	Options []string
	// Keys are the state keys that a person edits.
	Keys []string
	// Deadline is the time in which the person must answer; 0 means no limit. Default is the answer after it, as
	// JSON; nil fails the step.
	Deadline time.Duration
	Default  json.RawMessage
}

func answerTo() shape {
	return &jsonschema.Schema{Types: []string{"boolean", "string", "number", "object"},
		Title: "true or false, text or map"}
}

// defaultAnswer reads an answer as JSON; nil if the value cannot be an answer. A later check compares it with the
// question.
func (r *reader) defaultAnswer(a *Agent, n *source.Node, field string) (json.RawMessage, bool) {
	if n.Kind == source.List {
		r.wrong(n, field, "true or false, a text, or a map of keys")
		return nil, false
	}
	v, ok := r.any(n, field)
	if !ok {
		return nil, false
	}
	r.note(a, field, n)
	if n.Kind == source.Scalar && n.ShortTag() != "!!bool" {
		v = n.Value // a number is text for people
	}
	data, err := json.Marshal(v)
	if err != nil {
		r.report(n, CodeValue, "default: %v", err).err = err
	}
	return data, err == nil
}

var humanRows = []row[Human]{
	field("question", "question to the person, with placeholders", aWords, func(h *Human) *string { return &h.Question }).must(),
	field("ask", "kind of question: approve (default), answer in words, or edit of state keys", oneWord[mark.QuestionKind]("approve", "answer", "edit"), func(h *Human) *mark.QuestionKind { return &h.Ask }).helped("approve wants a yes or no, answer words, edit new values of state keys").or("approve"),
	field("options", "answers to choose from; any answer if left out", each(aWords, listing{empty: "leave it out, or name some"}), func(h *Human) *[]string { return &h.Options }),
	field("keys", "state keys to show and edit", each(aText, listing{empty: "leave it out, or name some", unique: true}), func(h *Human) *[]string { return &h.Keys }),
	field("deadline", "time limit of the answer, such as 24h; none if left out", aSpan, func(h *Human) *time.Duration { return &h.Deadline }),
	field("default", "answer to use at the deadline: true or false, a text, or a map of keys; without a default the step fails", own(answerTo, (*reader).defaultAnswer), func(h *Human) *json.RawMessage { return &h.Default }),
}

var humanKind = kind{is: TypeHuman, tells: []string{"question"}, check: (*checker).human,
	build: func(_ *builder, a *Agent, cb around) (agent.Agent, error) { return newHuman(a, cb) },
	most:  func(_ *worst, a *Agent) AtMost { return AtMost{waits: seconds(a.Human.Deadline)} },
	notes: func(_ *WorstCase, l *loader, u *AgentWorst) {
		if a := u.Agent; a.Human.Deadline == 0 {
			l.note(a.at("question"), CodeNoBound, "nothing limits how long %q waits for a person",
				a.Name).Hint = "give deadline, such as 24h, and default, the answer to use then"
		}
	},
	exits:  func(a *Agent) string { return wordsIf(a.approves(), "when the person approves") },
	silent: func(*Agent) bool { return true },
	data:   func(a *Agent) bool { return a.Human.Ask != mark.AskText },
	yields: "a person ends the loop by approving: ask: approve; or read the answer in the loop's stop_when",
}

// human checks a question to a person.
func (c *checker) human(a *Agent) {
	before := len(c.problems)
	h := a.Human
	c.template(a, "question", h.Question, template.Canonical)
	c.unset(a)
	c.inTools(a)
	c.askedFor(a)
	for i, key := range a.edits {
		c.keyRead(a, index("keys", i), key)
	}
	if s := a.Step; s != nil && s.AdaptiveTimeout != nil {
		c.report(a.at("adaptive_timeout"), CodeConflict, "adaptive_timeout cannot be used for %q, which waits for "+
			"a person", a.Name).
			Hint = "give deadline"
	}
	c.deadline(a)
	if !c.sound(a, before) {
		return
	}
	if _, err := newHuman(a, around{}); err != nil {
		if errs := unjoin(errors.Unwrap(err)); len(errs) > 0 {
			err = errs[0]
		}
		c.report(a.at("question"), CodeTask, "%v", err).err = err
	}
}

// inTools refuses a question in a tool call, because nobody would see the question there.
func (c *checker) inTools(a *Agent) {
	for p := a; p != nil; p = p.parent {
		if p.tool {
			c.report(a.at("question"), CodeTool, "%q asks a person, which is not possible in a tool call", a.Name).
				Hint = "make it a step of its own; to ask before a call of a tool, use confirm of an MCP server"
			return
		}
	}
}

// askedFor checks whether the fields fit the kind of question.
func (c *checker) askedFor(a *Agent) {
	h := a.Human
	if slices.Contains(a.unread, "ask") {
		return
	}
	conflict := func(field, hint, format string, args ...any) {
		if _, given := a.nodes[field]; given {
			c.report(a.at(field), CodeConflict, format, args...).Hint = hint
		}
	}
	if h.Ask != mark.AskText {
		conflict("options", "give ask: answer", "options are for ask: answer, but this question has ask: %s", h.Ask)
	}
	if h.Ask != mark.AskEdit {
		conflict("keys", "give ask: edit", "keys are for ask: edit, but this question has ask: %s", h.Ask)
		return
	}
	if _, given := a.nodes["keys"]; !given {
		c.report(a.at("ask"), CodeConflict, "ask: edit needs keys, the state keys to edit")
	}
	conflict("output_key", "remove output_key; the edited values are in the keys",
		"ask: edit writes its keys and has no output_key")
}

// deadline checks that a default has a deadline, and notes a deadline without a default.
func (c *checker) deadline(a *Agent) {
	h := a.Human
	_, timed := a.nodes["deadline"]
	n, given := a.nodes["default"]
	switch {
	case given && !timed:
		c.report(a.at("default"), CodeConflict, "default is the answer at the deadline, but there is no deadline").Hint = "give deadline, such as 24h"
	case timed && !given:
		c.warn(a.at("deadline"), CodePerson, "if there is no answer within %s, %q fails",
			brief.Duration(h.Deadline), a.Name).Hint = "give default, the answer to use then"
	}
	if !given || h.Default == nil || slices.Contains(a.unread, "ask") {
		return
	}
	at := a.inField("default", 1, 1)
	switch h.Ask {
	case mark.AskApproval:
		if string(h.Default) != "true" && string(h.Default) != "false" {
			c.report(at, CodeConflict, "default must be true or false, as the person is asked to approve, got %s",
				source.Describe(n))
		}
	case mark.AskText:
		var text string
		switch err := json.Unmarshal(h.Default, &text); {
		case err != nil:
			c.report(at, CodeConflict, "default must be text, as the person is asked for words, got %s",
				source.Describe(n))
		case h.Options != nil && !slices.Contains(h.Options, text):
			c.report(at, CodeConflict, "default %q is not one of the options", text).
				suggest(meant.Hint(text, h.Options, "the options are "+strings.Join(h.Options, ", ")))
		}
	case mark.AskEdit:
		c.defaultEdit(a, at)
	}
}

func (c *checker) defaultEdit(a *Agent, at source.Span) {
	var edit map[string]any
	if json.Unmarshal(a.Human.Default, &edit) != nil {
		c.report(at, CodeConflict, "default must be a map of keys, as the person edits them, got %s",
			source.Describe(a.nodes["default"]))
		return
	}
	for _, key := range slices.Sorted(maps.Keys(edit)) {
		if !slices.Contains(a.unread, "keys") && !slices.Contains(a.Human.Keys, key) {
			c.report(a.at("default."+key), CodeConflict, "default sets %q, which is not among the keys", key).
				suggest(meant.Hint(key, a.Human.Keys, ""))
		}
	}
}

// edited notes the keys that an edit writes. An edit does not declare its keys, because a mistyped name would then
// become a key.
func (c *checker) edited(a *Agent) {
	if a.Human == nil {
		return
	}
	for i, key := range a.edits {
		if c.key(a.at(index("keys", i)), key, "keys") {
			c.writers[key] = append(c.writers[key], a)
		}
	}
}

// edits yields the keys that the person edits, without those that could not be read.
func (a *Agent) edits(yield func(int, string) bool) {
	if a.Human.Ask != mark.AskEdit {
		return
	}
	for i, key := range a.Human.Keys {
		if source.PlainText(a.nodes[index("keys", i)]) && !yield(i, key) {
			return
		}
	}
}

// approves reports whether a person ends the enclosing loop by approving.
func (a *Agent) approves() bool {
	return a.Human != nil && a.Human.Ask == mark.AskApproval && a.CanExitLoop
}

// unheard notes a question whose answer no agent reads.
func (c *checker) unheard() {
	var asked []*Agent
	for a := range c.def.Root.All {
		switch {
		case a.Type == TypeLLM || a.Type == TypeFunc:
			return // it sees what is said
		case a.Human != nil && a.OutputKey == "" && a.Human.Ask != mark.AskEdit && !a.CanExitLoop:
			asked = append(asked, a)
		}
	}
	for _, a := range asked {
		c.note(a.at("question"), CodePerson, "no agent uses the answer to %q", a.Name).
			Hint = fmt.Sprintf("give it an output_key, and read it: %s", answerRead(a))
	}
}

// answerRead shows how to read an answer.
func answerRead(a *Agent) string {
	if a.Human.Ask == mark.AskApproval {
		return "state.KEY.approved"
	}
	return "{{KEY}}"
}

// newHuman makes an agent that asks a person.
func newHuman(a *Agent, cb around) (agent.Agent, error) {
	h := a.Human
	return humanagent.New(humanagent.Config{
		Name: a.Name, Description: a.Description, BeforeAgentCallbacks: cb.before, AfterAgentCallbacks: cb.after,
		Kind: h.Ask, Text: h.Question, Options: slices.Clone(h.Options), Keys: slices.Clone(h.Keys),
		OutputKey:      outputKey(a),
		ExitIfApproved: a.approves(), Timeout: h.Deadline, Default: slices.Clone(h.Default),
	})
}
