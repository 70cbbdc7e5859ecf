// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/session"
)

// Complete completes the first argument with the IDs of runs, the newest first, and with the names of files; all arguments, if the
// command takes several runs. It reports no errors, because a shell does not show them.
func Complete(e *term.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		const directive = cobra.ShellCompDirectiveKeepOrder
		if len(args) > 0 && !strings.HasSuffix(cmd.Use, "...") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		spec := ""
		if fl := cmd.Flags().Lookup("store"); fl != nil {
			spec = fl.Value.String()
		}
		store, closeStore, err := OpenService(cmd.Context(), e, spec)
		if err != nil {
			return nil, directive
		}
		defer closeStore()
		all, err := List(cmd.Context(), store)
		if err != nil {
			return nil, directive
		}
		words := make([]cobra.Completion, 0, len(all)+1)
		for _, s := range all {
			about := ""
			if r := session.RunOf(s); r != nil {
				about = fmt.Sprintf("%s, %s, %s", r.Name, r.Status, r.Started.Local().Format("2006-01-02 15:04"))
			}
			words = append(words, cobra.CompletionWithDesc(term.Cell(s.ID(), 80), term.Cell(about, 60)))
		}
		if len(all) > 0 {
			words = append(words, cobra.CompletionWithDesc("last", "the newest run"))
		}
		return words, directive
	}
}
