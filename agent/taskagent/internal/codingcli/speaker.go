// SPDX-License-Identifier: Apache-2.0

package codingcli

import (
	"encoding/json"
	"path/filepath"
	"slices"

	"github.com/refrain-dev/refrain/agent/taskagent/internal/commandrule"
)

// SpeakerEnv returns variables that make a program with the Agent Client Protocol run only the commands of rules and those
// of [commandrule.Looking]. Most programs need no variables, because they ask over the protocol for each command. opencode
// needs them, because it runs every command that its own rules do not forbid, and ends its turn when a request is rejected.
func SpeakerEnv(program string, rules *commandrule.Rules) []string {
	if filepath.Base(program) != "opencode" {
		return nil
	}
	// opencode does not check redirections, so commands that could write any text into a file are left out.
	allowed := slices.DeleteFunc(commandrule.Looking(), func(c string) bool { return c == "echo" || c == "cat" })
	bash := ruleList{{"*", "deny"}}
	for _, prefix := range append(append(allowed, "cd"), rules.Prefixes()...) {
		bash = append(bash, [2]string{prefix, "allow"}, [2]string{prefix + " *", "allow"})
	}
	data, err := json.Marshal(map[string]any{"edit": "allow", "external_directory": "deny", "bash": bash})
	if err != nil { // cannot happen: the value has only texts
		panic(err)
	}
	return []string{"OPENCODE_PERMISSION=" + string(data)}
}

// ruleList is a JSON object whose order matters, because the last matching rule counts.
type ruleList [][2]string

// MarshalJSON writes the pairs in their order.
func (o ruleList) MarshalJSON() ([]byte, error) {
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
