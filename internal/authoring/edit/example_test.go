// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"fmt"

	"github.com/refrain-dev/refrain/internal/authoring/edit"
)

func ExampleEditor() {
	e, err := edit.New([]byte(`name: refine
max_iterations: 3 # enough
sub_agents:
  # who writes
  - name: write
    instructions: Improve {{draft}}.
    output_key: draft
  - name: judge
    text: "8 of {{draft}}"
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	done, err := e.RenameKey("draft", "text")
	for _, use := range done.Changed {
		fmt.Println(use.Path, use.Line)
	}
	for _, err := range []error{
		err,
		e.Set("max_iterations", 5),
		e.Set("sub_agents[0].instructions", "Improve this:\n{{text}}\n"),
		e.Move("sub_agents", 0, 1),
		e.Insert("sub_agents", 2, map[string]any{"text": "{{text}}", "output_key": "loop_output", "name": "say"}),
		e.Set("score.target", 8),
	} {
		if err != nil {
			fmt.Println(err)
		}
	}
	fmt.Printf("%s", e.Bytes())
	// Output:
	// sub_agents[0].instructions 6
	// sub_agents[0].output_key 7
	// sub_agents[1].text 9
	// set score.target: 1:1: there is no score in the definition
	// name: refine
	// max_iterations: 5 # enough
	// sub_agents:
	//   - name: judge
	//     text: "8 of {{text}}"
	//   # who writes
	//   - name: write
	//     instructions: |
	//       Improve this:
	//       {{text}}
	//     output_key: text
	//   - name: say
	//     text: "{{text}}"
	//     output_key: loop_output
}
