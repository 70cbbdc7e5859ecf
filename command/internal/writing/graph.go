// SPDX-License-Identifier: Apache-2.0

package writing

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/deffile"
	"github.com/refrain-dev/refrain/command/internal/graph"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/values/suggest"
)

func NewGraph(e *term.Env) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "graph FILE",
		Short: "Draw a definition as a graph",
		Long: `Draw the structure of a definition. A loop is a box with an arrow back to its first
step; steps stand in the order in which they run. The graph shows how each loop ends,
which agents may end it, and which state key each agent writes. A star marks the
finalizer, which runs once after its loop.

graph treats files of other products as refrain run does.`,
		Example: `  refrain graph loop.yaml
  refrain graph loop.yaml --format mermaid >loop.mmd`,
		RunE: func(_ *cobra.Command, args []string) error {
			draw, ok := graph.Formats[format]
			if !ok {
				near := suggest.Nearest(format, []string{"ascii", "mermaid"})
				if near != "" {
					return fmt.Errorf("--format %q: did you mean %s?", format, near)
				}
				return fmt.Errorf("--format %q: use ascii or mermaid", format)
			}
			def, err := deffile.Load(e, args[0])
			if err != nil {
				return term.UsageError(err)
			}
			return draw(e.Stdout, graph.Of(def.Root))
		},
	}
	cmd.Flags().StringVar(&format, "format", "ascii", "ascii or mermaid")
	return cmd
}
