// SPDX-License-Identifier: Apache-2.0

package codingcli

import (
	"encoding/json"
	"path/filepath"
	"slices"

	"github.com/refrain-dev/refrain/agent/taskagent/internal/commandrule"
)

// SpeakerEnv returns variables for a program that speaks the Agent Client Protocol, with which it runs the commands of rules
// and no others. Most programs ask for each command over the protocol and need none. opencode runs every command unless a
// rule of its own forbids it, and ends its turn when a request is rejected.
func SpeakerEnv(program string, rules *commandrule.Rules) []string {
	if filepath.Base(program) != "opencode" {
		return nil
	}
	// opencode does not look at redirections, so commands that print any text are not among these.
	allowed := slices.DeleteFunc(commandrule.Looking(), func(c string) bool { return c == "echo" || c == "cat" })
	bash := ordered{{"*", "deny"}}
	for _, prefix := range append(append(allowed, "cd"), rules.Prefixes()...) {
		bash = append(bash, [2]string{prefix, "allow"}, [2]string{prefix + " *", "allow"})
	}
	data, err := json.Marshal(map[string]any{"edit": "allow", "external_directory": "deny", "bash": bash})
	if err != nil { // only text
		panic(err)
	}
	return []string{"OPENCODE_PERMISSION=" + string(data)}
}

// ordered is a JSON object whose last matching rule counts, so its order does.
type ordered [][2]string

// MarshalJSON writes the pairs in their order.
func (o ordered) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, pair := range o {
		if i > 0 {
			out = append(out, ',')
		}
		name, err := json.Marshal(pair[0])
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(pair[1])
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, name...), ':'), value...)
	}
	return append(out, '}'), nil
}
