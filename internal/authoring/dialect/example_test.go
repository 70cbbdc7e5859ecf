// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"fmt"
	"os"

	"github.com/refrain-dev/refrain/internal/authoring/dialect"
)

func ExampleImport() {
	const flow = `
type: Loop Agent
Name: worker
Max Iterations: 3
Color: mauve
sub-agents:
  - {type: LLM Agent, Name: writer, Instructions: "Write about {{user_input}}.", Output Key: draft}
`
	got, err := dialect.Import("flow.yaml", []byte(flow), dialect.Options{Dialect: dialect.Robomotion})
	if err != nil {
		fmt.Println(err)
		return
	}
	os.Stdout.Write(got.YAML)
	for _, item := range got.Report.Items {
		if item.Kind == dialect.Dropped {
			fmt.Println(item.Agent, item.Field, "-", item.Message)
		}
	}
	// Output:
	// # Imported from Robomotion by refrain import.
	// name: worker
	// type: loop
	// max_iterations: 3
	// timeouts: none
	// timeout: 300s
	// sub_agents:
	//   - name: writer
	//     type: llm
	//     instructions: "Write about {{user_input}}."
	//     context: full
	//     output_key: draft
	// worker Color - there is no color "mauve"
}
