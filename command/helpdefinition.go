// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/expr"
)

// newHelpDefinition is a topic and no command: refrain help definition.
func newHelpDefinition() *cobra.Command {
	return &cobra.Command{
		Use:    "definition",
		Hidden: true, // the help of refrain names it
		Short:  "Every field of a definition",
		Long:   definitionHelp(),
	}
}

// strictTopics makes the commands of Cobra's own refuse what they do not know: by
// themselves they show something else, and call that a success.
func strictTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Run, c.RunE = nil, helpAbout
		case "completion":
			c.Args = term.UnknownCommand
			c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
}

// helpAbout is refrain help of commands and topics.
func helpAbout(cmd *cobra.Command, args []string) error {
	about := cmd.Root()
	for _, word := range args {
		i := slices.IndexFunc(about.Commands(), func(c *cobra.Command) bool {
			return c.Name() == word || c.HasAlias(word)
		})
		switch {
		case i >= 0:
			about = about.Commands()[i]
		case about.HasSubCommands():
			return term.UnknownCommand(about, []string{word})
		default:
			return fmt.Errorf("%s has no topic %q; see %s --help", about.CommandPath(), word, about.CommandPath())
		}
	}
	about.InitDefaultHelpFlag()
	about.InitDefaultVersionFlag()
	return about.Help()
}

// definitionHelp is the reference of the fields, made of the table that files
// are read by.
func definitionHelp() string {
	var b strings.Builder
	b.WriteString("A definition is a YAML file with one agent, the root, and those in it. These are\nthe fields of " +
		"agents.\n")
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
				doc += "; required"
			}
			fmt.Fprintf(&b, "      %s  (%s)\n%s", p.Name, p.Value, wrapped(doc, "          "))
		}
	}
	b.WriteString("\nThe functions of expressions, besides the operators of CEL (https://cel.dev):\n\n")
	for _, f := range expr.Functions() {
		b.WriteString(wrapped(f.Form, "  ") + wrapped(f.Doc, "      "))
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
