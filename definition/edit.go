// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// Edit sets one value in the text of a definition and leaves everything else as it
// stands: comments, order, spaces. The path names a field, as
// "max_iterations", "score.target" or "sub_agents[1].text"; the value is a text, a
// number, or true or false. A field that is not there is added to its map, behind
// the first one.
//
// It fails for a path that leads nowhere, for a value that is no scalar or goes
// over several lines, be it the old or the new one, and for a place that has an
// anchor or an alias. What the text says then is for [Parse] to check.
func Edit(data []byte, path string, value any) ([]byte, error) {
	fail := func(format string, args ...any) ([]byte, error) {
		return nil, fmt.Errorf("edit %s: %w", path, fmt.Errorf(format, args...))
	}
	if v, ok := value.(string); ok && !utf8.ValidString(v) || !utf8.ValidString(path) {
		return fail("it is not UTF-8")
	}
	text, err := scalar(value)
	if err != nil {
		return fail("%w", err)
	}
	root, err := document(data)
	if err != nil {
		return fail("%w", err)
	}
	at, parent, key, err := find(root, path)
	if err != nil {
		return fail("%w", err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	if at != nil {
		err = replaceScalar(lines, at, text)
	} else {
		err = addField(lines, parent, key, text)
	}
	if err != nil {
		return fail("%w", err)
	}
	edited := []byte(strings.Join(lines, ""))
	if err := says(edited, path, value); err != nil {
		return fail("%w", err)
	}
	return edited, nil
}

// scalar is a value as YAML has it, on one line.
func scalar(value any) (string, error) {
	switch reflect.ValueOf(value).Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint, reflect.Float64:
	default:
		return "", fmt.Errorf("a %T is no text, number, or true or false", value)
	}
	b, err := yaml.Marshal(value)
	if text := strings.TrimSuffix(string(b), "\n"); err != nil || !strings.ContainsAny(text, "\n,[]{}#") {
		return text, err
	}
	b, err = json.Marshal(value)
	return string(b), err
}

// document is the one value of a text.
func document(data []byte) (*yaml.Node, error) {
	l := newLoader()
	_, n := l.read(bytes.NewReader(data), "definition", "definition")
	if n == nil {
		return nil, l.problems
	}
	return n, nil
}

// pathStep is the first element of a path.
var pathStep = regexp.MustCompile(`^(?:\.?([^.\[\]]+)|\[([0-9]+)\])`)

// find goes down a path. If only its last field is not there, at is nil, and
// parent the map that it belongs to.
func find(n *yaml.Node, path string) (at, parent *yaml.Node, key string, err error) {
	for rest := path; ; {
		m := pathStep.FindStringSubmatch(rest)
		if m == nil {
			return nil, nil, "", fmt.Errorf("%q is no path to a field", path)
		}
		done := path[:len(path)-len(rest)]
		rest = rest[len(m[0]):]
		parent, key = n, m[1]
		if n = child(parent, m[1], m[2]); n == nil && rest == "" && key != "" && parent.Kind == yaml.MappingNode && len(parent.Content) > 0 {
			return nil, parent, key, nil
		}
		switch {
		case n == nil:
			return nil, nil, "", fmt.Errorf("there is no %s in %q", strings.Trim(m[0], "."), done)
		case rest == "":
			return n, parent, key, nil
		}
	}
}

// child is the value of a key, or of an index, in a node; nil if there is none.
func child(n *yaml.Node, key, at string) *yaml.Node {
	switch {
	case key != "" && n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				return n.Content[i+1]
			}
		}
	case at != "" && n.Kind == yaml.SequenceNode:
		if i, err := strconv.Atoi(at); err == nil && i < len(n.Content) {
			return n.Content[i]
		}
	}
	return nil
}
