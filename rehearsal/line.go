// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/session/mark"
)

// line is what a stand-in leaves behind.
type line struct {
	words  string
	value  any            // for its output key; of a JSON task not a text
	result map[string]any // fields of a task's result, by path
	leave  bool
}

// approving and editing report whether a person is asked for a yes, or for other
// values of keys.
func approving(a *definition.Agent) bool {
	return a.Human != nil && a.Human.Ask == mark.AskApproval
}

func editing(a *definition.Agent) bool { return a.Human != nil && a.Human.Ask == mark.AskEdit }

// jsonTask reports whether what a task leaves is no text.
func jsonTask(a *definition.Agent) bool {
	return approving(a) || a.Command != nil && a.Command.JSON || a.HTTP != nil && a.HTTP.JSON
}

// result is what a task's exit_when reads, and its result key gets.
func result(a *definition.Agent, l line) map[string]any {
	var r map[string]any
	switch {
	case a.Command != nil:
		r = map[string]any{"exit_code": okCodes(a)[0], "stdout": l.words, "stderr": ""}
	case a.HTTP != nil:
		r = map[string]any{"status": okStatus(a)[0], "headers": map[string]any{}, "body": l.words}
	default:
		r = map[string]any{"text": l.words}
	}
	if jsonTask(a) && a.Human == nil {
		r["json"] = l.value
	}
	for field, v := range l.result {
		if !strings.Contains(field, ".") {
			r[field] = v
		}
	}
	return r
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
