// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// lines writes a text behind | or >, as the one that stands there. What cannot be
// written so, or not without doubt, is for quotes: ok is false.
func (p pen) lines(text string, column int, m manner) (written string, ok bool) {
	if strings.ContainsFunc(text, func(r rune) bool {
		return r != '\n' && r != '\t' && !unicode.IsGraphic(r) || r > 0x7f && unicode.IsSpace(r) || r == 0xfeff
	}) {
		return "", false
	}
	body := strings.TrimRight(text, "\n")
	ends := len(text) - len(body)
	if body == "" || strings.TrimSpace(body) == "" {
		return "", false
	}
	chomp := [3]string{"-", "", "+"}[min(ends, 2)]
	indent := m.indent
	if indent <= column {
		indent = column + p.step
	}
	hint := ""
	if first := strings.TrimLeft(body, "\n"); first[0] == ' ' || first[0] == '\t' || first != body {
		if indent = min(indent, column+9); column < 0 {
			return "", false
		}
		hint = strconv.Itoa(indent - column)
	}
	for _, folded := range []bool{true, false} {
		if folded && m.style&yaml.FoldedStyle == 0 {
			continue
		}
		sign, rows := "|", strings.Split(body, "\n")
		if folded {
			sign, rows = ">", foldedRows(body, m.lines)
		}
		var b strings.Builder
		b.WriteString(sign + hint + chomp)
		for _, row := range rows {
			b.WriteByte('\n')
			if row != "" {
				b.WriteString(strings.Repeat(" ", indent) + row)
			}
		}
		b.WriteString(strings.Repeat("\n", max(ends-1, 0)))
		if reads(b.String(), column, text) {
			return b.String(), true
		}
	}
	return "", false
}

// reads reports whether what was written is the text.
func reads(written string, column int, text string) bool {
	var n yaml.Node
	probe := strings.Repeat(" ", column) + "k: " + written + "\n"
	if err := yaml.Unmarshal([]byte(probe), &n); err != nil || len(n.Content) != 1 {
		return false
	}
	m := n.Content[0]
	return m.Kind == yaml.MappingNode && len(m.Content) == 2 && m.Content[1].Value == text
}

// foldedRows are the lines of a text behind >. A paragraph that stands there already
// keeps its lines; others get ones of the same length.
func foldedRows(body string, there []string) []string {
	width := 0
	known := make(map[string][]string)
	for i := 0; i < len(there); {
		j := i
		for j < len(there) && !stays(there[j]) {
			width = max(width, utf8.RuneCountInString(there[j]))
			j++
		}
		if j > i {
			known[strings.Join(there[i:j], " ")] = there[i:j]
		}
		i = max(j, i+1)
	}
	var out []string
	paragraphs := strings.Split(body, "\n")
	for i, text := range paragraphs {
		if i > 0 && !stays(text) && !stays(paragraphs[i-1]) {
			out = append(out, "") // one break is a space
		}
		switch rows, ok := known[text]; {
		case ok:
			out = append(out, rows...)
		case stays(text):
			out = append(out, text)
			if text == "" && (i == 0 || !stays(paragraphs[i-1])) {
				out = append(out, "")
			}
		default:
			out = append(out, wrap(text, width)...)
		}
	}
	return out
}

// stays reports whether the breaks around a line stay: it is empty, or indented.
func stays(line string) bool { return line == "" || line[0] == ' ' || line[0] == '\t' }

// wrap breaks a text at single spaces; not at all if there is no width.
func wrap(text string, width int) []string {
	if width == 0 {
		return []string{text}
	}
	width = max(width, 40)
	var out []string
	words := strings.Split(text, " ")
	row := words[0]
	for i, w := range words[1:] {
		if w == "" || words[i] == "" || w[0] == '\t' || utf8.RuneCountInString(row)+1+utf8.RuneCountInString(w) <= width {
			row += " " + w
			continue
		}
		out = append(out, row)
		row = w
	}
	return append(out, row)
}
