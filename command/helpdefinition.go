// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/expr/cel"
)

// newHelpDefinition is a topic and no command: refrain help definition.
func newHelpDefinition(e *term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:    "definition",
		Hidden: true, // the help of refrain names it
		Short:  "Every field of a definition",
	}
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		width := helpWidth
		if columns := term.ColumnsOf(e.Stdout); columns > 0 {
			width = min(width, columns)
		}
		fmt.Fprintln(cmd.OutOrStdout(), e.Hint(definitionHelp(width)))
	})
	return cmd
}

// helpWidth is the width of a help text where there is room.
const helpWidth = 80

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
// are read by, in lines of at most width characters.
func definitionHelp(width int) string {
	var b strings.Builder
	wrapped := func(text, indent string) string { return wrap(text, indent, indent, width) }
	title := func(text, indent string) string { return wrappedTitle(text, indent, width) }
	b.WriteString(wrapped("A definition is a YAML file with one agent, the root, and those in it. These are the fields of agents.", ""))
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
		fmt.Fprintf(&b, "\n%s%s", title(fmt.Sprintf("%s  (%s; %s)", f.Name, f.Value(), of), ""), wrapped(f.Doc, "    "))
		for _, p := range f.Parts() {
			doc := p.Doc
			if p.Needed {
				doc += "; required"
			}
			b.WriteString(title(fmt.Sprintf("%s  (%s)", p.Name, p.Value), "      ") + wrapped(doc, "          "))
		}
	}
	b.WriteString("\n" + wrapped("The functions of expressions, besides the operators of CEL (https://cel.dev):", "") + "\n")
	for _, f := range cel.Functions() {
		b.WriteString(wrapped(f.Form, "  ") + wrapped(f.Doc, "      "))
	}
	b.WriteString("\nThe codes of problems:\n\n")
	for _, code := range definition.SortedCodes() {
		b.WriteString(title(fmt.Sprintf("%s  %s", code, definition.Codes[code]), "  "))
	}
	return strings.TrimRight(b.String(), "\n")
}

// wrap breaks a text into lines of at most width characters, which begin with an indent; the first line has its own.
func wrap(text, first, indent string, width int) string {
	var b strings.Builder
	line, begun := first, false
	for word := range strings.FieldsSeq(text) {
		if begun && utf8.RuneCountInString(line)+utf8.RuneCountInString(word) >= width {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = indent
		}
		line, begun = line+word+" ", true
	}
	return b.String() + strings.TrimRight(line, " ") + "\n"
}

// wrappedTitle breaks a text that begins with a name and two spaces.
func wrappedTitle(text, indent string, width int) string {
	name, rest, _ := strings.Cut(text, "  ")
	return wrap(rest, indent+name+"  ", indent+"    ", width)
}
