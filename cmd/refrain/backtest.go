// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/refrain-dev/refrain/cmd/refrain/internal/runstore"
	"github.com/refrain-dev/refrain/cmd/refrain/internal/term"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
)

// backtestFlags are the flags of refrain backtest.
type backtestFlags struct {
	loop           string
	sets, policies []string
	file           string
	json           bool
}

func newBacktest(e *term.Env) *cobra.Command {
	var f backtestFlags
	cmd := &cobra.Command{
		Use:   "backtest FILE",
		Short: "Replay a recorded run under other stop policies",
		Long: `Replay a run that was recorded with refrain run --record FILE under other stop
policies. For each policy, the table shows where the run would have stopped, why, with
which result, and what that would have saved. Nothing runs and no model is asked. What
would have happened after the end of the record is shown as unknown.

A policy changes fields of the recorded plan, by their JSON names: max_iterations,
score.target, score.min_delta_percent, score.patience, stop_when, timeout,
budget.tokens, no_progress.repeats, steps.NAME.on_error and others. The value null
removes a field. --json shows the whole plan.`,
		Example: `  refrain backtest run.jsonl --set plan.max_iterations=3
  refrain backtest run.jsonl --policy 'strict: score.target=9' --policy 'early: score.min_delta_percent=10, score.patience=1'
  refrain backtest run.jsonl --policies policies.yaml --loop story/refine`,
		Args: term.Args(1, 1),
		RunE: func(_ *cobra.Command, args []string) error { return backtest(e, f, args[0]) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.loop, "loop", "", "`address` of the loop (default: the only outermost loop)")
	fl.StringArrayVar(&f.sets, "set", nil, "change a field of the plan, as `plan.field=value`; all --set flags together are one policy")
	fl.StringArrayVar(&f.policies, "policy", nil, "a policy, as `'NAME: field=value, field=value'`; repeat the flag for more policies")
	fl.StringVar(&f.file, "policies", "", "`file` with more policies, in YAML or JSON: NAME: {field: value}")
	fl.BoolVar(&f.json, "json", false, "write JSON")
	return cmd
}

// tested is one row of a back-test.
type tested struct {
	Policy string              `json:"policy"`
	Plan   *loop.Plan          `json:"plan"`
	Result loop.BacktestResult `json:"result"`
	Saved  saving              `json:"saved"`
}

func backtest(e *term.Env, f backtestFlags, name string) error {
	policies, err := f.all()
	if err != nil {
		return err
	}
	events, err := runstore.OpenRecord(e, name)
	if err != nil {
		return err
	}
	rec, err := recordingOf(events, f.loop)
	if err != nil {
		return term.Failure(fmt.Errorf("%s: %w", name, err))
	}
	rows := []tested{{Policy: "recorded", Plan: rec.Plan}}
	for _, p := range policies {
		plan, err := p.apply(rec.Plan)
		if err != nil {
			return err
		}
		rows = append(rows, tested{Policy: p.name, Plan: plan})
	}
	for i := range rows {
		r := &rows[i]
		r.Result = r.Plan.Backtest(rec.Outcomes)
		r.Saved = savingOf(rec, &r.Result)
	}
	if f.json {
		err = printBacktestJSON(e.Stdout, rec, rows)
	} else {
		err = printBacktest(e.Stdout, rec, rows)
	}
	if err != nil {
		return term.Failure(fmt.Errorf("write the result: %w", err))
	}
	return nil
}

// all are the policies that the flags give.
func (f *backtestFlags) all() ([]policy, error) {
	var all []policy
	if len(f.sets) > 0 {
		p := policy{name: "set"}
		for _, text := range f.sets {
			s, err := parseSetting(text)
			if err != nil {
				return nil, fmt.Errorf("--set %w", err)
			}
			p.settings = append(p.settings, s)
		}
		all = append(all, p)
	}
	for _, text := range f.policies {
		p, err := parsePolicy(text)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	if f.file != "" {
		more, err := readPolicies(f.file)
		if err != nil {
			return nil, fmt.Errorf("--policies %s: %w", f.file, err)
		}
		all = append(all, more...)
	}
	if len(all) == 0 {
		return nil, errors.New("nothing to compare: give --set plan.field=value, --policy or --policies; see refrain backtest --help")
	}
	return all, nil
}

// readPolicies reads a file of policies, in its order.
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

// recordingOf is the loop of an address, or the one that is meant without.
func recordingOf(events []*session.Event, address string) (*progress.Recording, error) {
	all, err := progress.Recordings(events)
	if err != nil {
		return nil, err
	}
	var outermost, found []*progress.Recording
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
		return nil, errors.New("no loop has begun in it; the record has to be one of refrain run --record")
	case address == "" && len(all) == 1:
		return all[0], nil
	case address == "" && len(outermost) == 1:
		return outermost[0], nil
	case address == "":
		return nil, fmt.Errorf("there are %d loops; choose one with --loop: %s", len(all), term.Listed(names))
	case len(found) == 0:
		hint := "there are " + term.Listed(names)
		if near := expr.Nearest(address, names); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return nil, fmt.Errorf("no loop has the address %q (%s)", address, hint)
	}
	return found[len(found)-1], nil // the last, if there are several runs in the file
}
