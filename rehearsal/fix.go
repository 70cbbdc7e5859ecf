// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"slices"
	"strings"
)

// Fix is a field that an agent of the definition would get, or get another value of,
// for a fault to be caught.
type Fix struct {
	// Agent is its name, and Field the field, as budget.tokens.
	Agent string `json:"agent"`
	Field string `json:"field"`
	// Value is what to write there, in YAML on one line.
	Value string `json:"value"`
}

// String is the fix as a person would write it: "budget: {tokens: 200000} on improve".
func (f Fix) String() string {
	fields := strings.Split(f.Field, ".")
	text := f.Value
	for i, name := range slices.Backward(fields) {
		if text = name + ": " + text; i > 0 {
			text = "{" + text + "}"
		}
	}
	return text + " on " + f.Agent
}

// fix adds one to a finding. Besides, more says what would do as well, or what it
// does.
func (f *Finding) fix(agent, field, value, more string) {
	one := Fix{agent, field, value}
	f.Add, f.Advice = []Fix{one}, one.String()+more
}
