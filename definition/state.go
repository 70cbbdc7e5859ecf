// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition/internal/source"
)

// InputError is something wrong with the value of one input, or its absence.
type InputError struct {
	Input string
	Msg   string
	Hint  string // what may help; "" if nothing comes to mind
}

// Error gives the message, and the hint in brackets.
func (e *InputError) Error() string {
	if e.Hint == "" {
		return e.Msg
	}
	return e.Msg + " (" + e.Hint + ")"
}

// InitialState is the state that a run begins with: what the file gives, the defaults
// of the inputs, and over them the values, by key. A value is text, as from a
// command line, and becomes one of the input's type: of a list, JSON or texts
// with commas between them, and of a map, JSON. A key of the file's state can be
// given a value too.
//
// The error joins an [*InputError] for each value that does not fit, each key
// that is not known and each required input that is missing. The maps and lists
// in the state are the caller's.
func (d *Definition) InitialState(values map[string]string) (map[string]any, error) {
	state := make(map[string]any, len(d.State)+len(d.Inputs))
	kinds := make(map[string]InputType, len(d.State)+len(d.Inputs))
	for key, v := range d.State {
		state[key] = clone(v)
		if kinds[key] = typeOfValue(v); kinds[key] == "" {
			kinds[key] = InputString
		}
	}
	var errs []error
	for _, in := range d.Inputs {
		kinds[in.Name] = in.Type
		if _, given := values[in.Name]; given {
			continue
		}
		if in.Required {
			errs = append(errs, missing(in))
			continue
		}
		state[in.Name] = clone(in.Default)
		if name, is := in.Default.(string); is && in.Type == InputPath {
			state[in.Name] = d.beside(name)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		t, known := kinds[key]
		if !known {
			names := slices.Sorted(maps.Keys(kinds))
			known := "the definition has no inputs"
			if len(names) > 0 {
				known = "there are " + strings.Join(names, ", ")
			}
			errs = append(errs, &InputError{
				Input: key, Msg: fmt.Sprintf("there is no input %q", key),
				Hint: didYouMean(key, names, "%q", known),
			})
			continue
		}
		v, err := t.parse(values[key])
		if err != nil {
			errs = append(errs, &InputError{Input: key, Msg: fmt.Sprintf("input %q: %v", key, err)})
			continue
		}
		state[key] = v
	}
	return state, errors.Join(errs...)
}

// beside is the path of a file that is named relative to the definition.
func (d *Definition) beside(name string) string {
	name = filepath.FromSlash(name)
	if filepath.IsAbs(name) || d.Root == nil {
		return name
	}
	name = filepath.Join(filepath.Dir(d.Root.src.Name), name)
	if full, err := filepath.Abs(name); err == nil {
		return full
	}
	return name
}

func missing(in Input) error {
	e := &InputError{Input: in.Name, Msg: fmt.Sprintf("input %q (%s) is required", in.Name, in.Type)}
	if in.Description != "" {
		e.Msg += ": " + in.Description
	}
	return e
}

// parse makes a value of the type out of a text.
func (t InputType) parse(text string) (any, error) {
	bare := strings.TrimSpace(text)
	switch t {
	case InputInt:
		if v, err := strconv.ParseInt(bare, 10, 64); err == nil {
			return v, nil
		}
	case InputNumber:
		if v, err := strconv.ParseInt(bare, 10, 64); err == nil {
			return exactly(v), nil
		}
		if v, err := strconv.ParseFloat(bare, 64); err == nil && !math.IsInf(v, 0) && !math.IsNaN(v) {
			return v, nil
		}
	case InputBool:
		if bare == "true" || bare == "false" {
			return bare == "true", nil
		}
	case InputList:
		if !strings.HasPrefix(bare, "[") {
			return splitList(bare), nil
		}
		return t.parseJSON(bare)
	case InputMap:
		return t.parseJSON(bare)
	default:
		return text, nil
	}
	return nil, fmt.Errorf("must be %s, got %q", t.article(), text)
}

func splitList(text string) []any {
	list := []any{}
	if text == "" {
		return list
	}
	for item := range strings.SplitSeq(text, ",") {
		list = append(list, strings.TrimSpace(item))
	}
	return list
}

// parseJSON reads a list or a map. YAML's flow style holds JSON, and its reader
// is there already, with its limits.
func (t InputType) parseJSON(text string) (any, error) {
	if len(text) > source.MaxFile {
		return nil, errors.New("is longer than 1 MiB")
	}
	l := newLoader()
	src := source.New("", "", 0, text)
	if at, what := source.Unreadable(text); what != "" {
		return nil, fmt.Errorf("has %s in it, at byte %d", what, at+1)
	}
	n := l.parse(src, text)
	if n == nil {
		return nil, fmt.Errorf("must be %s in JSON: %s", t.article(), l.problems[0].Message)
	}
	r := reader{loader: l, src: src}
	v, _ := r.any(n, "the value")
	if len(l.problems) > 0 {
		return nil, errors.New(l.problems[0].Message)
	}
	if typeOfValue(v) != t || n.Style&yaml.FlowStyle == 0 {
		return nil, fmt.Errorf("must be %s in JSON, got %q", t.article(), text)
	}
	return v, nil
}

// clone copies the maps and lists of a value.
func clone(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = clone(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = clone(v[k])
		}
		return out
	}
	return v
}
