// SPDX-License-Identifier: Apache-2.0

package running

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/deffile"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/supervisor"
)

func NewTell(e *term.Env) *cobra.Command {
	var store string
	cmd := &cobra.Command{
		Use:   "tell RUN TEXT",
		Short: "Tell the agents of the next iteration something",
		Long: `Tell a run something, even if another process is driving it. The agents of the next
iteration that ask a model, and coding agents, get the text once, at the end of their
instructions or of their prompt. Agents that give the score do not get it. Several texts
add up. The log keeps the text with that iteration, so a resumed run and a fork have the
same prompts.

A run that no process drives gets the text when it is resumed. TEXT can be - to read it
from stdin.`,
		Example: `  refrain tell last "Leave the public names as they are."
  refrain tell r_1f0c3a2b - < advice.txt`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			text := args[1]
			if text == "-" {
				var err error
				if text, err = deffile.ReadInput(args[1:], e.Stdin); err != nil {
					return term.Failure(err)
				}
			}
			s, sup, id, err := runstore.OpenSupervised(cmd.Context(), e, store, args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			ctx := cmd.Context()
			if who := cmp.Or(e.Getenv("USER"), e.Getenv("LOGNAME")); who != "" {
				ctx = supervisor.As(ctx, who)
			}
			if err := hears(ctx, s, id); err != nil {
				return term.Failure(err)
			}
			driven, err := sup.Tell(ctx, id, text)
			switch {
			case errors.Is(err, supervisor.ErrDriver):
				return term.Failure(fmt.Errorf("%w; a run of a cluster cannot be told anything", err))
			case err != nil:
				return term.Failure(err)
			case driven:
				fmt.Fprintf(e.Stderr, "run %s: its next iteration gets the text, if it has one\n", id)
			default:
				fmt.Fprintf(e.Stderr, "run %s: no process drives it, so it gets the text when it is resumed\n%s\n", id,
					runstore.HowToResumeIn(cmd.Context(), s.Service, id))
			}
			return nil
		},
	}
	runstore.Flag(cmd.Flags(), &store)
	return cmd
}

// hears returns an error for a run whose definition has no loop.
func hears(ctx context.Context, s *runstore.Stock, id string) error {
	view, _, err := s.View(ctx, id)
	if err != nil || program.HasLoop(view) {
		return err
	}
	return fmt.Errorf("run %s has no loop, and only an iteration of a loop gets a text; to change what the run does, "+
		"edit its definition, and continue with refrain fork %s --run --definition FILE", id, id)
}
