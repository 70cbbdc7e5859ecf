// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"io"
	"strings"

	"github.com/refrain-dev/refrain/definition"
)

// drawDot draws a digraph for Graphviz.
func drawDot(w io.Writer, n *Node) error {
	var b strings.Builder
	b.WriteString("digraph definition {\n  compound=true;\n  node [shape=box, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\"];\n  graph [fontname=\"sans-serif\"];\n")
	dotNode(&b, n, "  ")
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func dotNode(b *strings.Builder, n *Node, indent string) {
	if !n.kind.Workflow() {
		style := ""
		if n.star {
			style = ", style=rounded"
		}
		fmt.Fprintf(b, "%s%s [label=\"%s\"%s];\n", indent, n.id, dotLabel(n.label()), style)
		return
	}
	fmt.Fprintf(b, "%ssubgraph cluster_%s {\n", indent, n.id)
	inner := indent + "  "
	fmt.Fprintf(b, "%slabel=\"%s\";\n", inner, dotLabel([]string{strings.Join(n.label(), " · ")}))
	for i, s := range n.steps {
		dotNode(b, s, inner)
		if i > 0 && n.kind != definition.TypeParallel {
			dotEdge(b, inner, n.steps[i-1], s)
		}
	}
	if n.kind == definition.TypeLoop && len(n.steps) > 0 {
		first, last := n.steps[0], n.steps[len(n.steps)-1]
		dotEdge(b, inner, last, first, `label="again"`, "constraint=false")
		end := &Node{id: n.id + "end"}
		fmt.Fprintf(b, "%s%s [shape=hexagon, label=\"%s\"];\n", inner, end.id, dotLabel(append([]string{"ends"}, n.stops...)))
		dotEdge(b, inner, last, end)
		for _, s := range n.exiters() {
			dotEdge(b, inner, s, end, `label="exit"`, "style=dashed")
		}
		if n.finalizer != nil {
			dotNode(b, n.finalizer, inner)
			dotEdge(b, inner, end, n.finalizer)
		}
	}
	fmt.Fprintf(b, "%s}\n", indent)
}

// dotEdge draws an edge. Graphviz has none between boxes: they are drawn between
// nodes in them, and cut off at the box.
func dotEdge(b *strings.Builder, indent string, from, to *Node, attrs ...string) {
	tail, head := from.lastIn(), to.firstIn()
	if tail != from && from != to {
		attrs = append(attrs, "ltail=cluster_"+from.id)
	}
	if head != to && from != to {
		attrs = append(attrs, "lhead=cluster_"+to.id)
	}
	fmt.Fprintf(b, "%s%s -> %s", indent, tail.id, head.id)
	if len(attrs) > 0 {
		fmt.Fprintf(b, " [%s]", strings.Join(attrs, ", "))
	}
	b.WriteString(";\n")
}

// dotLabel is lines as the inside of a quoted string, in which Graphviz reads
// backslashes and HTML's entities.
func dotLabel(lines []string) string {
	escaped := make([]string, len(lines))
	for i, l := range lines {
		escaped[i] = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", "&amp;").Replace(l)
	}
	return strings.Join(escaped, `\n`)
}
