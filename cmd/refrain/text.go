// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/expr"
)

// nearestFlag is the flag that somebody who wrote name may have meant.
func nearestFlag(cmd *cobra.Command, name string) string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return expr.Nearest(name, names)
}
