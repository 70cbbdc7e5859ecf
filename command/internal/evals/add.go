// SPDX-License-Identifier: Apache-2.0

package evals

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/eval"
)

func newAdd(e *term.Env) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "add RUN",
		Short: "Make a case of a run",
		Long: `Add a case to a file of cases that asks what a run was asked and expects what it answered,
with its inputs, its state, people's answers and its calls of tools. If a step asked several
times, the case has the last answer. Read the case before you use it: it says that the
answer of the run was right. The file is created if it does not exist.`,
		Example: "  refrain eval add last --cases cases.yaml",
		Args:    term.Args,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.cases == "" {
				return term.UsageError(fmt.Errorf("no file of cases is given; write: refrain eval add %s --cases FILE", args[0]))
			}
			run, err := runstore.Open(cmd.Context(), e, f.store, args[0])
			if err != nil {
				return err
			}
			defer run.Close()
			if run.View() == nil {
				return term.UsageError(fmt.Errorf("%s is a file; import it with refrain import, and name the run", args[0]))
			}
			c, err := eval.CaseOf(run.View(), &e.Code)
			if err == nil {
				err = eval.Append(f.cases, c)
			}
			if err != nil {
				return term.UsageError(err)
			}
			fmt.Fprintf(e.Stderr, "%s has the case %s.\n", f.cases, c.ID)
			return nil
		},
	}
	cmd.ValidArgsFunction = runstore.Complete(e)
	fl := cmd.Flags()
	fl.StringVar(&f.cases, "cases", "", "YAML `FILE` of cases; required")
	_ = cmd.MarkFlagFilename("cases", "yaml", "yml")
	runstore.Flag(fl, &f.store)
	return cmd
}
