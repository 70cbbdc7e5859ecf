// SPDX-License-Identifier: Apache-2.0

//go:build unix

package taskagent_test

import "github.com/refrain-dev/refrain/agent/taskagent"

func ExampleNewCommand() {
	a, err := taskagent.NewCommand(taskagent.CommandConfig{
		Config: taskagent.Config{Name: "count", OutputKey: "words", ExitWhen: "result.json > 3", ExitReason: "{{result.json}} words are enough"},
		Args:   []string{"wc", "-w"},
		Stdin:  "{{user_input}}",
		JSON:   true,
	})
	show(a, err, "Once upon a time; then nothing.")
	// Output:
	// count: 6
	// map[words:6]
	// exit: 6 words are enough
}
