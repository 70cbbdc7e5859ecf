// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/refrain-dev/refrain/progress"
)

// note is a finding on a line.
func note(f progress.Finding) string {
	text := f.String()
	if strings.Contains(string(f.Loop), "/") {
		text = string(f.Loop) + ": " + text
	}
	return "Note: " + strings.Join(strings.Fields(text), " ")
}
