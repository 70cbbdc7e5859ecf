// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/seal/statekey"
	"github.com/refrain-dev/refrain/session"
)

// A row stores the long texts of its event in the column texts, and not in the event's JSON. The JSON has only the
// beginning of each long text. Equal texts are stored once, such as an output that is also the value of a state key.
// A reader that does not need the long texts does not read the column.

// longText is the number of bytes from which on a text is stored in the column texts.
const longText = 512

// place says where in an event a text belongs, and where it is in the column: Len bytes from From on, after the first
// line.
type place struct {
	In   string `json:"in"`             // one of the constants below, such as inText
	Part int    `json:"part,omitempty"` // index in the content
	Key  string `json:"key,omitempty"`
	From int    `json:"from"`
	Len  int    `json:"len"`
}

const (
	inText     = "text"     // of a part
	inData     = "data"     // the part's inline data
	inArgs     = "args"     // a string in the arguments of its function call
	inResponse = "response" // a string in its function response
	inState    = "state"    // a string in the state delta
	inJSON     = "json"     // another value in the state delta, as JSON
)

// long reports whether a text is stored in the column texts. A text that is not UTF-8 stays in the JSON, which replaces
// its invalid bytes; the column would keep them.
func long(s string) bool { return len(s) >= longText && utf8.ValidString(s) }

// longTexts is the list of the long texts of an event.
type longTexts struct {
	places []place
	texts  []string // the text of each place
}

// pull replaces the long texts in row by their beginnings, and returns the value of the column texts; nil if there are
// no long texts. row is a copy of the event, and pull does not change what the copy shares with the event. state is the
// event's delta as JSON.
func pull(row *session.Event, state []value) ([]byte, error) {
	var p longTexts
	row.Content = p.content(row.Content)
	row.Actions.StateDelta = p.state(row.Actions.StateDelta, state)
	if len(p.places) == 0 {
		return nil, nil
	}
	return p.join()
}

// cut adds a text to the list and returns its beginning, which takes its place in the JSON.
func (p *longTexts) cut(at place, text string) string {
	p.places, p.texts = append(p.places, at), append(p.texts, text)
	return session.Excerpt(text)
}

// content replaces the long texts of a content by their beginnings. It returns c itself if there are none, else a copy.
func (p *longTexts) content(c *genai.Content) *genai.Content {
	if c == nil {
		return nil
	}
	var parts []*genai.Part // nil while no part has changed
	for i, part := range c.Parts {
		before := len(p.places)
		short := p.part(i, part)
		if len(p.places) == before {
			continue
		}
		if parts == nil {
			parts = slices.Clone(c.Parts)
		}
		parts[i] = short
	}
	if parts == nil {
		return c
	}
	return &genai.Content{Role: c.Role, Parts: parts}
}

// part returns a part with the beginnings of its long texts, and without long data. It does not change the original.
func (p *longTexts) part(i int, part *genai.Part) *genai.Part {
	if part == nil || len(part.Text) < longText && part.InlineData == nil && part.FunctionCall == nil &&
		part.FunctionResponse == nil {
		return part
	}
	short := *part
	if long(part.Text) {
		short.Text = p.cut(place{In: inText, Part: i}, part.Text)
	}
	if d := part.InlineData; d != nil && len(d.Data) >= longText {
		blob := *d
		p.places, p.texts = append(p.places, place{In: inData, Part: i}), append(p.texts, string(d.Data))
		blob.Data, short.InlineData = nil, &blob
	}
	if part.FunctionCall != nil {
		call := *part.FunctionCall
		call.Args, short.FunctionCall = p.strings(place{In: inArgs, Part: i}, call.Args), &call
	}
	if part.FunctionResponse != nil {
		resp := *part.FunctionResponse
		resp.Response, short.FunctionResponse = p.strings(place{In: inResponse, Part: i}, resp.Response), &resp
	}
	return &short
}

// strings replaces the long strings in a map by their beginnings. It returns m itself if there are none, else a copy.
func (p *longTexts) strings(at place, m map[string]any) map[string]any {
	var keys []string
	for key, val := range m {
		if s, ok := val.(string); ok && long(s) && !(at.In == inState && statekey.OfLog(key)) {
			keys = append(keys, key)
		}
	}
	if keys == nil {
		return m
	}
	short := maps.Clone(m)
	slices.Sort(keys)
	for _, at.Key = range keys {
		short[at.Key] = p.cut(at, m[at.Key].(string))
	}
	return short
}

// state replaces the long values in a state delta by their beginnings. It returns delta itself if there are none, else a copy.
func (p *longTexts) state(delta map[string]any, values []value) map[string]any {
	before := len(p.places)
	short := p.strings(place{In: inState}, delta)
	for _, v := range values {
		if _, isText := delta[v.key].(string); isText || len(v.json) < longText {
			continue
		}
		if len(p.places) == before {
			short = maps.Clone(delta)
		}
		short[v.key] = p.cut(place{In: inJSON, Key: v.key}, p.equalText(string(v.json)))
	}
	return short
}

// equalText returns a long text of the event that is JSON for the same value as data, so that the column stores both once. A
// program often writes its output both as text and as a state key. equalText returns data itself if there is no such text.
func (p *longTexts) equalText(data string) string {
	var val any
	for i, at := range p.places {
		if at.In != inText {
			continue
		}
		text := strings.TrimRight(p.texts[i], "\r\n")
		if val == nil {
			if v, err := session.PlainJSON([]byte(data)); err == nil {
				val = v
			}
		}
		if v, err := session.PlainJSON([]byte(text)); err == nil && reflect.DeepEqual(v, val) {
			return text
		}
	}
	return data
}

// join returns the value of the column: the places as JSON on one line, and then each text that is not a part of
// another text.
func (p *longTexts) join() ([]byte, error) {
	order := make([]int, len(p.texts)) // the longest first
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(p.texts[b]), len(p.texts[a])) })
	var kept []int
	size := 0
	for _, i := range order {
		at := &p.places[i]
		at.From, at.Len = size, len(p.texts[i])
		in := slices.IndexFunc(kept, func(k int) bool { return strings.Contains(p.texts[k], p.texts[i]) })
		if in >= 0 {
			at.From = p.places[kept[in]].From + strings.Index(p.texts[kept[in]], p.texts[i])
			continue
		}
		kept, size = append(kept, i), size+at.Len
	}
	head, err := json.Marshal(p.places)
	if err != nil {
		return nil, err
	}
	all := make([]byte, 0, len(head)+1+size)
	all = append(append(all, head...), '\n')
	for _, i := range kept {
		all = append(all, p.texts[i]...)
	}
	return all, nil
}

// put restores the long texts of an event that was read from its JSON. texts is the value of the column.
func put(ev *session.Event, texts []byte) error {
	head, all, ok := strings.Cut(string(texts), "\n") // a string, so that the event's texts share its memory
	var places []place
	if err := json.Unmarshal([]byte(head), &places); err != nil || !ok {
		return fmt.Errorf("its texts cannot be read: %w", cmp.Or(err, errors.New("there are none")))
	}
	for _, at := range places {
		if at.From < 0 || at.Len < 0 || at.From > len(all)-at.Len {
			return fmt.Errorf("its text %+v is missing", at)
		}
		if err := at.put(ev, all[at.From:at.From+at.Len]); err != nil {
			return err
		}
	}
	return nil
}

// put sets the text at its place in the event.
func (at place) put(ev *session.Event, text string) (err error) {
	delta := ev.Actions.StateDelta
	switch at.In {
	case inState, inJSON:
		if _, ok := delta[at.Key]; !ok {
			return at.lostError()
		}
		if delta[at.Key] = any(text); at.In == inJSON {
			delta[at.Key], err = session.PlainJSON([]byte(text))
		}
		return err
	}
	if ev.Content == nil || at.Part < 0 || at.Part >= len(ev.Content.Parts) || ev.Content.Parts[at.Part] == nil {
		return at.lostError()
	}
	switch part := ev.Content.Parts[at.Part]; {
	case at.In == inText:
		part.Text = text
	case at.In == inData && part.InlineData != nil:
		part.InlineData.Data = []byte(text)
	case at.In == inArgs && part.FunctionCall != nil && part.FunctionCall.Args != nil:
		part.FunctionCall.Args[at.Key] = text
	case at.In == inResponse && part.FunctionResponse != nil && part.FunctionResponse.Response != nil:
		part.FunctionResponse.Response[at.Key] = text
	default:
		return at.lostError()
	}
	return nil
}

func (at place) lostError() error {
	return fmt.Errorf("it has no place for the text %+v beside it", at)
}
