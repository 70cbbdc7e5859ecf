// SPDX-License-Identifier: Apache-2.0

package mark

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// FormAnswer is the answer to a question of the kind [AskForm].
type FormAnswer struct {
	// Action is [FormAccept], [FormDecline] or [FormCancel].
	Action string `json:"action"`
	// Content has the values of the fields, by name; only with FormAccept.
	Content json.RawMessage `json:"content,omitempty"`
}

// The actions of a [FormAnswer].
const (
	FormAccept  = "accept"  // the person has filled in the form
	FormDecline = "decline" // the person does not want to answer
	FormCancel  = "cancel"  // the person has closed the form without a decision
)

// FormField is a field of a form.
type FormField struct {
	Name        string
	Title       string // the name, if the form has no title for it
	Description string
	// Type is string, number, integer, boolean or array. An array has some of the Choices.
	Type     string
	Required bool
	// Choices are the possible values, and Labels their names for people, in the same order; nil if any value is possible.
	Choices, Labels []string
	// Default is the value that a person can leave as it is; nil if there is none.
	Default json.RawMessage

	format string
}

// form returns the schema of the question's form, for its checks.
func (q *Question) form() (*jsonschema.Schema, error) {
	s := new(jsonschema.Schema)
	if len(q.Form) > 0 {
		if err := json.Unmarshal(q.Form, s); err != nil {
			return nil, fmt.Errorf("read the form of %s: %w", q.ID, err)
		}
	}
	if s.Type != "" && s.Type != "object" {
		return nil, fmt.Errorf("the form of %s is a schema of the type %q, not object", q.ID, s.Type)
	}
	return s, nil
}

// Fields returns the fields of a question of the kind [AskForm]: first those that are required, each group by name. It
// fails if the form has a field that is not plain, such as a list of objects.
func (q *Question) Fields() ([]FormField, error) {
	s, err := q.form()
	if err != nil {
		return nil, err
	}
	var all []FormField
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		f := FormField{Name: name, Title: p.Title, Description: p.Description, Type: p.Type, Default: p.Default, format: p.Format,
			Required: slices.Contains(s.Required, name)}
		if f.Title == "" {
			f.Title = name
		}
		choices := p
		switch {
		case p.Type == "array" && p.Items != nil:
			choices = p.Items
		case p.Type == "" && (len(p.Enum) > 0 || len(p.OneOf) > 0):
			f.Type = "string"
		}
		f.choose(choices)
		switch f.Type {
		case "string", "number", "integer", "boolean":
		case "array":
			if f.Choices != nil {
				break
			}
			fallthrough
		default:
			return nil, fmt.Errorf("the field %q of the form is of the type %q; a form has texts, numbers, booleans and choices of texts",
				name, f.Type)
		}
		all = append(all, f)
	}
	slices.SortStableFunc(all, func(a, b FormField) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	return all, nil
}

// choose reads the possible values and their names.
func (f *FormField) choose(s *jsonschema.Schema) {
	for _, one := range slices.Concat(s.OneOf, s.AnyOf) {
		if text, ok := constant(one); ok {
			f.Choices = append(f.Choices, text)
			if one.Title != "" {
				text = one.Title
			}
			f.Labels = append(f.Labels, text)
		}
	}
	names, _ := s.Extra["enumNames"].([]any)
	for i, v := range s.Enum {
		text, ok := v.(string)
		if !ok {
			continue
		}
		f.Choices = append(f.Choices, text)
		if i < len(names) {
			if name, ok := names[i].(string); ok {
				text = name
			}
		}
		f.Labels = append(f.Labels, text)
	}
}

func constant(s *jsonschema.Schema) (string, bool) {
	if s.Const == nil {
		return "", false
	}
	text, ok := (*s.Const).(string)
	return text, ok
}

// String says for a person what the field wants.
func (f *FormField) String() string {
	text := map[string]string{"string": "text", "number": "a number", "integer": "a whole number", "boolean": "yes or no"}[f.Type]
	switch {
	case f.Type == "array":
		text = "some of " + strings.Join(f.Labels, ", ")
	case f.Choices != nil:
		text = "one of " + strings.Join(f.Labels, ", ")
	}
	if f.Title != f.Name {
		text = f.Title + ", " + text
	}
	if f.Description != "" {
		text += " (" + f.Description + ")"
	}
	switch {
	case len(f.Default) > 0:
		text += ", by default " + string(f.Default)
	case !f.Required:
		text += ", can be left out"
	}
	return f.Name + ": " + text
}

// Read converts the text of a person into a value of the field. The items of an array are separated by commas.
func (f *FormField) Read(text string) (any, error) {
	text = strings.TrimSpace(text)
	wrong := func(what string) error { return fmt.Errorf("%s is %s, not %q", f.Name, what, text) }
	switch f.Type {
	case "integer":
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, nil
		}
		return nil, wrong("a whole number")
	case "number":
		var n json.Number
		if json.Unmarshal([]byte(text), &n) == nil && n != "" {
			return n, nil
		}
		return nil, wrong("a number")
	case "boolean":
		switch strings.ToLower(text) {
		case "true", "yes", "y":
			return true, nil
		case "false", "no", "n":
			return false, nil
		}
		return nil, wrong("yes or no")
	case "array":
		all := []string{}
		if json.Unmarshal([]byte(text), &all) == nil {
			return all, nil
		}
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
				all = append(all, f.choice(item))
			}
		}
		return all, nil
	}
	return f.choice(text), nil
}

// choice returns the value that a person means by its name.
func (f *FormField) choice(text string) string {
	if i := slices.Index(f.Labels, text); i >= 0 && !slices.Contains(f.Choices, text) {
		return f.Choices[i]
	}
	return text
}

// Fill returns an answer that accepts the form of the question with the texts of a person, by the names of fields. A field
// without a text gets its default.
func (q *Question) Fill(texts map[string]string) (json.RawMessage, error) {
	fields, err := q.Fields()
	if err != nil {
		return nil, err
	}
	names, content := []string{}, make(map[string]any)
	for _, f := range fields {
		names = append(names, f.Name)
		if text, given := texts[f.Name]; given {
			if content[f.Name], err = f.Read(text); err != nil {
				return nil, err
			}
		} else if len(f.Default) > 0 {
			content[f.Name] = f.Default
		}
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("the form has no field %q; it has %s", name, strings.Join(names, ", "))
		}
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	return json.Marshal(FormAnswer{Action: FormAccept, Content: raw})
}

// Form decodes the answer to a question of the kind [AskForm]. It fails for the answer to another question.
func (a *Answer) Form() (FormAnswer, error) {
	var f FormAnswer
	d := json.NewDecoder(bytes.NewReader(a.Value))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return f, fmt.Errorf("answer to question %s: %w", a.ID, err)
	}
	switch f.Action {
	case FormAccept, FormDecline, FormCancel:
		return f, nil
	}
	return f, fmt.Errorf("answer to question %s: the action is %s, %s or %s, not %q", a.ID, FormAccept, FormDecline, FormCancel, f.Action)
}

// checkForm returns an error if the answer does not fit the form.
func (q *Question) checkForm(a *Answer) error {
	answer, err := a.Form()
	if err != nil {
		return fmt.Errorf(`the answer to %s is {"action": "accept", "content": {…}} with the fields of its form, {"action": "decline"} `+
			`or {"action": "cancel"}: %w`, q.ID, err)
	}
	if answer.Action != FormAccept {
		if len(answer.Content) > 0 {
			return fmt.Errorf("the answer to %s has content, which belongs to the action %s", q.ID, FormAccept)
		}
		return nil
	}
	s, err := q.form()
	if err != nil {
		return err
	}
	var content map[string]any
	if len(answer.Content) > 0 {
		if err := json.Unmarshal(answer.Content, &content); err != nil {
			return fmt.Errorf("the content of the answer to %s is not an object: %w", q.ID, err)
		}
	}
	if content == nil {
		content = map[string]any{}
	}
	fields, err := q.Fields()
	if err != nil {
		return err
	}
	known := make(map[string]*FormField)
	for i := range fields {
		known[fields[i].Name] = &fields[i]
	}
	var errs []error
	for _, f := range fields {
		if _, given := content[f.Name]; f.Required && !given {
			errs = append(errs, fmt.Errorf("%s is missing", f.Name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(content)) {
		f := known[name]
		if f == nil {
			errs = append(errs, fmt.Errorf("%q is not a field of the form", name))
			continue
		}
		if err := f.check(s.Properties[name], content[name]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the answer to %s does not fit its form: %w", q.ID, err)
	}
	return nil
}

// check returns an error if a value does not fit the field.
func (f *FormField) check(s *jsonschema.Schema, value any) error {
	if f.Choices != nil && f.Type == "string" {
		if text, ok := value.(string); !ok || !slices.Contains(f.Choices, text) {
			return fmt.Errorf("choose one of %s", strings.Join(f.Choices, ", "))
		}
		return nil
	}
	plain := new(*s)
	plain.Default = nil // a default that does not fit is the form's fault
	r, err := plain.Resolve(nil)
	if err != nil {
		return fmt.Errorf("the form cannot be checked: %w", err)
	}
	if err := r.Validate(value); err != nil {
		return fmt.Errorf("%v does not fit: %w", value, err)
	}
	text, ok := value.(string)
	if !ok {
		return nil
	}
	switch f.format {
	case "email":
		_, err = mail.ParseAddress(text)
	case "uri":
		u, bad := url.Parse(text)
		if err = bad; err == nil && u.Scheme == "" {
			err = errors.New("it has no scheme, such as https")
		}
	case "date":
		_, err = time.Parse(time.DateOnly, text)
	case "date-time":
		_, err = time.Parse(time.RFC3339, text)
	}
	if err != nil {
		return fmt.Errorf("%q is not of the format %s: %w", text, f.format, err)
	}
	return nil
}
