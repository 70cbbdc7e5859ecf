// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/definition"
)

// newHelpDefinition is a topic and no command: refrain help definition.
func newHelpDefinition() *cobra.Command {
	return &cobra.Command{
		Use:   "definition",
		Short: "What a definition can say: every field",
		Long:  definitionHelp(),
	}
}

// definitionHelp is the reference of the fields, made of the table that files
// are read by.
func definitionHelp() string {
	var b strings.Builder
	b.WriteString("A definition is a YAML file with one agent, the root, and those in it. These are\nthe fields of agents.\n")
	for _, f := range definition.Fields() {
		of := "every agent"
		if f.Root {
			of = "the root"
		}
		if f.Types != nil {
			names := make([]string, len(f.Types))
			for i, t := range f.Types {
				names[i] = string(t)
			}
			of = strings.Join(names, ", ")
		}
		fmt.Fprintf(&b, "\n%s  (%s; %s)\n%s", f.Name, f.Value(), of, wrapped(f.Doc, "    "))
		for _, p := range f.Parts() {
			doc := p.Doc
			if p.Needed {
				doc += "; needed"
			}
			fmt.Fprintf(&b, "      %s  (%s)\n%s", p.Name, p.Value, wrapped(doc, "          "))
		}
	}
	b.WriteString("\nThe codes of problems:\n\n")
	for _, code := range definition.SortedCodes() {
		fmt.Fprintf(&b, "  %s  %s\n", code, definition.Codes[code])
	}
	return strings.TrimRight(b.String(), "\n")
}

// wrapped breaks a text into lines of at most 80 characters.
func wrapped(text, indent string) string {
	var b strings.Builder
	line := indent
	for word := range strings.FieldsSeq(text) {
		if len([]rune(line))+len([]rune(word)) >= 80 && strings.TrimSpace(line) != "" {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = indent
		}
		line += word + " "
	}
	return b.String() + strings.TrimRight(line, " ") + "\n"
}
