// SPDX-License-Identifier: Apache-2.0

//go:build unix

package tui_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// screen is what a terminal shows. It knows what this program may send, and notes
// whatever else it is sent.
type screen struct {
	columns, lines  int
	cells           [][]string // "" is the right half of a wide character
	x, y            int
	hidden, pasting bool
	rest            []byte
	unknown         []string
}

func newScreen(columns, lines int) *screen {
	s := new(screen)
	s.resize(columns, lines)
	return s
}

func (s *screen) resize(columns, lines int) {
	for s.y >= lines { // the cursor stays in sight
		s.cells, s.y = s.cells[1:], s.y-1
	}
	cells := make([][]string, lines)
	for y := range cells {
		cells[y] = blank(columns)
		if y < len(s.cells) {
			copy(cells[y], s.cells[y])
		}
	}
	s.cells, s.columns, s.lines, s.x = cells, columns, lines, min(s.x, columns-1)
}

func blank(n int) []string {
	line := make([]string, n)
	for i := range line {
		line[i] = " "
	}
	return line
}

func (s *screen) text() string {
	var b strings.Builder
	for _, line := range s.cells {
		b.WriteString(strings.TrimRight(strings.Join(line, ""), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func (s *screen) write(b []byte) {
	b = append(s.rest, b...)
	for len(b) > 0 {
		n := s.next(b)
		if n == 0 {
			break
		}
		b = b[n:]
	}
	s.rest = bytes.Clone(b)
}

// next does the first thing in b, and returns its length; 0 if there is more to
// come of it.
func (s *screen) next(b []byte) int {
	switch c := b[0]; c {
	case '\r':
		s.x = 0
	case '\n':
		s.feed()
	case '\b':
		s.x = max(0, s.x-1)
	case '\t':
		s.x = min(s.columns-1, s.x/8*8+8)
	case 0x1b:
		return s.escape(b)
	default:
		if !utf8.FullRune(b) {
			return 0
		}
		r, n := utf8.DecodeRune(b)
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == utf8.RuneError && n == 1 {
			s.unknown = append(s.unknown, string(b[:n]))
			return n
		}
		s.put(string(r))
		return n
	}
	return 1
}

func (s *screen) feed() {
	if s.y++; s.y == s.lines {
		s.y--
		s.cells = append(s.cells[1:], blank(s.columns))
	}
}

func (s *screen) put(char string) {
	w := ansi.StringWidthWc(char)
	if w == 0 {
		if s.x > 0 {
			s.cells[s.y][s.x-1] += char
		}
		return
	}
	if s.x+w > s.columns {
		s.x = 0
		s.feed()
	}
	s.cells[s.y][s.x] = char
	for i := 1; i < w; i++ {
		s.cells[s.y][s.x+i] = ""
	}
	s.x += w
}

// escape does a control sequence.
func (s *screen) escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	if b[1] == 'M' && s.y > 0 {
		s.y--
		return 2
	}
	if b[1] != '[' {
		s.unknown = append(s.unknown, string(b[:2]))
		return 2
	}
	end := bytes.IndexFunc(b[2:], func(r rune) bool { return r >= '@' && r <= '~' })
	if end < 0 {
		return 0
	}
	seq := string(b[2 : 2+end+1])
	s.control(seq[:len(seq)-1], seq[len(seq)-1])
	return 2 + end + 1
}

func (s *screen) control(params string, final byte) {
	n := 1
	if v, err := strconv.Atoi(strings.SplitN(params, ";", 2)[0]); err == nil {
		n = v
	}
	at := min(s.x, s.columns-1)
	line := s.cells[s.y]
	switch {
	case final == 'm' && !strings.HasPrefix(params, ">"):
	case params == "?25" && (final == 'h' || final == 'l'):
		s.hidden = final == 'l'
	case params == "?2004" && (final == 'h' || final == 'l'):
		s.pasting = final == 'h'
	case strings.HasSuffix(params, "$") && final == 'p', // can it do this?
		strings.HasPrefix(params, ">") && final == 'm', // how keys are told
		strings.ContainsAny(params, "<=>?") && final == 'u' || params == "" && final == 'u',
		params == "?5" && final == 'W', // tab stops
		params == "?2026" || params == "?2027":
	case final == 'A':
		s.y = max(0, s.y-n)
	case final == 'B':
		s.y = min(s.lines-1, s.y+n)
	case final == 'C':
		s.x = min(s.columns-1, s.x+n)
	case final == 'D':
		s.x = max(0, at-n)
	case final == 'I': // tab stops are eight apart
		s.x = min(s.columns-1, (s.x/8+n)*8)
	case final == 'Z':
		s.x = max(0, ((at+7)/8-n)*8)
	case final == 'G' || final == '`':
		s.x = min(s.columns, n) - 1
	case final == 'J' && (params == "" || params == "0"):
		copy(line[at:], blank(s.columns))
		for y := s.y + 1; y < s.lines; y++ {
			s.cells[y] = blank(s.columns)
		}
	case final == 'K' && (params == "" || params == "0"):
		copy(line[at:], blank(s.columns))
	case final == 'K' && params == "1":
		copy(line[:at+1], blank(s.columns))
	case final == 'K' && params == "2":
		copy(line, blank(s.columns))
	case final == 'X':
		copy(line[at:min(s.columns, at+n)], blank(s.columns))
	case final == 'P':
		copy(line[at:], append(line[min(s.columns, at+n):], blank(n)...))
	case final == '@':
		copy(line[at:], append(blank(n), line[at:]...))
	case final == 'b' && s.x > 0:
		char := line[s.x-1]
		for range n {
			s.put(char)
		}
	case final == 'L':
		for y := s.lines - 1; y >= s.y; y-- {
			if y-n >= s.y {
				s.cells[y] = s.cells[y-n]
			} else {
				s.cells[y] = blank(s.columns)
			}
		}
	case final == 'M':
		rest := append(s.cells[min(s.lines, s.y+n):], make([][]string, 0)...)
		for y := s.y; y < s.lines; y++ {
			if len(rest) > 0 {
				s.cells[y], rest = rest[0], rest[1:]
			} else {
				s.cells[y] = blank(s.columns)
			}
		}
	default:
		s.unknown = append(s.unknown, "\x1b["+params+string(final))
	}
}

// The screen's tab stops are eight columns apart, and a backward tab from between
// two of them goes to the nearest.
func TestScreenTabs(t *testing.T) {
	s := newScreen(40, 4)
	for _, c := range []struct {
		sent string
		x    int
	}{{"\x1b[20G\x1b[Z", 16}, {"\x1b[17G\x1b[Z", 8}, {"\x1b[20G\x1b[3Z", 0}, {"\x1b[9Z", 0}, {"\r\x1b[2I", 16}, {"\x1b[9I", 39}} {
		if s.write([]byte(c.sent)); s.x != c.x {
			t.Errorf("%q: in column %d, not %d", c.sent, s.x, c.x)
		}
	}
	s.write([]byte("\x1b[Hx"))
	if got := s.unknown; len(got) != 1 || got[0] != "\x1b[H" {
		t.Errorf("unknown: %q", got)
	}
}
