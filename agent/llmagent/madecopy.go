// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"unsafe"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/values/deep"
)

// madeCopy is a copy of a content, with the data to detect a change.
type madeCopy struct {
	of, copy *genai.Content
	role     string
	parts    []madePart
}

// free is preallocated memory for copies. Copies that are next to each other in memory are faster to compare.
type free struct {
	contents []genai.Content
	list     []*genai.Part
	parts    []madePart
	used     int
}

// take returns n elements of free. If free has fewer, take allocates new ones, with ahead more than needed.
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
	ahead := min(f.used, 63) // short histories need few copies
	f.used++
	m := madeCopy{of: of, role: of.Role, copy: &take(&f.contents, 1, ahead)[0], parts: take(&f.parts, n, ahead)}
	m.copy.Role, m.copy.Parts = of.Role, take(&f.list, n, ahead)
	for i, p := range of.Parts {
		m.copy.Parts[i] = m.parts[i].make(p)
	}
	return m
}

// countUnchanged returns how many contents at the beginning are unchanged copies, in made, of the
// contents in list. With every request it compares everything that a callback can reach: for a text
// the fields of two structs, in less than 10 ns.
func countUnchanged(made []madeCopy, theirs, list []*genai.Content) (n int) {
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
			case p.of != nil:
				if part != &p.part || !samePart(part, p.of) {
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
	return countUnchanged([]madeCopy{*m}, []*genai.Content{m.copy}, []*genai.Content{m.of}) == 1
}

// sameText reports whether two strings share their bytes, as an unchanged text does. This is faster than comparing the
// bytes.
func sameText(a, b string) bool {
	return len(a) == len(b) && unsafe.StringData(a) == unsafe.StringData(b)
}

// madePart is a copy of a part, with the data to detect a change. It is small, because there are many.
type madePart struct {
	part genai.Part
	text string
	of   *genai.Part // nil if the part is a text and nothing else
}

// make copies a part, which is not nil, into m.
func (m *madePart) make(of *genai.Part) *genai.Part {
	if isText(of) && !of.Thought {
		m.part, m.text = *of, of.Text
	} else {
		m.part, m.of = deep.Copy(*of), of
	}
	return &m.part
}

// isText reports whether a part is nothing but text.
func isText(p *genai.Part) bool {
	return p.FunctionCall == nil && p.FunctionResponse == nil && p.ThoughtSignature == nil && !hasMore(p)
}

// hasMore reports whether a part has something besides text, a call and an answer.
func hasMore(p *genai.Part) bool {
	return p.MediaResolution != nil || p.CodeExecutionResult != nil || p.ExecutableCode != nil || p.FileData != nil ||
		p.InlineData != nil || p.VideoMetadata != nil || p.ToolCall != nil || p.ToolResponse != nil ||
		p.PartMetadata != nil || p.AudioTranscription != nil || p.MediaProcessing != "" || p.SpeechMetadata != nil
}

// samePart reports whether a copy of a part equals the part. It allocates nothing for texts, calls and answers, which
// are the most frequent parts.
func samePart(p, of *genai.Part) bool {
	if isRare(p) || isRare(of) {
		return reflect.DeepEqual(p, of)
	}
	call, answer := p.FunctionCall, p.FunctionResponse
	if (call == nil) != (of.FunctionCall == nil) || (answer == nil) != (of.FunctionResponse == nil) {
		return false
	}
	if was := of.FunctionCall; call != nil && (call.ID != was.ID || call.Name != was.Name || !sameValue(call.Args, was.Args)) {
		return false
	}
	if was := of.FunctionResponse; answer != nil && (answer.ID != was.ID || answer.Name != was.Name ||
		answer.Scheduling != was.Scheduling || !sameValue(answer.Response, was.Response)) {
		return false
	}
	return p.Text == of.Text && p.Thought == of.Thought && bytes.Equal(p.ThoughtSignature, of.ThoughtSignature)
}

// isRare reports whether a part has fields that samePart does not compare itself.
func isRare(p *genai.Part) bool {
	call, answer := p.FunctionCall, p.FunctionResponse
	return hasMore(p) || call != nil && (call.PartialArgs != nil || call.WillContinue != nil) ||
		answer != nil && (answer.Parts != nil || answer.WillContinue != nil)
}

// sameValue reports whether two values of arguments or results are equal.
func sameValue(a, b any) bool {
	switch a := a.(type) {
	case nil, bool, string, float64, json.Number, int, int64:
		return a == b
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) || (a == nil) != (b == nil) {
			return false
		}
		for key, v := range a {
			if other, ok := b[key]; !ok || !sameValue(v, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && (a == nil) == (b == nil) && slices.EqualFunc(a, b, sameValue)
	}
	return reflect.DeepEqual(a, b)
}
