// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/internal/text/source"
)

// Fix sets a field of an agent as a finding of package progress or a rehearsal suggests. agent is the name of the
// agent, field the path with dots, such as score.judge.samples, and value is YAML on one line. Fix creates missing
// maps on the way, and turns a short form, such as score: review, into a map.
//
// It fails if the text describes no such agent, or two.
func (e *Editor) Fix(agent, field, value string) error {
	path, err := e.agentPath("fix", agent)
	if err != nil {
		return err
	}
	names := strings.Split(field, ".")
	for i := range names {
		at := path + hop{key: names[i], keyed: true}.in(path)
		p, err := e.sheet.find(at)
		if err != nil || i == len(names)-1 {
			return e.Set(at, YAML(value))
		}
		switch short := shorthand[names[i]]; {
		case p.node == nil, p.node.Kind == yaml.ScalarNode && short == "":
			return e.Set(at, YAML(nest(names[i+1:], value)))
		case p.node.Kind == yaml.ScalarNode:
			old := short + ": " + newPen(e.sheet).scalar(p.node, 0, manner{flow: true})
			if err := e.Set(at, YAML("{"+old+"}")); err != nil {
				return err
			}
		}
		path = at
	}
	return nil
}

// Shorthand returns the name in a field's map that a plain value in place of the map stands for:
// score: review is short for score: {key: review}. It is empty for other fields.
func Shorthand(field string) string { return shorthand[field] }

var shorthand = map[string]string{"score": "key", "judge": "step", "retry": "attempts", "request_retry": "attempts"}

// nest is a value in maps, on one line.
func nest(names []string, value string) string {
	if len(names) == 0 {
		return value
	}
	return "{" + names[0] + ": " + nest(names[1:], value) + "}"
}

// Append adds lines to the end of a text field of an agent, such as instructions. It creates a missing field with
// these lines. It fails if the field is not a text, and in the cases of [Editor.Fix].
func (e *Editor) Append(agent, field, lines string) error {
	path, err := e.agentPath("append", agent)
	if err != nil {
		return err
	}
	at := path + hop{key: field, keyed: true}.in(path)
	p, err := e.sheet.find(at)
	if err != nil || p.node == nil {
		return e.Set(at, lines)
	}
	if p.node.Kind != yaml.ScalarNode || p.node.ShortTag() != "!!str" {
		return &Error{Op: "append", Path: at, Line: p.node.Line, Column: p.node.Column,
			Err: fmt.Errorf("the field is %s, not a text", source.Describe(p.node))}
	}
	return e.Set(at, strings.TrimRight(p.node.Value, "\n")+"\n\n"+lines+"\n")
}

// Retext replaces a text field of an agent, such as instructions, and returns the text that it had. An empty text changes nothing. It fails if the agent has no such
// field, or one that is not a text, and in the cases of [Editor.Fix].
func (e *Editor) Retext(agent, field, text string) (old string, err error) {
	path, err := e.agentPath("change", agent)
	if err != nil {
		return "", err
	}
	at := path + hop{key: field, keyed: true}.in(path)
	p, err := e.sheet.find(at)
	if err == nil && (p.node == nil || p.node.Kind != yaml.ScalarNode || p.node.ShortTag() != "!!str") {
		err = &Error{Op: "change", Path: at, Err: errors.New("the agent has no such text")}
	}
	if err != nil {
		return "", err
	}
	if old = p.node.Value; text != "" {
		err = e.Set(at, text)
	}
	return old, err
}

// agentPath is the path of the agent with a name; "" is the definition's own.
func (e *Editor) agentPath(op, agent string) (string, error) {
	var found []string
	for _, n := range e.sheet.namings() {
		if n.role == roleAgent && n.node.Value == agent {
			found = append(found, strings.TrimSuffix(strings.TrimSuffix(n.path, "name"), "."))
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	err := fmt.Errorf("the text describes no agent %q", agent)
	if len(found) > 1 {
		err = fmt.Errorf("the text describes %d agents %q", len(found), agent)
	}
	return "", &Error{Op: op, Path: agent, Err: err}
}
