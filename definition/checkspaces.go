// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/definition/internal/vocabulary"
)

// severalWords is what looks like a placeholder and is text: its name has spaces.
var severalWords = regexp.MustCompile(`\{\{\s*([\pL_][\pL\pN_]*(?:[ \t]+[\pL\pN_]+)+)\s*\}\}`)

// spaces notes placeholders with spaces in their names, which are texts.
func (c *checker) spaces(a *Agent, field, text string) {
	if !strings.Contains(text, "{{") {
		return
	}
	for _, at := range severalWords.FindAllStringSubmatchIndex(text, -1) {
		before := text[:at[0]]
		start := strings.LastIndexByte(before, '\n') + 1
		c.spaced = append(c.spaced, read{
			agent: a, field: field, name: text[at[2]:at[3]],
			line: 1 + strings.Count(before, "\n"), column: 1 + utf8.RuneCountInString(before[start:]), form: "{{%s}}",
		})
	}
}

// noSpaces reports them: an error where the words joined by _ are a key.
func (c *checker) noSpaces() {
	for i := range c.spaced {
		if c.full() {
			return
		}
		rd := &c.spaced[i]
		key := strings.Join(strings.Fields(rd.name), "_")
		if _, known := c.keys[key]; known || slices.Contains(vocabulary.BuiltIn, key) {
			c.report(rd.place(), CodeTemplate, "%s is no placeholder: the name of a key has no spaces", rd).
				Hint = fmt.Sprintf("did you mean {{%s}}?", key)
			continue
		}
		c.warn(rd.place(), CodeTemplate, "%s is no placeholder and stays as it is: the name of a key has no spaces", rd).
			Hint = "join the words with _ if a key is meant"
	}
}
