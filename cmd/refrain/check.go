// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/definition"
)

// checkFlags are the flags of refrain check.
type checkFlags struct {
	json    bool
	assumed definition.Assumed
}

func newCheck(e *env) *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Say what a definition can come to before it runs",
		Long: `Check a definition as validate does, and say what a run of it can come to: how
each loop can end, and who may end it; how often agents run and ask models at
the most, and what tokens, cost and time that can take. What nothing bounds is
called so, and what nobody knows.

The tokens of a request depend on what agents say. With --input-tokens and
--output-tokens the table counts with so many for each request and answer.

Exit code 0 if the definition can be run, 2 otherwise.`,
		Example: `  refrain check loop.yaml
  refrain check loop.yaml --input-tokens 3000 --output-tokens 800
  refrain check loop.yaml --json | jq .worst.total.calls`,
		Args: between(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if f.assumed.InputTokens < 0 || f.assumed.OutputTokens < 0 {
				return errors.New("--input-tokens and --output-tokens: give a number of tokens above 0")
			}
			if f.assumed.Model == "" {
				f.assumed.Model = e.getenv("REFRAIN_MODEL")
			}
			def, err := definition.Load(args[0])
			if f.json {
				return checkJSON(e.stdout, f, args[0], def, err)
			}
			if err != nil {
				return &exitError{exitUsage, err}
			}
			worst := def.Worst(f.assumed)
			slices.Concat(def.Warnings(), def.Notes(), worst.Notes()).Format(e.stderr)
			noteFunctions(e.stderr, def)
			noteSchema(e.stderr, args[0])
			return preflight(e.stdout, args[0], def, worst)
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.json, "json", false, "write what is found as JSON to stdout, problems too")
	fl.StringVar(&f.assumed.Model, "model", "", "`provider/name` of the model of agents that name none (env REFRAIN_MODEL)")
	fl.Int64Var(&f.assumed.InputTokens, "input-tokens", 0, "how many tokens to count with for each request")
	fl.Int64Var(&f.assumed.OutputTokens, "output-tokens", 0, "how many tokens to count with for each answer of an agent without max_tokens")
	return cmd
}

// loopReport is how one loop can end.
type loopReport struct {
	Name  string               `json:"name"`
	Stops []definition.StopWay `json:"stops"`
}

// agentReport is what one agent can come to.
type agentReport struct {
	Name  string          `json:"name"`
	Type  definition.Type `json:"type"`
	Depth int             `json:"depth"`
	definition.AtMost
}

// worstReport is what the run can come to. null is what nothing bounds, or what
// is not known.
type worstReport struct {
	Total  definition.AtMost `json:"total"`
	Agents []agentReport     `json:"agents"`
}

// checkReport is all that refrain check --json says.
type checkReport struct {
	File     string              `json:"file"`
	Name     string              `json:"name,omitzero"`
	Valid    bool                `json:"valid"`
	Problems definition.Problems `json:"problems"`
	Loops    []loopReport        `json:"loops,omitzero"`
	Worst    *worstReport        `json:"worst,omitzero"`
}

func checkJSON(w io.Writer, f checkFlags, file string, def *definition.Definition, err error) error {
	out := checkReport{File: file, Problems: definition.Problems{}}
	if err != nil {
		if !errors.As(err, &out.Problems) {
			return &exitError{exitUsage, err}
		}
	} else {
		worst := def.Worst(f.assumed)
		out.Name, out.Valid, out.Loops, out.Worst = def.Name, true, loopReports(def), report(worst)
		out.Problems = append(out.Problems, slices.Concat(def.Warnings(), def.Notes(), worst.Notes())...)
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if jsonErr := enc.Encode(out); jsonErr != nil {
		return fmt.Errorf("write the report: %w", jsonErr)
	}
	if err != nil {
		return &exitError{code: exitUsage}
	}
	return nil
}

func loopReports(def *definition.Definition) []loopReport {
	var loops []loopReport
	for a := range def.Root.All {
		if a.Type == definition.TypeLoop {
			loops = append(loops, loopReport{a.Name, a.Stops()})
		}
	}
	return loops
}

func report(worst *definition.WorstCase) *worstReport {
	r := &worstReport{Total: worst.Total}
	for _, a := range worst.Agents {
		r.Agents = append(r.Agents, agentReport{a.Agent.Name, a.Agent.Type, a.Depth, a.AtMost})
	}
	return r
}
