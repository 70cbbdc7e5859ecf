// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
)

// How wide a drawing may be, and how wide what is in boxes stays however deep they
// are nested.
const asciiWidth, asciiLeast = 80, 24

// drawASCII draws boxes of ASCII characters, but keeps names unchanged. The drawing fits into a narrow terminal.
func drawASCII(w io.Writer, n *Node) error {
	width := asciiWidth
	if columns := term.ColumnsOf(w); columns > 0 {
		width = min(width, columns)
	}
	_, err := io.WriteString(w, strings.Join(asciiLines(n, width), "\n")+"\n")
	return err
}

// asciiLines draws an agent in at most width columns: on one line if there is room, or in a box with its sub-agents.
func asciiLines(n *Node, width int) []string {
	width = max(width, asciiLeast)
	if !n.kind.Workflow() {
		return hanging(asciiTitle(n), width)
	}
	title := hanging(asciiTitle(n), width-6)
	in := title[1:]
	sub := func(s *Node) []string { return asciiLines(s, width-8) }
	add := func(first, rest string, lines []string) {
		for i, l := range lines {
			if i == 0 {
				in = append(in, first+l)
			} else {
				in = append(in, rest+l)
			}
		}
	}
	for i, s := range n.steps {
		switch {
		case n.kind == definition.TypeParallel:
			add("=   ", "    ", sub(s))
		case n.kind == definition.TypeLoop && i == 0:
			add("+-> ", "|   ", sub(s))
		case n.kind == definition.TypeLoop:
			add("|   ", "|   ", sub(s))
		default:
			add("    ", "    ", sub(s))
		}
		if i < len(n.steps)-1 && n.kind != definition.TypeParallel {
			add("|    |", "", []string{""})
			if n.kind != definition.TypeLoop {
				in[len(in)-1] = "     |"
			}
		}
	}
	if n.kind == definition.TypeLoop {
		in = append(in, "+-- again, until it ends:")
		for _, s := range n.exiters() {
			add("      ", "      ", hanging(s.name+" ends it", width-10))
		}
		for _, s := range n.stops {
			add("      ", "      ", hanging(s, width-10))
		}
		if n.finalizer != nil {
			add("  ", "  ", asciiLines(n.finalizer, width-6))
		}
	}
	return box(title[0], in)
}

// hanging breaks a text that is too wide, and indents the continuation lines.
func hanging(text string, width int) []string {
	if ansi.StringWidth(text) <= width {
		return []string{text}
	}
	lines := strings.Split(ansi.Wrap(text, width-2, ""), "\n")
	for i := range lines[1:] {
		lines[i+1] = "  " + strings.TrimSpace(lines[i+1])
	}
	return lines
}

func asciiTitle(n *Node) string {
	words := []string{n.name}
	if n.star {
		words[0] = "* " + n.name
	}
	words = append(words, "("+string(n.kind)+")")
	words = append(words, n.about...)
	if n.exits {
		words = append(words, "[may end the loop]")
	}
	return strings.Join(words, " ")
}

// box draws a box around lines, with a title in its upper edge.
func box(title string, lines []string) []string {
	width := ansi.StringWidth(title) + 2
	for _, l := range lines {
		width = max(width, ansi.StringWidth(l))
	}
	dashes := func(n int) string { return strings.Repeat("-", max(n, 0)) }
	out := []string{"+- " + title + " " + dashes(width-ansi.StringWidth(title)-1) + "+"}
	for _, l := range lines {
		out = append(out, "| "+l+strings.Repeat(" ", width-ansi.StringWidth(l))+" |")
	}
	return append(out, "+"+dashes(width+2)+"+")
}
