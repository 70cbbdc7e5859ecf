// SPDX-License-Identifier: Apache-2.0

package term

import (
	"io"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/internal/brief"
)

// readable is where text becomes terminal text: what is written to it goes on without
// what would command a terminal, which are all control characters but line breaks and
// tabs, and what turns the direction of a text. Both outputs of every command are
// readable, so that nobody has to think of it where a text is printed.
type readable struct {
	to     io.Writer
	rename func(string) string // nil: leaves the name of the command as it is

	mu   sync.Mutex
	held []byte // the beginning of a character
}

// Readable returns a writer that passes on to w what is safe to show on a terminal.
func Readable(w io.Writer) io.Writer {
	if _, is := w.(*readable); is || w == nil {
		return w
	}
	return &readable{to: w}
}

// Renamed returns Readable(w) with rename applied to each text: messages name the command refrain, and this is the one place
// where it gets the name of the program.
func Renamed(w io.Writer, rename func(string) string) io.Writer {
	if r, is := w.(*readable); is {
		w = r.to
	}
	return &readable{to: w, rename: rename}
}

// Write reports all of b as written if what is left of it was.
func (r *readable) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := append(r.held, b...)
	r.held = nil
	if n := unfinished(text); n > 0 {
		r.held = append(r.held, text[len(text)-n:]...)
		text = text[:len(text)-n]
	}
	clean := strings.Map(func(c rune) rune {
		if brief.IsCommand(c) {
			return -1
		}
		return c
	}, string(text)) // a byte that is no text becomes U+FFFD
	if clean == "" {
		return len(b), nil
	}
	if r.rename != nil {
		clean = r.rename(clean)
	}
	if _, err := io.WriteString(r.to, clean); err != nil {
		return 0, err
	}
	return len(b), nil
}

// unfinished is how many bytes at the end of a text may be the beginning of a
// character.
func unfinished(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if c := text[len(text)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(text[len(text)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// Exactly is w for what another program reads, such as an answer or a file: byte for
// byte, unless w is a terminal.
func Exactly(w io.Writer) io.Writer {
	if r, is := w.(*readable); is && !IsTerminal(r.to) {
		return r.to
	}
	return w
}

// fileOf is the file that is written to in the end; nil if it is none.
func fileOf(w any) *os.File {
	if r, is := w.(*readable); is {
		w = r.to
	}
	f, _ := w.(*os.File)
	return f
}

// IsTerminal reports whether what is written to w is shown by a terminal.
func IsTerminal(w io.Writer) bool {
	f := fileOf(w)
	if f == nil {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
