// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"encoding/json"
	"reflect"
	"unsafe"

	"google.golang.org/genai"
)

// madeCopy is a copy of a content, with the data to detect a change.
type madeCopy struct {
	of, copy *genai.Content
	role     string
	parts    []madePart
}

// free is memory for copies: to look at them is quick if they lie one behind the other.
type free struct {
	contents []genai.Content
	list     []*genai.Part
	parts    []madePart
	used     int
}

func take[T any](free *[]T, n, ahead int) []T {
	if len(*free) < n {
		*free = make([]T, n+ahead)
	}
	taken := (*free)[:n:n]
	*free = (*free)[n:]
	return taken
}

// makeCopy copies a content of a history, which is not nil.
func (f *free) makeCopy(of *genai.Content) madeCopy {
	n := len(of.Parts)
	ahead := min(f.used, 63) // short histories need little
	f.used++
	m := madeCopy{of: of, role: of.Role, copy: &take(&f.contents, 1, ahead)[0], parts: take(&f.parts, n, ahead)}
	m.copy.Role, m.copy.Parts = of.Role, take(&f.list, n, ahead)
	for i, p := range of.Parts {
		m.copy.Parts[i] = m.parts[i].make(p)
	}
	return m
}

// unchanged returns how many contents at the beginning are unchanged copies, in made, of the
// contents in list. With every request it compares everything that a callback can reach: for a text
// the fields of two structs, in less than 10 ns.
func unchanged(made []madeCopy, theirs, list []*genai.Content) (n int) {
	most := min(len(made), len(theirs), len(list))
	made, theirs, list = made[:most], theirs[:most], list[:most]
	for i := range made {
		m := &made[i]
		c := m.copy
		parts := m.parts
		if c != theirs[i] || m.of != list[i] || len(c.Parts) != len(parts) || !sameText(c.Role, m.role) {
			return i
		}
		for j, part := range c.Parts {
			switch p := &parts[j]; {
			case p.more != nil:
				if part != p.copy() || !p.more.unchanged(part) {
					return i
				}
			case part != &p.part || !sameText(part.Text, p.text) || part.Thought || !isText(part):
				return i
			}
		}
	}
	return most
}

func (m *madeCopy) unchanged() bool {
	return unchanged([]madeCopy{*m}, []*genai.Content{m.copy}, []*genai.Content{m.of}) == 1
}

// sameText reports whether two strings share their bytes, as an unchanged text does. To compare the
// contents takes longer.
func sameText(a, b string) bool {
	return len(a) == len(b) && unsafe.StringData(a) == unsafe.StringData(b)
}

// madePart is a copy of a part, likewise. There are many, so it is small.
type madePart struct {
	part genai.Part
	text string
	more *madeMore // nil if the part is a text and nothing else
}

// madeMore remembers a part that is not only a text.
type madeMore struct {
	of     *genai.Part
	kind   partKind
	values madeValue // the arguments or the result of a callPart
}

type partKind uint8

const (
	noPart   partKind = iota // nil
	textPart                 // nothing but text, a thought
	callPart                 // with a call or an answer besides
	anyPart                  // compared by reflection
)

// make copies a part into m.
func (m *madePart) make(of *genai.Part) *genai.Part {
	switch {
	case of == nil:
		m.more = new(madeMore)
		return nil
	case isText(of):
		m.part, m.text = *of, of.Text
		if of.Thought {
			m.more = &madeMore{of: of, kind: textPart}
		}
		return &m.part
	}
	m.part, m.more = *copyPart(of), &madeMore{of: of, kind: anyPart}
	if values, ok := valuesOf(of); ok {
		if v, ok := newMadeValue(values); ok {
			m.more.kind, m.more.values = callPart, v
		}
	}
	return &m.part
}

// copy returns the copy to hand out.
func (m *madePart) copy() *genai.Part {
	if m.more != nil && m.more.kind == noPart {
		return nil
	}
	return &m.part
}

// unchanged reports whether p, the copy, is as it was.
func (m *madeMore) unchanged(p *genai.Part) bool {
	switch m.kind {
	case textPart:
		return p.Text == m.of.Text && p.Thought == m.of.Thought && isText(p)
	case callPart:
		values, ok := valuesOf(p)
		return ok && p.Text == m.of.Text && p.Thought == m.of.Thought && m.sameCall(p) && m.values.is(values)
	case anyPart:
		return reflect.DeepEqual(p, m.of)
	}
	return true
}

// isText reports whether a part is nothing but text.
func isText(p *genai.Part) bool {
	return p.FunctionCall == nil && p.FunctionResponse == nil && p.ThoughtSignature == nil && !hasMore(p)
}

// valuesOf returns the arguments of a part with a call, or the result of a part with an answer. It
// returns false for other and for rare parts.
func valuesOf(p *genai.Part) (map[string]any, bool) {
	switch call, answer := p.FunctionCall, p.FunctionResponse; {
	case hasMore(p):
		return nil, false
	case call != nil && answer == nil:
		return call.Args, call.PartialArgs == nil && call.WillContinue == nil
	case call == nil && answer != nil:
		return answer.Response, answer.Parts == nil && answer.WillContinue == nil
	}
	return nil, false
}

// sameCall reports whether p, the copy of a callPart, is still about the same call.
func (m *madeMore) sameCall(p *genai.Part) bool {
	of := m.of
	if !sameBytes(p.ThoughtSignature, of.ThoughtSignature) {
		return false
	}
	if call := p.FunctionCall; call != nil {
		return of.FunctionCall != nil && call.ID == of.FunctionCall.ID && call.Name == of.FunctionCall.Name
	}
	answer, was := p.FunctionResponse, of.FunctionResponse
	return was != nil && answer.ID == was.ID && answer.Name == was.Name && answer.Scheduling == was.Scheduling
}

// hasMore reports whether a part has something besides text, a call and an answer.
func hasMore(p *genai.Part) bool {
	return p.MediaResolution != nil || p.CodeExecutionResult != nil || p.ExecutableCode != nil || p.FileData != nil ||
		p.InlineData != nil || p.VideoMetadata != nil || p.ToolCall != nil || p.ToolResponse != nil ||
		p.PartMetadata != nil || p.AudioTranscription != nil || p.MediaProcessing != "" || p.SpeechMetadata != nil
}

// sameBytes reports whether two slices are one.
func sameBytes(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 && (a == nil) == (b == nil) || len(a) > 0 && &a[0] == &b[0])
}

// madeValue is a JSON value as it was when a copy of it was made.
type madeValue struct {
	value any // of a scalar
	kind  valueKind
	none  bool        // a nil map or slice
	keys  []string    // of a map
	items []madeValue // of a map, in the order of keys, or of a slice
}

type valueKind uint8

const (
	aScalar valueKind = iota
	aMap
	aSlice
)

// newMadeValue returns false for a value that JSON does not have.
func newMadeValue(v any) (m madeValue, ok bool) {
	add := func(v any) bool {
		item, ok := newMadeValue(v)
		m.items = append(m.items, item)
		return ok
	}
	switch v := v.(type) {
	case nil, bool, string, float64, json.Number, int, int64:
		return madeValue{value: v}, true
	case map[string]any:
		m = madeValue{kind: aMap, none: v == nil}
		for key, v := range v {
			if m.keys = append(m.keys, key); !add(v) {
				return m, false
			}
		}
		return m, true
	case []any:
		m = madeValue{kind: aSlice, none: v == nil}
		for _, v := range v {
			if !add(v) {
				return m, false
			}
		}
		return m, true
	}
	return m, false
}

// is reports whether a value is as it was.
func (m *madeValue) is(v any) bool {
	switch m.kind {
	case aMap:
		v, ok := v.(map[string]any)
		if !ok || len(v) != len(m.keys) || (v == nil) != m.none {
			return false
		}
		for i, key := range m.keys {
			if v, ok := v[key]; !ok || !m.items[i].is(v) {
				return false
			}
		}
		return true
	case aSlice:
		v, ok := v.([]any)
		if !ok || len(v) != len(m.items) || (v == nil) != m.none {
			return false
		}
		for i := range v {
			if !m.items[i].is(v[i]) {
				return false
			}
		}
		return true
	}
	return v == m.value
}
