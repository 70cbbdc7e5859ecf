// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// style holds the parameters of a terminal's SGR sequence, which gives a text its color and weight. The library removes the
// sequences that the terminal or NO_COLOR excludes.
type style string

const (
	plainly style = ""
	strong  style = "1"
	faint   style = "2"
	green   style = "32"
	cyan    style = "36"
	yellow  style = "33"
	red     style = "31"
)

func (s style) of(text string) string {
	if s == "" || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[m"
}

// Columns are counted as by a terminal that ignores grapheme clusters. On other terminals a composed emoji can only be narrower.

// pad fills a text with spaces up to a number of columns.
func pad(s string, columns int) string {
	return s + strings.Repeat(" ", max(0, columns-ansi.StringWidthWc(s)))
}

// fit shortens a line to a number of columns. It leaves out a wide character that would be cut in half.
func fit(s string, columns int) string { return ansi.TruncateWc(s, columns, "…") }

// flow puts pieces side by side, and begins a new line where the next piece does not fit.
func flow(pieces []string, columns int) []string {
	var lines []string
	line := ""
	for _, p := range pieces {
		switch {
		case p == "":
		case line == "":
			line = p
		case ansi.StringWidthWc(line)+3+ansi.StringWidthWc(p) <= columns:
			line += "   " + p
		default:
			lines = append(lines, line)
			line = p
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// tokens writes the tokens that model calls have used. It returns "" if there were no calls, and a dash if the number is unknown.
func tokens(u progress.Usage) string {
	switch {
	case u.Calls == 0 && u.Tokens() == 0:
		return ""
	case u.Tokens() == 0:
		return "— tok"
	case u.Estimated:
		return "~" + brief.Whole(u.Tokens()) + " tok"
	}
	return brief.Whole(u.Tokens()) + " tok"
}

// usageText is like tokens, but returns "" in place of a dash.
func usageText(u progress.Usage) string {
	if u.Tokens() == 0 {
		return ""
	}
	return tokens(u)
}

var blocks = []rune("▁▂▃▄▅▆▇█")

// curve draws a bar for each score. If there is no room for all, it draws the last ones.
func curve(scores []float64, columns int) string {
	if len(scores) < 2 {
		return ""
	}
	low, high := scores[0], scores[0]
	for _, s := range scores {
		low, high = min(low, s), max(high, s)
	}
	out, used := "", 0
	for i := len(scores) - 1; i >= 0; i-- {
		bar := blocks[0]
		if high > low {
			bar = blocks[int((scores[i]-low)/(high-low)*float64(len(blocks)-1)+0.5)]
		}
		piece := brief.Score(scores[i]) + " " + string(bar)
		w := ansi.StringWidthWc(piece) + 1
		if used+w > columns {
			break
		}
		out, used = " "+piece+out, used+w
	}
	return out
}
