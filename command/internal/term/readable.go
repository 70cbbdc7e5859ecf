// SPDX-License-Identifier: Apache-2.0

package term

import (
	"io"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

// readable removes control sequences from text for a terminal: all control characters except line breaks and tabs, and
// characters that change the direction of text. Every command wraps both of its outputs in a readable, so that code that prints
// text need not care.
type readable struct {
	to     io.Writer
	rename func(string) string // nil keeps the name of the command

	mu   sync.Mutex
	held []byte // the beginning of an incomplete character
}

// Readable returns a writer that passes to w only text that is safe to show on a terminal.
func Readable(w io.Writer) io.Writer {
	if _, is := w.(*readable); is || w == nil {
		return w
	}
	return &readable{to: w}
}

// Renamed returns Readable(w) with rename applied to each text. Messages name the command refrain; only Renamed replaces the
// name by that of the program.
func Renamed(w io.Writer, rename func(string) string) io.Writer {
	if r, is := w.(*readable); is {
		w = r.to
	}
	return &readable{to: w, rename: rename}
}

// Write reports that all of b was written if the filtered text was written.
func (r *readable) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := append(r.held, b...)
	r.held = nil
	if n := unfinishedBytes(text); n > 0 {
		r.held = append(r.held, text[len(text)-n:]...)
		text = text[:len(text)-n]
	}
	clean := strings.Map(func(c rune) rune {
		if brief.IsCommand(c) {
			return -1
		}
		return c
	}, string(text)) // an invalid byte becomes U+FFFD
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

// unfinishedBytes returns the number of bytes at the end of a text that may begin a character.
func unfinishedBytes(text []byte) int {
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

// Exactly returns w for output that another program reads, such as an answer or a file: unchanged bytes, unless w is a
// terminal.
func Exactly(w io.Writer) io.Writer {
	if r, is := w.(*readable); is && !IsTerminal(r.to) {
		return r.to
	}
	return w
}

// fileOf returns the file to which w writes; nil if there is none.
func fileOf(w any) *os.File {
	if r, is := w.(*readable); is {
		w = r.to
	}
	f, _ := w.(*os.File)
	return f
}

// IsTerminal reports whether w writes to a terminal.
func IsTerminal(w io.Writer) bool {
	f := fileOf(w)
	if f == nil {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
