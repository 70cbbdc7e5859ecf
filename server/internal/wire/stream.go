// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"maps"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/refrain-dev/refrain/internal/credential"
	"github.com/refrain-dev/refrain/progress"
)

// Chunk is how many bytes are written at once.
const Chunk = 32 << 10

// Stream answers with one JSON object, value by value and without keys and passwords, so that of a large
// one only a value at a time is in memory as JSON.
type Stream struct {
	out *jsontext.Encoder
	err error // the first one; nothing is written behind it
}

// Streamed answers with an object, which fill writes. If that fails, the client sees that the end is
// missing.
func (x *Exchange) Streamed(w http.ResponseWriter, r *http.Request, fill func(*Stream)) {
	w.Header().Set("Content-Type", "application/json")
	t := &Stream{out: jsontext.NewEncoder(w, jsontext.PreserveRawStrings(true), jsontext.AllowDuplicateNames(true))}
	t.inside(jsontext.BeginObject, fill, jsontext.EndObject)
	if t.err != nil {
		x.Log.Warn("an answer was cut off", "path", credential.Masked(r.URL.Path), "error", credential.Masked(t.err.Error()))
		panic(http.ErrAbortHandler)
	}
}

// State writes a state as a member, key by key.
func (t *Stream) State(state map[string]any) {
	t.Item("state")
	t.inside(jsontext.BeginObject, func(t *Stream) {
		for _, key := range slices.Sorted(maps.Keys(state)) {
			t.Member(key, state[key])
		}
	}, jsontext.EndObject)
}

// Member writes a member of an object.
func (t *Stream) Member(name string, value any) {
	t.Item(name)
	t.Item(value)
}

// List writes a member that is a list, whose items fill writes.
func (t *Stream) List(name string, fill func(*Stream)) {
	t.Item(name)
	t.inside(jsontext.BeginArray, fill, jsontext.EndArray)
}

// Item writes an element of a list.
func (t *Stream) Item(value any) {
	text, err := progress.MarshalJSON(value)
	plain := string(text)
	if masked := credential.Masked(plain); masked != plain {
		text = []byte(masked)
	}
	if t.Fail(err); t.err == nil {
		t.err = t.out.WriteValue(text)
	}
}

func (t *Stream) inside(opening jsontext.Token, fill func(*Stream), closing jsontext.Token) {
	t.token(opening)
	fill(t)
	t.token(closing)
}

func (t *Stream) token(one jsontext.Token) {
	if t.err == nil {
		t.err = t.out.WriteToken(one)
	}
}

// Fail ends the answer, whose end is then missing.
func (t *Stream) Fail(err error) {
	if t.err == nil {
		t.err = err
	}
}
