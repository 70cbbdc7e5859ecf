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
	Value  any            // for its output key; of a JSON task not a text
	result map[string]any // fields of a task's result, by path
	Leave  bool
}

// Approving and editing report whether a person is asked for a yes, or for other
// values of keys.
func Approving(a *definition.Agent) bool {
	return a.Human != nil && a.Human.Ask == mark.AskApproval
}

func Editing(a *definition.Agent) bool { return a.Human != nil && a.Human.Ask == mark.AskEdit }

// jsonTask reports whether what a task leaves is no text.
func jsonTask(a *definition.Agent) bool {
	return Approving(a) || a.Command != nil && a.Command.JSON || a.HTTP != nil && a.HTTP.JSON
}

// Result is what a task's exit_when reads, and its result key gets.
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

// Place is where in a run a stand-in plays.
type Place struct {
	Addr   session.Address
	Loops  map[string]int // the loops around, with their iterations
	Within string         // the nearest of them
	Number string         // the iterations, the outermost first: 2.3
	Sample int            // of a judge, from 1
}

// First is the place with the first sample.
func (p Place) First() Place {
	p.Sample = 1
	return p
}

// Iteration is that of the nearest loop; 1 outside loops.
func (p Place) Iteration() int { return max(1, p.Loops[p.Within]) }

// Speech is what an agent says in a place. No two places have the same.
func Speech(a *definition.Agent, at Place) string {
	if at.Number == "" {
		return fmt.Sprintf("Words of %s.", a.Name)
	}
	return fmt.Sprintf("Words of %s, iteration %s.", a.Name, at.Number)
}
