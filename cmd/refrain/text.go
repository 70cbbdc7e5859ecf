// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/expr"
)

// plainText takes out of a text what would command a terminal: all control
// characters but line breaks and tabs, and what turns the direction of a text.
func plainText(s string) string {
	return strings.Map(func(r rune) rune {
		if isCommand(r) {
			return -1
		}
		return r
	}, s)
}

// isTerminal reports whether what is written to w is shown by a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// nearestFlag is the flag that somebody who wrote name may have meant.
func nearestFlag(cmd *cobra.Command, name string) string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return expr.Nearest(name, names)
}
