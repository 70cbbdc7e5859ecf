// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/loop"
)

// criteria says in words when a loop is done, as the end of a sentence that
// begins "Call this function ONLY when"; empty if the definition does not say.
func criteria(l *Loop) string {
	var parts []string
	if goal := strings.TrimRight(strings.Join(strings.Fields(l.Goal), " "), "."); goal != "" {
		parts = append(parts, fmt.Sprintf("the goal is reached (%s)", goal))
	}
	if s := l.Score; s != nil && s.Target != nil {
		bound := "least"
		if s.LowerIsBetter {
			bound = "most"
		}
		parts = append(parts, fmt.Sprintf("the score is at %s %v", bound, *s.Target))
	}
	if s := l.Score; s != nil && s.DimensionTarget != nil {
		bound := "least"
		if s.LowerIsBetter {
			bound = "most"
		}
		parts = append(parts, fmt.Sprintf("every part of it is at %s %v", bound, *s.DimensionTarget))
	}
	if l.StopWhen != nil {
		parts = append(parts, "this holds: "+conditionWords(l.StopWhen))
	}
	return strings.Join(parts, " and ")
}

// conditionWords is a condition with its parts joined by words.
func conditionWords(c *loop.Condition) string {
	words := c.Expr
	switch {
	case len(c.Any) > 0:
		words = joinWords(c.Any, " or ")
	case len(c.All) > 0:
		words = joinWords(c.All, " and ")
	case c.Not != nil:
		words = "not (" + conditionWords(c.Not) + ")"
	}
	if c.For > 1 {
		words = fmt.Sprintf("(%s) in %d iterations running", words, c.For)
	}
	return words
}

func joinWords(cs []loop.Condition, by string) string {
	words := make([]string, len(cs))
	for i := range cs {
		words[i] = "(" + conditionWords(&cs[i]) + ")"
	}
	return strings.Join(words, by)
}
