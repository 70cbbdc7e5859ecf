// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/refrain-dev/refrain/internal/credential"
	"github.com/refrain-dev/refrain/progress"
)

// stream answers with one JSON object, value by value and without keys and passwords, so that of a large
// one only a value at a time is in memory as JSON.
type stream struct {
	out  *bufio.Writer
	json *json.Encoder // writes to the stream
	more bool          // what is next stands behind a comma
	err  error         // the first one; nothing is written behind it
}

// streamed answers with an object, which fill writes. If that fails, the client sees that the end is
// missing.
func (s *Server) streamed(w http.ResponseWriter, r *http.Request, fill func(*stream)) {
	w.Header().Set("Content-Type", "application/json")
	t := &stream{out: bufio.NewWriterSize(w, chunk)}
	t.json = progress.NewJSON(t)
	t.inside("{", fill, "}\n")
	if t.err == nil {
		t.err = t.out.Flush()
	}
	if t.err != nil {
		s.cfg.Log.Warn("an answer was cut off", "path", credential.Masked(r.URL.Path), "error", credential.Masked(t.err.Error()))
		panic(http.ErrAbortHandler)
	}
}

// state writes a state as a member, key by key.
func (t *stream) state(state map[string]any) {
	t.members("state", "{", func(t *stream) {
		for _, key := range slices.Sorted(maps.Keys(state)) {
			t.member(key, state[key])
		}
	}, "}")
}

// member writes a member of an object.
func (t *stream) member(name string, value any) {
	t.name(name)
	t.value(value)
}

// members writes a member that is itself an object or a list, which fill writes.
func (t *stream) members(name, opening string, fill func(*stream), closing string) {
	t.name(name)
	t.inside(opening, fill, closing)
}

// item writes an element of a list.
func (t *stream) item(value any) {
	t.next()
	t.value(value)
}

func (t *stream) name(name string) {
	t.next()
	t.value(name)
	t.text(":")
}

func (t *stream) inside(opening string, fill func(*stream), closing string) {
	t.text(opening)
	t.more = false
	fill(t)
	t.text(closing)
	t.more = true
}

func (t *stream) next() {
	if t.more {
		t.text(",")
	}
	t.more = true
}

func (t *stream) value(value any) { t.fail(t.json.Encode(value)) }

// Write takes a value from the encoder, which writes it at once and with the line's end.
func (t *stream) Write(value []byte) (int, error) {
	t.text(credential.Masked(string(bytes.TrimSuffix(value, []byte("\n")))))
	return len(value), t.err
}

func (t *stream) text(text string) {
	if t.err == nil {
		_, t.err = t.out.WriteString(text)
	}
}

func (t *stream) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}
