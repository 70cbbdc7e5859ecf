// SPDX-License-Identifier: Apache-2.0

// Package vocabulary checks the names of agents and of keys of the state, and lists the built-in names and the
// variables that the expressions of a definition can read.
//
//	if wrong := vocabulary.Key("score", "state"); wrong != nil {
//		fmt.Println(wrong.Message) // "score" cannot be a key: {{score}} is built in
//	}
package vocabulary

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/loop"
)

// MaxName is the largest number of characters in the name of an agent.
const MaxName = 100

// AgentName returns the reason why an agent cannot have a name, or "" if it can.
func AgentName(name string) string {
	switch {
	case name == "":
		return "the name is empty"
	case name == "user":
		return `an agent cannot be named "user": that name stands for the person`
	case utf8.RuneCountInString(name) > MaxName:
		return fmt.Sprintf("the name is longer than %d characters", MaxName)
	}
	for i, r := range name {
		if !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r) && r != '_' && r != '-') {
			return fmt.Sprintf("the name %q has to begin with a letter and go on with letters, digits, _ and -", name)
		}
	}
	return ""
}

// Wrong is the reason why a name cannot be a key.
type Wrong struct {
	Taken         bool // the name has another meaning; otherwise no placeholder can name it
	Message, Hint string
}

// Key returns the reason why a name cannot be a key of the state, or nil if it can. what says where the name is written.
func Key(key, what string) *Wrong {
	switch {
	case key == loopOutput:
		return &Wrong{true, "loop_output is an output_key only: it marks the finalizer of a loop", ""}
	case isTaken(key):
		return &Wrong{true, fmt.Sprintf("%q cannot be a key: {{%s}} is built in", key, builtInLike(key)),
			fmt.Sprintf("call it %q, say", "my_"+key)}
	case !keyName(key):
		return &Wrong{false, fmt.Sprintf("%q in %s cannot be a key: a placeholder could not name it", key, what),
			"use letters, digits and _, such as quality_score"}
	}
	return nil
}

// SnakeCase converts a key to the usual spelling, such as my_key for myKey and my-key.
func SnakeCase(key string) string {
	var b strings.Builder
	runes := []rune(key)
	for i, r := range runes {
		switch {
		case r == '-':
			b.WriteByte('_')
			continue
		case unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) || unicode.IsDigit(runes[i-1]) ||
			unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

const loopOutput = "loop_output" // definition.LoopOutput

// BuiltIn lists the values besides keys that a text can name; see drive.Place.Lookup.
var BuiltIn = drive.BuiltIn

// isTaken reports whether a word is a built-in name, so that no key can have it.
func isTaken(word string) bool {
	return slices.Contains(drive.BuiltInHeads, word) || !strings.Contains(word, ".") && slices.Contains(BuiltIn, word)
}

// builtInLike returns the built-in name that a word belongs to.
func builtInLike(word string) string {
	for _, b := range BuiltIn {
		if b == word || strings.HasPrefix(b, word+".") {
			return b
		}
	}
	return word + ".NAME"
}

// keyName reports whether {{key}} names the key, and nothing but the key.
func keyName(key string) bool {
	if strings.Contains(key, ".") {
		return false
	}
	t, err := template.Parse("{{"+key+"}}", template.Options{})
	if err != nil {
		return false
	}
	refs := t.Keys()
	return len(refs) == 1 && refs[0].Name == key && !refs[0].Optional && !refs[0].Single
}

// TaskVariables lists the variables that the expressions of a task can read; see taskagent.Config.
var TaskVariables = taskagent.Variables()

// ValueVariables lists those that the expressions of set and value can read: all but the task's own result.
var ValueVariables = slices.DeleteFunc(taskagent.Variables(), func(v expr.Var) bool { return v.Name == "result" })

// ConditionVariables lists the variables that the expressions of a loop can read; see loop.Condition.
var ConditionVariables = loop.Variables()

// TextKeys returns the places in a text with placeholders that name keys, in the order of the text.
func TextKeys(text string, d template.Dialect) (found []Mention, err error) {
	t, err := template.Parse(text, template.Options{Dialect: d})
	if err != nil {
		return nil, err
	}
	add := func(name string, at int) {
		if key, from, ok := keyPart(name); ok {
			found = append(found, Mention{Name: key, From: at + from, To: at + from + len(key), Earlier: from > 0})
		}
	}
	for _, ref := range t.Keys() {
		add(ref.Name, ref.NameIn(text, ref.From))
		if ref.Section {
			add(ref.Name, ref.NameIn(text, ref.Close))
		}
	}
	slices.SortFunc(found, func(a, b Mention) int { return a.From - b.From })
	return found, nil
}

// keyPart returns the key in a name of a text, and the offset at which the key begins, such as draft in draft.title
// and in prev.draft. ok is false for built-in names.
func keyPart(name string) (key string, from int, ok bool) {
	head, rest, dotted := strings.Cut(name, ".")
	switch {
	case slices.Contains(BuiltIn, name), head == "artifact" && dotted, head == "":
		return "", 0, false
	case dotted && (head == "prev" || head == "best" || head == "rejected"):
		key, _, _ = strings.Cut(rest, ".")
		return key, len(head) + 1, true
	}
	return head, 0, true
}
