// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/refrain-dev/refrain/definition"
)

// graphASCII draws boxes of plain characters, with the names as they are.
func graphASCII(w io.Writer, n *graphNode) error {
	_, err := io.WriteString(w, strings.Join(asciiLines(n), "\n")+"\n")
	return err
}

// asciiLines draws an agent: a line, or a box with those in it.
func asciiLines(n *graphNode) []string {
	title := asciiTitle(n)
	if !n.kind.Workflow() {
		return []string{title}
	}
	var in []string
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
			add("=   ", "    ", asciiLines(s))
		case n.kind == definition.TypeLoop && i == 0:
			add("+-> ", "|   ", asciiLines(s))
		case n.kind == definition.TypeLoop:
			add("|   ", "|   ", asciiLines(s))
		default:
			add("    ", "    ", asciiLines(s))
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
			in = append(in, "      "+s.name+" ends it")
		}
		for _, s := range n.stops {
			in = append(in, "      "+s)
		}
		if n.finalizer != nil {
			add("  ", "  ", asciiLines(n.finalizer))
		}
	}
	return boxed(title, in)
}

func asciiTitle(n *graphNode) string {
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

// boxed draws a frame around lines, with a title in its upper edge.
func boxed(title string, lines []string) []string {
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
