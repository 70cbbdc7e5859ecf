// SPDX-License-Identifier: Apache-2.0

package codingloop

import (
	"errors"
	"fmt"
	"strings"
)

// Words splits a command line into a program and its arguments at white space, without a shell. Quotes and backslashes work as
// in a shell: ' ' quotes everything, and in " " a backslash stands for itself except before ", \, $ and `. Nothing is expanded:
// text that a shell would expand, or run as another command, is an error unless it is quoted.
func Words(line string) (words []string, err error) {
	var word strings.Builder
	quote, begun, escaped := rune(0), false, false
	for _, r := range line {
		switch {
		case escaped:
			if quote == '"' && !strings.ContainsRune("\"\\$`", r) {
				word.WriteByte('\\')
			}
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			begun, escaped = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == '\'':
			word.WriteRune(r)
		case r == '$' || r == '`' || quote == 0 && (strings.ContainsRune("|&;<>()*?[#\n", r) || r == '~' && !begun):
			return nil, fmt.Errorf("no shell reads this command line, so %q has no special meaning; quote it with ' ', or write a script", r)
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			begun, quote = true, r
		case r == ' ' || r == '\t':
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			begun = true
			word.WriteRune(r)
		}
	}
	if quote != 0 || escaped {
		return nil, errors.New("a quote is not closed, or the line ends with a backslash; close the quote, or remove the backslash")
	}
	if begun {
		words = append(words, word.String())
	}
	if len(words) == 0 || words[0] == "" {
		return nil, errors.New("the command line names no program; write the program first")
	}
	return words, nil
}
