// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"regexp/syntax"
	"strings"

	"github.com/refrain-dev/refrain/definition"
)

// makeUp returns a value for an input: one of its type, and one of its choices or one that matches its
// pattern if it has them.
func makeUp(in definition.Input) string {
	if len(in.Choices) > 0 {
		return in.Choices[0]
	}
	if re, err := syntax.Parse(in.Pattern, syntax.Perl); err == nil && in.Pattern != "" {
		return shortest(re)
	}
	return madeUp[in.Type]
}

var madeUp = map[definition.InputType]string{
	definition.InputString: "made up", definition.InputPath: "made up", definition.InputFile: "made up", definition.InputInt: "1",
	definition.InputNumber: "1", definition.InputBool: "true", definition.InputList: "[1]", definition.InputMap: "{}",
}

// shortest returns a short text that a regular expression matches, unless it looks at what is around a place.
func shortest(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		return string(re.Rune[:1])
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "a"
	case syntax.OpCapture, syntax.OpPlus, syntax.OpAlternate:
		return shortest(re.Sub[0])
	case syntax.OpRepeat:
		return strings.Repeat(shortest(re.Sub[0]), re.Min)
	case syntax.OpConcat:
		var b strings.Builder
		for _, sub := range re.Sub {
			b.WriteString(shortest(sub))
		}
		return b.String()
	}
	return ""
}
