// SPDX-License-Identifier: Apache-2.0

package backtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/loop"
)

// policy is a change of a recorded plan. Its name stands in the table.
type policy struct {
	name     string
	settings []setting
}

// setting is a field of a plan, given as the path of its JSON names, with the value as the user typed it.
type setting struct{ path, value string }

// parseSetting reads text such as plan.max_iterations=3; the prefix plan. is optional.
func parseSetting(text string) (setting, error) {
	path, value, ok := strings.Cut(text, "=")
	path = strings.TrimPrefix(strings.TrimSpace(path), "plan.")
	if !ok || path == "" {
		return setting{}, fmt.Errorf("%q: write it as plan.field=value, such as plan.max_iterations=3", text)
	}
	return setting{path, strings.TrimSpace(value)}, nil
}

// parsePolicy reads text such as NAME: field=value, field=value.
func parsePolicy(text string) (policy, error) {
	name, rest, ok := strings.Cut(text, ":")
	name = strings.TrimSpace(name)
	if !ok || name == "" || strings.Contains(name, "=") {
		return policy{}, fmt.Errorf("--policy %q: write it as NAME: field=value, field=value", text)
	}
	p := policy{name: name}
	for _, part := range splitOutside(rest) {
		s, err := parseSetting(part)
		if err != nil {
			return policy{}, fmt.Errorf("--policy %s: %w", name, err)
		}
		p.settings = append(p.settings, s)
	}
	return p, nil
}

// settingsIn returns the fields of a YAML map, with their paths below prefix.
func settingsIn(n *yaml.Node, prefix string) ([]setting, error) {
	var all []setting
	for i := 0; i+1 < len(n.Content); i += 2 {
		path, v := prefix+strings.TrimPrefix(n.Content[i].Value, "plan."), n.Content[i+1]
		switch {
		case v.ShortTag() == "!!null":
			all = append(all, setting{path, "null"})
		case v.Kind == yaml.ScalarNode:
			all = append(all, setting{path, v.Value})
		case v.Kind == yaml.MappingNode:
			below := path + "."
			if path == "plan" {
				below = ""
			}
			inner, err := settingsIn(v, below)
			if err != nil {
				return nil, err
			}
			all = append(all, inner...)
		default:
			var list any
			err := v.Decode(&list)
			text, notJSON := json.Marshal(list)
			if err = cmp.Or(err, notJSON); err != nil {
				return nil, fmt.Errorf("line %d: %s: %w", v.Line, path, err)
			}
			all = append(all, setting{path, string(text)})
		}
	}
	return all, nil
}

// splitOutside splits text at the commas outside of brackets and quotes.
func splitOutside(text string) []string {
	var parts []string
	depth, quote, from := 0, rune(0), 0
	for i, r := range text {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'':
			quote = r
		case strings.ContainsRune("([{", r):
			depth++
		case strings.ContainsRune(")]}", r):
			depth--
		case r == ',' && depth <= 0:
			parts, from = append(parts, text[from:i]), i+1
		}
	}
	return append(parts, text[from:])
}

// apply returns a copy of the plan with the policy's changes. It fails if the changed plan is not valid.
func (p policy) apply(recorded *loop.Plan) (*loop.Plan, error) {
	plan := recorded
	for _, s := range p.settings {
		var err error
		if plan, err = plan.With(s.path, s.value); err != nil {
			return nil, fmt.Errorf("policy %s: %w", p.name, err)
		}
	}
	if err := plan.Check(); err != nil {
		return nil, fmt.Errorf("policy %s: %w", p.name, err)
	}
	return plan, nil
}
