// SPDX-License-Identifier: Apache-2.0

package writing

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/deffile"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
)

func NewSchema(e *term.Env) *cobra.Command {
	var line bool
	cmd := &cobra.Command{
		Use:   "schema [FILE]",
		Short: "Print the JSON Schema of definitions, for editors",
		Long: `Print the JSON Schema (draft 2020-12) of definitions. With the schema, an editor completes
and explains fields, and marks mistakes while you type.

Editors with a YAML language server read the schema that the first line of a definition
names. --line prints that line. Without FILE the line names the newest schema on the web;
with FILE it names this file, a copy of this version's schema.`,
		Example: `  refrain schema >refrain.schema.json
  refrain schema --line refrain.schema.json
  refrain schema --line | cat - draft.yaml >loop.yaml`,
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case line && len(args) > 0:
				_, err := fmt.Fprintln(e.Stdout, deffile.SchemaLine+args[0])
				return err
			case line:
				_, err := fmt.Fprintln(e.Stdout, deffile.SchemaLine+definition.SchemaID)
				return err
			case len(args) > 0:
				return fmt.Errorf("schema %s: write refrain schema >%s, or refrain schema --line %s", args[0], args[0],
					args[0])
			}
			_, err := e.Stdout.Write(definition.Schema())
			return err
		},
	}
	cmd.Flags().BoolVar(&line, "line", false, "print the line that names the schema, for the top of a definition")
	return cmd
}
