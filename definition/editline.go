// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// extent is where a scalar stands in its line, in bytes.
func extent(lines []string, n *yaml.Node) (from, to int, err error) {
	if n.Kind != yaml.ScalarNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 || n.Line > len(lines) {
		return 0, 0, errors.New("what stands there is no plain value")
	}
	line := strings.TrimRight(lines[n.Line-1], "\r\n")
	for range n.Column - 1 {
		_, size := utf8.DecodeRuneInString(line[from:])
		from += size
	}
	rest, length := line[from:], 0
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		length = quotedLength(rest, '"', '\\')
	case n.Style&yaml.SingleQuotedStyle != 0:
		length = quotedLength(rest, '\'', '\'')
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 && strings.HasPrefix(rest, n.Value):
		length = len(n.Value)
	}
	if length == 0 {
		return 0, 0, errors.New("what stands there goes over several lines")
	}
	return from, from + length, nil
}

// quotedLength is how long a text in quotes is, with them; 0 if it does not end on
// the line. What comes behind an escape does not end it.
func quotedLength(s string, quote, escape byte) int {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == escape && i+1 < len(s) && (escape != quote || s[i+1] == quote):
			i++
		case s[i] == quote:
			return i + 1
		}
	}
	return 0
}

func replaceScalar(lines []string, n *yaml.Node, text string) error {
	from, to, err := extent(lines, n)
	if err != nil {
		return err
	}
	line := lines[n.Line-1]
	lines[n.Line-1] = line[:from] + text + line[to:]
	return nil
}

// addField adds a field behind the first one of a map, whose value is on its line.
func addField(lines []string, m *yaml.Node, key, text string) error {
	first, value := m.Content[0], m.Content[1]
	_, to, err := extent(lines, value)
	if err != nil || first.Line != value.Line {
		return fmt.Errorf("the first field, %s, is not on one line: add %s by hand", first.Value, key)
	}
	line := lines[value.Line-1]
	if m.Style&yaml.FlowStyle != 0 {
		lines[value.Line-1] = line[:to] + ", " + key + ": " + text + line[to:]
		return nil
	}
	end := "\n"
	if strings.HasSuffix(line, "\r\n") {
		end = "\r\n"
	} else if !strings.HasSuffix(line, end) {
		line += end
	}
	lines[value.Line-1] = line + strings.Repeat(" ", first.Column-1) + key + ": " + text + end
	return nil
}

// says looks whether a text says what it was to say.
func says(data []byte, path string, value any) error {
	root, err := document(data)
	if err != nil {
		return err
	}
	n, _, _, err := find(root, path)
	if err != nil {
		return err
	}
	if n == nil || n.Kind != yaml.ScalarNode {
		return errors.New("it cannot be written there")
	}
	want := new(yaml.Node)
	if err := want.Encode(value); err != nil {
		return err
	}
	if n.Value != want.Value || n.ShortTag() != want.ShortTag() {
		return fmt.Errorf("it cannot be written there: it would be %s", describe(n))
	}
	return nil
}
