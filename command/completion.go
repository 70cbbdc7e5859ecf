// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
)

// choices are the values of the flags that have only a few.
var choices = map[string][]string{
	"progress": {term.Auto, term.TTY, term.Plain, term.JSON, term.Quiet}, "format": {"ascii", "mermaid"}, "from": {"adk", "evo", "robomotion"},
	"to": {"adk"}, "permissions": {"read", "edit", "all"}, "denied": {"fail", "allow"},
	"match": {"order", "exact"},
}

// complete lets a shell complete the arguments and flags of a verb: runs, files of definitions, and values of flags.
func complete(e *term.Env, c *cobra.Command) {
	file := c.Use == "schema [FILE]" || c.Name() == "view" || c.Name() == "import"
	switch {
	case strings.Contains(c.Use, "RUN"):
		c.ValidArgsFunction = runstore.Complete(e)
	case strings.Contains(c.Use, "FILE") && !file: // the files of these verbs are not only definitions
		c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 && !strings.Contains(c.Use, "...") {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return []cobra.Completion{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		}
	}
	for flag, values := range choices {
		if c.Flags().Lookup(flag) != nil {
			_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}
