// SPDX-License-Identifier: Apache-2.0

package study

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Line is what a stand-in leaves behind.
type Line struct {
	Words  string
	Value  any            // for its output key
	result map[string]any // of a task, by path
	Leave  bool
}

// Approving reports whether a person is asked to approve. Editing reports whether a person is asked
// to edit values of the state.
func Approving(a *definition.Agent) bool {
	return a.Human != nil && a.Human.Ask == mark.AskApproval
}

func Editing(a *definition.Agent) bool { return a.Human != nil && a.Human.Ask == mark.AskEdit }

// jsonTask reports whether the output of a task is JSON.
func jsonTask(a *definition.Agent) bool {
	return Approving(a) || a.Command != nil && (a.Command.JSON || a.Command.Tests != "") || a.HTTP != nil && a.HTTP.JSON
}

// Result is a task's result: what its exit_when reads and what its result key gets.
func Result(a *definition.Agent, l Line) map[string]any {
	var r map[string]any
	switch {
	case a.Command != nil:
		r = map[string]any{"exit_code": okCodes(a)[0], "stdout": l.Words, "stderr": ""}
	case a.HTTP != nil:
		r = map[string]any{"status": okStatus(a)[0], "headers": map[string]any{}, "body": l.Words}
	default:
		r = map[string]any{"text": l.Words}
	}
	if jsonTask(a) && a.Human == nil {
		r["json"] = l.Value
	}
	for field, v := range l.result {
		if !strings.Contains(field, ".") {
			r[field] = v
		}
	}
	return r
}

func Decimal(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// Place is the place of a stand-in in a run.
type Place struct {
	Addr   session.Address
	Loops  map[string]int // iterations of the loops around, by name
	Within string         // the nearest loop
	Number string         // the iterations, from the outermost loop: 2.3
	Sample int            // of a judge, from 1
}

// First is the same place with the first sample.
func (p Place) First() Place {
	p.Sample = 1
	return p
}

// Iteration is the iteration of the nearest loop; 1 outside of loops.
func (p Place) Iteration() int { return max(1, p.Loops[p.Within]) }

// Speech is what an agent says at a place. It differs at every place.
func Speech(a *definition.Agent, at Place) string {
	if at.Number == "" {
		return fmt.Sprintf("Words of %s.", a.Name)
	}
	return fmt.Sprintf("Words of %s, iteration %s.", a.Name, at.Number)
}
