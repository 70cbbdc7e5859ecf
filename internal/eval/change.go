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
// The texts may come from a model. Each must have the placeholders of the text that it replaces and no others, in the same sections, so that
// it reads nothing that the author did not let it read, and the result must be a valid definition. Otherwise the error is a [*Refusal], and the
// program is as it was. An agent or a field that the file does not have is another error.
func Change(p *program.Program, texts map[string]string) (def *definition.Definition, after []Text, patch string, err error) {
	before := p.Files[p.Path]
	e, err := edit.New([]byte(before))
	if err != nil {
		return nil, nil, "", err
	}
	for _, field := range slices.Sorted(maps.Keys(texts)) {
		text, err := changeField(e, field, texts[field])
		if err != nil {
			return nil, nil, "", err
		}
		after = append(after, Text{field, text})
	}
	changed := e.Bytes()
	p.Files[p.Path] = string(changed)
	if def, err = p.Definition(); err != nil {
		p.Files[p.Path] = before
		return nil, nil, "", &Refusal{err}
	}
	name := nameInPatch(p.File)
	_, lines, _ := bytes.Cut(diff.Diff("a/"+name, []byte(before), "b/"+name, changed), []byte("\n")) // its first line repeats the names
	return def, after, string(lines), nil
}

// nameInPatch returns the name of a file for a patch that is applied in the present folder, or in that of a file outside it.
func nameInPatch(file string) string {
	if here, err := filepath.Abs("."); err == nil && filepath.IsAbs(file) {
		if below, err := filepath.Rel(here, file); err == nil {
			file = below
		}
	}
	if !filepath.IsLocal(file) {
		file = filepath.Base(file)
	}
	return filepath.ToSlash(filepath.Clean(file))
}

// changeField replaces one text, and returns the text that the field has then. An error about the field is no [*Refusal], because no text
// would be better.
func changeField(e *edit.Editor, field, text string) (string, error) {
	if err := CheckField(field); err != nil {
		return "", err
	}
	agent, name, _ := strings.Cut(field, ".")
	old, err := e.Retext(agent, name, "")
	if err != nil {
		return "", fmt.Errorf("%q cannot be changed: %w", field, err)
	}
	text = strings.TrimSpace(text)
	if text == "" || text == strings.TrimSpace(old) {
		return old, nil
	}
	if err := samePlaceholders(old, text, name); err != nil {
		return "", &Refusal{fmt.Errorf("%s: %w", field, err)}
	}
	if strings.HasSuffix(old, "\n") {
		text += "\n"
	}
	if _, err := e.Retext(agent, name, text); err != nil {
		return "", &Refusal{fmt.Errorf("%s: %w", field, err)}
	}
	return text, nil
}

// samePlaceholders returns an error unless two texts have the same placeholders, in the same sections.
func samePlaceholders(old, text, field string) error {
	tags := func(text string) ([]string, error) {
		opts := template.Options{}
		if field == "prompt" {
			opts.Dialect = template.Mustache
		}
		t, err := template.Parse(text, opts)
		if err != nil {
			return nil, err
		}
		return t.Tags(), nil
	}
	had, err := tags(old)
	if err != nil {
		return err
	}
	has, err := tags(text)
	if err != nil {
		return err
	}
	for _, tag := range had {
		if !slices.Contains(has, tag) {
			return fmt.Errorf("the text lacks the placeholder %s", tag)
		}
	}
	for _, tag := range has {
		if !slices.Contains(had, tag) {
			return fmt.Errorf("the text has a placeholder %s, which the text before did not have", tag)
		}
	}
	return nil
}
