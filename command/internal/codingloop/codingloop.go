// SPDX-License-Identifier: Apache-2.0

// Package codingloop writes the definition of a loop that asks a coding agent until a command succeeds.
//
//	text, err := codingloop.Definition(&codingloop.Config{
//		Prompt: "Make the tests pass.", CLI: "claude", Until: "go test ./...", Most: 10, Permissions: "edit", Denied: "fail",
//	})
package codingloop

import (
	"time"

	"go.yaml.in/yaml/v4"
)

// Config describes the loop. Its texts may contain anything, because Definition does not read them as templates or as YAML.
type Config struct {
	Prompt, CLI, Model, Permissions, Denied string
	ACP                                     []string      // command of a program that speaks the Agent Client Protocol, in place of CLI
	Inherit                                 []string      // environment variables to pass to the agent
	Until                                   string        // a shell command line
	Most                                    int           // iterations
	Cost                                    float64       // in US dollars; 0 means no limit
	Timeout, Idle                           time.Duration // of the loop; of the agent without output; 0 means no limit
	Branch                                  string        // new branch for the result; "" works on the files themselves
	Protect                                 []string      // patterns of files to restore after a change; only with Branch
	Waits                                   bool          // wait while the agent's provider refuses requests
}

// SaidKey is the state key of the last output of the command; "" at first. A run that knows the output may begin with another
// value.
const SaidKey = "said_until"

// Longest is the size of the largest output of the command, in bytes.
const Longest = 10 << 20

// untilLine runs the command of --until. The agent gets the command's output. Every exit code becomes 1, except the codes of a
// shell that cannot run the command.
const untilLine = `sh -c "$INPUT_UNTIL" 2>&1
code=$?
if [ $code -eq 126 ] || [ $code -eq 127 ]; then
  echo "the shell cannot run: $INPUT_UNTIL" >&2
  exit $code
fi
[ $code -eq 0 ]`

// withoutTimes is a command of sed that replaces times, because go test and other programs print how long they took, which
// differs each time.
const withoutTimes = `s/[0-9]+(\.[0-9]+)? ?(ms|s|sec|secs|seconds)([^A-Za-z]|$)/(time)\3/g`

// Definition returns the definition as YAML.
func Definition(c *Config) ([]byte, error) {
	loop := mapping(
		"name", "loop", "max_iterations", c.Most, "timeouts", "none", "max_model_calls", "none", "result", "said",
		"no_progress", map[string]any{"keys": []string{"compared"}, "repeats": 3},
		"state", map[string]any{"prompt": c.Prompt, "until": c.Until, SaidKey: ""},
	)
	told := ""
	if c.Branch != "" {
		space := map[string]any{"from": ".", "result": map[string]any{"branch": c.Branch}}
		if c.Protect != nil {
			space["protect"] = c.Protect
			told = "{{#workspace.protected}}\nYou may not change {{workspace.protected}}: these files were put back.\n{{/workspace.protected}}\n"
		}
		add(loop, "workspace", space)
	}
	if c.Timeout > 0 {
		add(loop, "timeout", c.Timeout.String())
	}
	if c.Cost > 0 {
		add(loop, "budget", map[string]any{"cost": c.Cost})
	}
	program, asked := "cli", any(c.CLI)
	if c.ACP != nil {
		program, asked = "acp", c.ACP
	}
	coder := mapping("name", "coder", program, asked, "prompt",
		"{{prompt}}\n{{#said_until}}\nThe command that has to succeed says:\n{{said_until}}\n{{/said_until}}\n"+told,
		"permissions", c.Permissions, "denied", c.Denied, "retry", 2, "output_key", "said")
	if c.Inherit != nil {
		add(coder, "inherit", c.Inherit)
	}
	if c.Model != "" {
		add(coder, "model", c.Model)
	}
	if c.Waits {
		add(coder, "on_limit", "reset")
	}
	if c.Idle > 0 {
		add(coder, "idle_timeout", c.Idle.String())
	}
	check := mapping("name", "check", "command", []string{"sh", "-c", untilLine},
		"env", map[string]any{"INPUT_UNTIL": "{{until}}"}, "ok_exit_codes", []int{0, 1}, "output_limit", Longest,
		"output_key", SaidKey, "result_key", "checked")
	until := mapping("name", "until", "description", "ends the loop, and finds out whether the command says the same again",
		"command", []string{"sed", "-E", withoutTimes},
		"stdin", "{{said_until}}{{^said_until}}{{said}}{{/said_until}}", "env", map[string]any{"LC_ALL": "C"},
		"output_limit", Longest, "output_key", "compared",
		"exit_when", "state.checked.exit_code == 0", "exit_reason", "the command of --until succeeds")
	add(loop, "sub_agents", []*yaml.Node{coder, check, until})
	return yaml.Marshal(loop)
}

// mapping returns a YAML mapping in the order of the pairs.
func mapping(pairs ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i < len(pairs); i += 2 {
		add(n, pairs[i].(string), pairs[i+1])
	}
	return n
}

func add(n *yaml.Node, key string, value any) {
	var k, v yaml.Node
	k.SetString(key)
	_ = v.Encode(value) // only text, numbers and lists of them, which can always be encoded
	n.Content = append(n.Content, &k, &v)
}
