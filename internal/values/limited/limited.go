// SPDX-License-Identifier: Apache-2.0

// Package limited keeps a part of the output of a program, limited in size. A [Head] keeps the beginning, and a
// [Tail] keeps the end.
//
//	stderr := &limited.Tail{Most: 2000}
//	cmd.Stderr = stderr
package limited

import (
	"sync"
	"unicode/utf8"
)

// Head keeps the beginning of what is written to it. Only one goroutine may write at a time.
type Head struct {
	Most int64 // bytes to keep
	// Full returns the error of a Write that exceeds Most; the bytes that fit are kept first. If Full is nil, Write
	// drops the rest and does not fail.
	Full func() error

	kept []byte
	cut  bool
}

// Write keeps the bytes that fit.
func (h *Head) Write(p []byte) (int, error) {
	n := min(int64(len(p)), max(0, h.Most-int64(len(h.kept))))
	h.kept = append(h.kept, p[:n]...)
	if n == int64(len(p)) {
		return len(p), nil
	}
	if h.cut = true; h.Full != nil {
		return int(n), h.Full()
	}
	return len(p), nil
}

// Cut reports whether bytes were dropped because they did not fit.
func (h *Head) Cut() bool { return h.cut }

// String returns the kept bytes unchanged, so that the last character may be incomplete.
func (h *Head) String() string { return string(h.kept) }

// Tail keeps the end of what is written to it. Its methods may be called by several goroutines.
type Tail struct {
	Most int64 // bytes to keep; less than 0 keeps nothing, as 0 does

	mu   sync.Mutex
	kept []byte // up to twice as much, so that bytes are seldom moved
	cut  bool
}

// Write keeps the end of the bytes. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept = append(t.kept, p...); int64(len(t.kept)) > 2*t.most() {
		t.kept, t.cut = append(t.kept[:0], t.kept[int64(len(t.kept))-t.most():]...), true
	}
	return len(p), nil
}

func (t *Tail) most() int64 { return max(0, t.Most) }

// Reset drops the kept bytes.
func (t *Tail) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept, t.cut = t.kept[:0], false
}

// String returns the kept end, which begins with a complete character.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	from := max(0, len(t.kept)-int(t.most()))
	for part := 1; (from > 0 || t.cut) && part < utf8.UTFMax && from < len(t.kept) && !utf8.RuneStart(t.kept[from]); part++ {
		from++
	}
	return string(t.kept[from:])
}
