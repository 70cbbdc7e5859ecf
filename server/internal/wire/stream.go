// SPDX-License-Identifier: Apache-2.0

package wire

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

// Chunk is how many bytes are written at once.
const Chunk = 32 << 10

// Stream answers with one JSON object, value by value and without keys and passwords, so that of a large
// one only a value at a time is in memory as JSON.
type Stream struct {
	out  *bufio.Writer
	json *json.Encoder // writes to the stream
	more bool          // what is next stands behind a comma
	err  error         // the first one; nothing is written behind it
}

// Streamed answers with an object, which fill writes. If that fails, the client sees that the end is
// missing.
func (x *Exchange) Streamed(w http.ResponseWriter, r *http.Request, fill func(*Stream)) {
	w.Header().Set("Content-Type", "application/json")
	t := &Stream{out: bufio.NewWriterSize(w, Chunk)}
	t.json = progress.NewJSON(t)
	t.inside("{", fill, "}\n")
	if t.err == nil {
		t.err = t.out.Flush()
	}
	if t.err != nil {
		x.Log.Warn("an answer was cut off", "path", credential.Masked(r.URL.Path), "error", credential.Masked(t.err.Error()))
		panic(http.ErrAbortHandler)
	}
}

// State writes a state as a member, key by key.
func (t *Stream) State(state map[string]any) {
	t.Members("state", "{", func(t *Stream) {
		for _, key := range slices.Sorted(maps.Keys(state)) {
			t.Member(key, state[key])
		}
	}, "}")
}

// Member writes a member of an object.
func (t *Stream) Member(name string, value any) {
	t.name(name)
	t.value(value)
}

// Members writes a member that is itself an object or a list, which fill writes.
func (t *Stream) Members(name, opening string, fill func(*Stream), closing string) {
	t.name(name)
	t.inside(opening, fill, closing)
}

// Item writes an element of a list.
func (t *Stream) Item(value any) {
	t.next()
	t.value(value)
}

func (t *Stream) name(name string) {
	t.next()
	t.value(name)
	t.text(":")
}

func (t *Stream) inside(opening string, fill func(*Stream), closing string) {
	t.text(opening)
	t.more = false
	fill(t)
	t.text(closing)
	t.more = true
}

func (t *Stream) next() {
	if t.more {
		t.text(",")
	}
	t.more = true
}

func (t *Stream) value(value any) { t.Fail(t.json.Encode(value)) }

// Write takes a value from the encoder, which writes it at once and with the line's end.
func (t *Stream) Write(value []byte) (int, error) {
	t.text(credential.Masked(string(bytes.TrimSuffix(value, []byte("\n")))))
	return len(value), t.err
}

func (t *Stream) text(text string) {
	if t.err == nil {
		_, t.err = t.out.WriteString(text)
	}
}

// Fail ends the answer, whose end is then missing.
func (t *Stream) Fail(err error) {
	if t.err == nil {
		t.err = err
	}
}
