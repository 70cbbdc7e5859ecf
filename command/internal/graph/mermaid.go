// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/refrain-dev/refrain/definition"
)

// drawMermaid draws a flowchart for Mermaid.
func drawMermaid(w io.Writer, n *Node) error {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	mermaidNode(&b, n, "  ")
	_, err := io.WriteString(w, b.String())
	return err
}

func mermaidNode(b *strings.Builder, n *Node, indent string) {
	if !n.kind.Workflow() {
		open, end := "[", "]"
		if n.star {
			open, end = "([", "])"
		}
		fmt.Fprintf(b, "%s%s%s\"%s\"%s\n", indent, n.id, open, mermaidLabel(n.label()), end)
		return
	}
	fmt.Fprintf(b, "%ssubgraph %s[\"%s\"]\n", indent, n.id, mermaidLabel([]string{strings.Join(n.label(), " · ")}))
	inner := indent + "  "
	fmt.Fprintf(b, "%sdirection TB\n", inner)
	for i, s := range n.steps {
		mermaidNode(b, s, inner)
		if i > 0 && n.kind != definition.TypeParallel {
			fmt.Fprintf(b, "%s%s --> %s\n", inner, n.steps[i-1].id, s.id)
		}
	}
	if n.kind == definition.TypeLoop && len(n.steps) > 0 {
		first, last := n.steps[0], n.steps[len(n.steps)-1]
		from, to := last, first
		if from == to { // Mermaid has no arrow from a box to itself
			from, to = from.lastIn(), to.firstIn()
		}
		fmt.Fprintf(b, "%s%s -->|\"again\"| %s\n", inner, from.id, to.id)
		end := n.id + "end"
		fmt.Fprintf(b, "%s%s{{\"%s\"}}\n", inner, end, mermaidLabel(append([]string{"ends"}, n.stops...)))
		fmt.Fprintf(b, "%s%s --> %s\n", inner, last.id, end)
		for _, s := range n.exiters() {
			fmt.Fprintf(b, "%s%s -.->|\"exit\"| %s\n", inner, s.id, end)
		}
		if n.finalizer != nil {
			mermaidNode(b, n.finalizer, inner)
			fmt.Fprintf(b, "%s%s --> %s\n", inner, end, n.finalizer.id)
		}
	}
	fmt.Fprintf(b, "%send\n", indent)
}

// mermaidLabel returns lines as a quoted label. Every character except letters, digits and a few signs becomes an entity,
// because Mermaid reads HTML, Markdown, directives and its own entities in a label.
func mermaidLabel(lines []string) string {
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteString("<br/>")
		}
		before := rune(0)
		for _, r := range l {
			list := before == 0 && strings.ContainsRune("-+", r) ||
				r == '.' && unicode.IsDigit(before) // a list number of Markdown
			if !list && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(" _-.,:/()=+★→·≥≤…", r)) {
				b.WriteRune(r)
			} else {
				fmt.Fprintf(&b, "#%d;", r)
			}
			before = r
		}
	}
	return b.String()
}
