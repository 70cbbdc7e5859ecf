// SPDX-License-Identifier: Apache-2.0

// Package limited keeps a part of what a program writes, of a size that is known before: the beginning in a [Head], the end in
// a [Tail].
//
//	stderr := &limited.Tail{Most: 2000}
//	cmd.Stderr = stderr
package limited

import (
	"sync"
	"unicode/utf8"
)

// Head keeps the beginning of what is written to it. It is for one writer at a time.
type Head struct {
	Most int64 // bytes to keep
	// Full returns the error of a Write with more than fits, after the bytes that fit are kept. With nil the rest is
	// dropped, and Write does not fail.
	Full func() error

	kept []byte
	cut  bool
}

// Write keeps what fits.
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

// Cut reports whether more was written than fits.
func (h *Head) Cut() bool { return h.cut }

// String returns what is kept, byte for byte: the last character may be cut in two.
func (h *Head) String() string { return string(h.kept) }

// Tail keeps the end of what is written to it. Its methods may be called by several goroutines.
type Tail struct {
	Most int64 // bytes to keep; less than 0 keeps nothing, as 0 does

	mu   sync.Mutex
	kept []byte // at most twice as much, so that it is seldom moved
	cut  bool
}

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	most := max(0, t.Most)
	if t.kept = append(t.kept, p...); int64(len(t.kept)) > 2*most {
		t.kept, t.cut = append(t.kept[:0], t.kept[int64(len(t.kept))-most:]...), true
	}
	return len(p), nil
}

// Reset forgets what was written.
func (t *Tail) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept, t.cut = t.kept[:0], false
}

// String returns the end, which begins with a whole character.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	from := max(0, len(t.kept)-int(max(0, t.Most)))
	for part := 1; (from > 0 || t.cut) && part < utf8.UTFMax && from < len(t.kept) && !utf8.RuneStart(t.kept[from]); part++ {
		from++
	}
	return string(t.kept[from:])
}
