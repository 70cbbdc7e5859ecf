// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/edit"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/text/template"
)

// changeable are the fields that [Change] may replace: texts that models and people read. None is a path, a command, an address or the
// name of anything.
var changeable = []string{"instructions", "static_instruction", "prompt", "text", "description"}

// Refusal says why a change was not made. Whoever proposed it can propose another one.
type Refusal struct{ Err error }

func (e *Refusal) Error() string { return "the change is refused: " + e.Err.Error() }

// Unwrap returns the reason.
func (e *Refusal) Unwrap() error { return e.Err }

// CheckField returns an error for a name of a field that [Change] may not replace. A field is written AGENT.FIELD.
func CheckField(field string) error {
	agent, name, ok := strings.Cut(field, ".")
	if !ok || agent == "" || !slices.Contains(changeable, name) {
		return fmt.Errorf("%q cannot be changed; write AGENT.FIELD, with one of the fields %s", field, strings.Join(changeable, ", "))
	}
	return nil
}

// Text is the text of a field that [Change] may replace.
type Text struct {
	Field string `json:"field"`
	Text  string `json:"text"`
}

// Change replaces texts in the definition of a program, by AGENT.FIELD, and keeps the rest of the definition as it is. An empty text
// changes nothing. It returns the definition, the texts of all of these fields after the change, sorted by field, and the difference as a
// unified diff, which is empty if nothing has changed.
//
// The texts may come from a model. Each must have the placeholders of the text that it replaces and no others, so that it reads nothing
// that the author did not let it read, and the result must be a valid definition. Otherwise the error is a [*Refusal], and the program is as
// it was.
func Change(p *program.Program, texts map[string]string) (def *definition.Definition, after []Text, patch string, err error) {
	before := p.Files[p.Path]
	e, err := edit.New([]byte(before))
	if err != nil {
		return nil, nil, "", err
	}
	for _, field := range slices.Sorted(maps.Keys(texts)) {
		text, err := changeField(e, field, texts[field])
		if err != nil {
			return nil, nil, "", &Refusal{fmt.Errorf("%s: %w", field, err)}
		}
		after = append(after, Text{field, text})
	}
	changed := e.Bytes()
	p.Files[p.Path] = string(changed)
	if def, err = p.Definition(); err != nil {
		p.Files[p.Path] = before
		return nil, nil, "", &Refusal{err}
	}
	name := filepath.ToSlash(filepath.Clean(p.File))
	_, lines, _ := bytes.Cut(diff.Diff("a/"+name, []byte(before), "b/"+name, changed), []byte("\n")) // its first line repeats the names
	return def, after, string(lines), nil
}

// changeField replaces one text, and returns the text that the field has then.
func changeField(e *edit.Editor, field, text string) (string, error) {
	if err := CheckField(field); err != nil {
		return "", err
	}
	agent, name, _ := strings.Cut(field, ".")
	old, err := e.Retext(agent, name, "")
	text = strings.TrimSpace(text)
	if err != nil || text == "" || text == strings.TrimSpace(old) {
		return old, err
	}
	if err := samePlaceholders(old, text, name); err != nil {
		return "", err
	}
	if strings.HasSuffix(old, "\n") {
		text += "\n"
	}
	_, err = e.Retext(agent, name, text)
	return text, err
}

// samePlaceholders returns an error unless two texts have the same placeholders.
func samePlaceholders(old, text, field string) error {
	names := func(text string) (map[string]bool, error) {
		opts := template.Options{}
		if field == "prompt" {
			opts.Dialect = template.Mustache
		}
		t, err := template.Parse(text, opts)
		if err != nil {
			return nil, err
		}
		all := make(map[string]bool)
		for _, ref := range t.Keys() {
			all[ref.Name] = true
		}
		return all, nil
	}
	had, err := names(old)
	if err != nil {
		return err
	}
	has, err := names(text)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(had)) {
		if !has[name] {
			return fmt.Errorf("the text lacks the placeholder {{%s}}", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(has)) {
		if !had[name] {
			return fmt.Errorf("the text has a placeholder {{%s}}, which the text before did not have", name)
		}
	}
	return nil
}
