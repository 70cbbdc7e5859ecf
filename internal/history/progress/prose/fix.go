// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"slices"
	"strconv"
	"strings"
)

// Fix is a change of one field of an agent in a definition. Package edit makes it in the
// text of a file.
type Fix struct {
	// Agent is the agent's name, and Field the field, such as budget.tokens.
	Agent string `json:"agent"`
	Field string `json:"field"`
	// Value is the value to write, in YAML on one line; or, if Append is true, the lines to add to the end of the
	// existing text.
	Value  string `json:"value"`
	Append bool   `json:"append,omitzero"`
}

// String returns the fix as a person would write it: "budget: {tokens: 200000} on improve".
func (f Fix) String() string {
	fields := strings.Split(f.Field, ".")
	text := f.Value
	if f.Append {
		text = "… " + strconv.Quote(f.Value)
	}
	for i, name := range slices.Backward(fields) {
		if text = name + ": " + text; i > 0 {
			text = "{" + text + "}"
		}
	}
	return text + " on " + f.Agent
}
