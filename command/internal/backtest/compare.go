// SPDX-License-Identifier: Apache-2.0

// Package backtest replays a recorded run under other stop policies.
package backtest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/history/progress/backtest"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// Row is one row of a back-test.
type Row struct {
	Policy string              `json:"policy"`
	Plan   *loop.Plan          `json:"plan"`
	Result loop.BacktestResult `json:"result"`
	// Tree is the hash of the files that the policy would have handed back, at the end of the iteration From; empty without a
	// workspace.
	Tree string `json:"tree,omitempty"`
	From int    `json:"tree_of,omitempty"`
}

// readPolicies reads a file of policies, in the order of the file.
func readPolicies(name string) ([]policy, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("want a map of policies: NAME: {field: value}")
	}
	var all []policy
	root := doc.Content[0].Content
	for i := 0; i+1 < len(root); i += 2 {
		p := policy{name: root[i].Value}
		if root[i+1].Kind != yaml.MappingNode {
			return nil, fmt.Errorf("line %d: %s must be a map of fields of the plan", root[i+1].Line, p.name)
		}
		if p.settings, err = settingsIn(root[i+1], ""); err != nil {
			return nil, fmt.Errorf("policy %s: %w", p.name, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// Recording returns the recording of the loop at the address; with an empty address, of the only outermost loop.
func Recording(events []*session.Event, address string) (*backtest.Recording, error) {
	all, err := backtest.Recordings(events)
	if err != nil {
		return nil, err
	}
	var outermost, found []*backtest.Recording
	var names []string
	for _, r := range all {
		names = append(names, string(r.Loop))
		if !strings.Contains(string(r.Loop), "[") {
			outermost = append(outermost, r)
		}
		if string(r.Loop) == address {
			found = append(found, r)
		}
	}
	switch {
	case len(all) == 0:
		return nil, errors.New("no loop has begun in the log; give a run with a loop that has begun")
	case address == "" && len(all) == 1:
		return all[0], nil
	case address == "" && len(outermost) == 1:
		return outermost[0], nil
	case address == "":
		return nil, fmt.Errorf("the run has %d loops; choose one with --loop: %s", len(all), term.Listed(names))
	case len(found) == 0:
		return nil, fmt.Errorf("no loop has the address %q (%s)", address, term.Meant(address, names))
	}
	return found[len(found)-1], nil // the last, if there are several runs in the file
}

// Compare replays the recording under each policy, after a row for the recorded plan. If the run was made by an earlier
// version of the rules, a row of the present rules follows each row whose policy does not choose them itself.
func Compare(rec *backtest.Recording, policies []policy) ([]Row, error) {
	now, older := backtest.Today(rec.Plan)
	if !older && len(policies) == 0 {
		return nil, errors.New("nothing to compare: give --set plan.field=value, --policy or --policies; see refrain " +
			"backtest --help")
	}
	rows := []Row{{Policy: "recorded", Plan: rec.Plan}}
	if older {
		rows = append(rows, Row{Policy: "recorded" + byToday, Plan: now})
	}
	for _, p := range policies {
		plan, err := p.apply(rec.Plan)
		if err != nil {
			return nil, err
		}
		rows = append(rows, Row{Policy: p.name, Plan: plan})
		if now, older := backtest.Today(plan); older && !p.choosesRules() {
			rows = append(rows, Row{Policy: p.name + byToday, Plan: now})
		}
	}
	for i := range rows {
		r := &rows[i]
		r.Result = r.Plan.BacktestOf(rec.Plan, rec.Outcomes)
	}
	if got := rows[0].Result.Stop; got != nil && rec.Stop != nil { // the recorded outcomes do not name the iteration that had an answer
		got.Result = rec.Stop.Result
	}
	return rows, nil
}

// byToday follows the name of a policy in the row of the present rules.
const byToday = ", today's rules"

// AddTrees adds to each row the hash of the files that its policy would have handed back. tree returns the hash of the files
// after an iteration.
func AddTrees(rows []Row, tree func(iteration int) string) {
	for i := range rows {
		r := &rows[i]
		if r.Result.Unknown {
			continue
		}
		rec := r.Result.Stop
		n := rec.Result.Iteration
		switch {
		case rec.Result.Source != loop.FromFinalizer || rec.Reason == loop.ReasonTarget:
		case rec.Reason == loop.ReasonCondition && rec.BestScore != nil:
			continue // the record does not say which iteration the finalizer would have worked on
		case rec.BestIteration != 0:
			n = rec.BestIteration
		}
		if r.Tree = tree(n); r.Tree != "" {
			r.From = n
		}
	}
}

// Policies returns the policies of the flags --set, --policy and --policies.
func Policies(sets, policies []string, file string) ([]policy, error) {
	var all []policy
	if len(sets) > 0 {
		p := policy{name: "set"}
		for _, text := range sets {
			s, err := parseSetting(text)
			if err != nil {
				return nil, fmt.Errorf("--set %w", err)
			}
			p.settings = append(p.settings, s)
		}
		all = append(all, p)
	}
	for _, text := range policies {
		p, err := parsePolicy(text)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	if file != "" {
		more, err := readPolicies(file)
		if err != nil {
			return nil, fmt.Errorf("--policies %s: %w", file, err)
		}
		all = append(all, more...)
	}
	return all, nil
}

// policy is a change of a recorded plan. Its name stands in the table.
type policy struct {
	name     string
	settings []setting
}

func (p policy) choosesRules() bool {
	return slices.ContainsFunc(p.settings, func(s setting) bool { return s.path == "rules" })
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
