// SPDX-License-Identifier: Apache-2.0

// Package check reports the worst case of a run of a definition.
package check

import (
	"github.com/refrain-dev/refrain/definition"
)

// loopReport describes how one loop can end.
type loopReport struct {
	Name  string               `json:"name"`
	Stops []definition.StopWay `json:"stops"`
}

// agentReport is the worst case of one agent.
type agentReport struct {
	Name  string          `json:"name"`
	Type  definition.Type `json:"type"`
	Depth int             `json:"depth"`
	definition.AtMost
}

// worstReport is the worst case of the run. A null value is unlimited or unknown.
type worstReport struct {
	Total  definition.AtMost `json:"total"`
	Agents []agentReport     `json:"agents"`
}

// Report is the output of refrain check --json.
type Report struct {
	File  string `json:"file"`
	Name  string `json:"name,omitzero"`
	Valid bool   `json:"valid"`
	// NeedsRequest is the reason why a run needs a request of its user; empty if a run needs none.
	NeedsRequest string              `json:"needs_request,omitzero"`
	Problems     definition.Problems `json:"problems"`
	Loops        []loopReport        `json:"loops,omitzero"`
	Worst        *worstReport        `json:"worst,omitzero"`
	// Expected is the expected cost of the iterations; nil if no agent asks a model.
	Expected *definition.Expected `json:"expected,omitzero"`
}

func loopReports(def *definition.Definition, worst *definition.WorstCase) []loopReport {
	var loops []loopReport
	for a := range def.Root.All {
		if a.Type == definition.TypeLoop {
			loops = append(loops, loopReport{a.Name, worst.Stops(a)})
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

// ReportOf returns the report about a definition.
func ReportOf(file string, def *definition.Definition, worst *definition.WorstCase, expected *definition.Expected,
	problems definition.Problems) Report {
	if len(expected.Loops) == 0 {
		expected = nil
	}
	return Report{
		File: file, Name: def.Name, Valid: true, NeedsRequest: def.NeedsRequest(), Problems: append(definition.Problems{}, problems...),
		Loops: loopReports(def, worst), Worst: report(worst), Expected: expected,
	}
}
