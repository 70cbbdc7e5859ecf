// SPDX-License-Identifier: Apache-2.0

package writing

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/adkmove"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/process/shellword"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// NewADK returns refrain adk, the commands for users of ADK.
func NewADK(e *term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "adk",
		Short: "Move a Go program from ADK",
		Args:  term.UnknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newADKMove(e))
	return cmd
}

func newADKMove(e *term.Env) *cobra.Command {
	var write bool
	cmd := &cobra.Command{
		Use:   "move DIR",
		Short: "Change the imports of an ADK program",
		Long: `Move the Go module in the folder DIR from ADK for Go, v1 or v2, to Refrain: change
the import prefix in its files, and go.mod. session.NewEvent with one argument, as
ADK v1 has it, gets the context in reach.

By default, move prints the changes to stdout as a diff; --write makes the changes. On
stderr, move lists with file, line and column the code that will not compile with Refrain
(error) or behaves differently (note). move reads names, not types, so the compiler may
find more. A second move changes nothing, and lists what is left.

Exit code 0, or 1 if something will not compile.`,
		Example: `  refrain adk move .
  refrain adk move . --write && go mod tidy && go vet ./...`,
		Args: term.Args,
		RunE: func(_ *cobra.Command, args []string) error { return moveADK(e, args[0], write) },
	}
	cmd.Flags().BoolVar(&write, "write", false, "change the files")
	return cmd
}

func moveADK(e *term.Env, dir string, write bool) error {
	p, err := adkmove.Read(dir)
	if err != nil {
		return term.UsageError(err)
	}
	changed, removed := p.Files(), p.Removed
	if write && len(changed) > 0 {
		if err := p.Write(); err != nil {
			return term.Failure(err)
		}
		if p, err = adkmove.Read(dir); err != nil { // read again for the new positions
			return term.Failure(err)
		}
	} else if err := p.Diff(term.Exactly(e.Stdout)); err != nil {
		return term.Failure(err)
	}
	broken := 0
	for _, f := range append(removed, p.Findings...) {
		if fmt.Fprintln(e.Stderr, f); f.Breaks {
			broken++
		}
	}
	for _, other := range p.Others {
		fmt.Fprintf(e.Stderr, "%s is a module of its own: move it with refrain adk move %[1]s\n", shellword.Of(other))
	}
	switch n := brief.Count(len(changed), "file"); {
	case len(changed) == 0:
		fmt.Fprintln(e.Stderr, "nothing to change")
	case !write:
		fmt.Fprintln(e.Stderr, n, "to change; do it with --write")
	default:
		next := "go mod tidy && go vet ./..."
		if p.Vendored {
			next = "go mod tidy && go mod vendor && go vet ./..."
		}
		if broken > 0 {
			next = "correct " + brief.Count(broken, "error") + ", then " + next
		}
		fmt.Fprintf(e.Stderr, "%s changed; next: %s\n", n, next)
	}
	if broken > 0 {
		return &term.Exit{Code: term.ExitFailed} // the report has already said what does not compile
	}
	return nil
}
