// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/refrain-dev/refrain/progress"
)

// style is how a piece of text looks: the parameters of a terminal's SGR
// sequence. The program leaves out what the terminal, or NO_COLOR, does not want.
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

// Columns are counted as a terminal does that knows nothing of grapheme clusters:
// elsewhere an emoji that is put together can only be narrower than was thought.

// pad fills a text up to a number of columns.
func pad(s string, columns int) string {
	return s + strings.Repeat(" ", max(0, columns-ansi.StringWidthWc(s)))
}

// fit cuts a line to the window. A wide character that would be cut in half is
// left out.
func fit(s string, columns int) string { return ansi.TruncateWc(s, columns, "…") }

// flow puts pieces side by side, and onto a new line where they do not fit.
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

// number writes a score: with four significant digits, a large one without
// decimals.
func number(f float64) string {
	switch a := math.Abs(f); {
	case f == math.Trunc(f) && a < 1<<53:
		return strconv.FormatFloat(f, 'f', -1, 64)
	case a >= 1000 && a < 1e9:
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'g', 4, 64)
}

func signed(f float64) string {
	if f < 0 {
		return number(f)
	}
	return "+" + number(f)
}

// tokens is what model calls have used; "" if there were none, and a dash if
// nobody knows.
func tokens(u progress.Usage) string {
	switch {
	case u.Calls == 0 && u.Tokens() == 0:
		return ""
	case u.Tokens() == 0:
		return "— tok"
	case u.Estimated:
		return "~" + count(u.Tokens()) + " tok"
	}
	return count(u.Tokens()) + " tok"
}

// known is tokens without a dash.
func known(u progress.Usage) string {
	if u.Tokens() == 0 {
		return ""
	}
	return tokens(u)
}

// count is a number in three digits or so: 950, 2.0k, 26.4k, 1.3M.
func count(n int64) string {
	switch f := float64(n); {
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 999_950:
		return fmt.Sprintf("%.1fk", f/1e3)
	default:
		return fmt.Sprintf("%.1fM", f/1e6)
	}
}

// money is an amount in the currency of the price list, whichever that is.
func money(f float64) string {
	if f != 0 && math.Abs(f) < 0.1 {
		return strconv.FormatFloat(f, 'f', 4, 64)
	}
	return strconv.FormatFloat(f, 'f', 2, 64)
}

var blocks = []rune("▁▂▃▄▅▆▇█")

// curve is the scores with a bar each, the last of them if there is no room for
// all.
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
		piece := number(scores[i]) + " " + string(bar)
		w := ansi.StringWidthWc(piece) + 1
		if used+w > columns {
			break
		}
		out, used = " "+piece+out, used+w
	}
	return out
}
