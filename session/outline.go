// SPDX-License-Identifier: Apache-2.0

package session

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/session/mark"
)

// A text is long if it has longText bytes or more. In place of a long text, an outline has the first
// excerptText bytes.
const (
	longText    = 512
	excerptText = 100
)

// Excerpt returns the beginning of a text as it appears in an outline.
func Excerpt(text string) string {
	if len(text) < excerptText {
		return text
	}
	n := excerptText
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	b := make([]byte, 0, n+len("…"))
	return string(append(append(b, text[:n]...), "…"...)) // a copy, so that the excerpt does not keep the whole text in memory
}

// Outlined returns the event without its long texts. If the event has none, Outlined
// returns e itself, else a copy with [Event.Omitted] set. Use it to hold many events.
func (e *Event) Outlined() *Event {
	o := outliner{omitted: e.Omitted}
	content, delta := o.content(e.Content), o.values(e.Actions.StateDelta)
	if o.omitted == e.Omitted {
		return e
	}
	short := *e
	short.Content, short.Actions.StateDelta, short.Omitted = content, delta, o.omitted
	return &short
}

// outliner cuts long texts, and counts the bytes of the texts that it cuts.
type outliner struct{ omitted int64 }

func (o *outliner) text(s string) string {
	if len(s) < longText {
		return s
	}
	o.omitted += int64(len(s))
	return Excerpt(s)
}

// content cuts the long texts and data of a content. If there are none, it returns c itself, else a copy.
func (o *outliner) content(c *genai.Content) *genai.Content {
	if c == nil {
		return nil
	}
	before := o.omitted
	parts := slices.Clone(c.Parts)
	for i, p := range parts {
		if p != nil {
			parts[i] = o.part(p)
		}
	}
	if o.omitted == before {
		return c
	}
	return &genai.Content{Role: c.Role, Parts: parts}
}

// part cuts the long texts and data of a part. If there are none, it returns p itself, else a copy.
func (o *outliner) part(p *genai.Part) *genai.Part {
	before, short := o.omitted, *p
	short.Text = o.text(p.Text)
	if d := p.InlineData; d != nil && len(d.Data) >= longText {
		o.omitted += int64(len(d.Data))
		short.InlineData = &genai.Blob{MIMEType: d.MIMEType, DisplayName: d.DisplayName}
	}
	if c := p.FunctionCall; c != nil {
		call := *c
		call.Args, short.FunctionCall = o.values(c.Args), &call
	}
	if r := p.FunctionResponse; r != nil {
		resp := *r
		resp.Response, short.FunctionResponse = o.values(r.Response), &resp
	}
	if o.omitted == before {
		return p
	}
	return &short
}

// values cuts the long values of a map. A text keeps its beginning; another value becomes "…". If nothing is long, values
// returns m itself, else a copy. It cuts no key of the log itself (see [mark.KeyPrefix]).
func (o *outliner) values(m map[string]any) map[string]any {
	var short map[string]any
	for key, val := range m {
		if strings.HasPrefix(key, mark.KeyPrefix) {
			continue
		}
		cut := val
		if s, isText := val.(string); isText {
			if len(s) < longText {
				continue
			}
			cut = o.text(s)
		} else if n := weightOfValue(val); n >= longText {
			o.omitted += int64(n)
			cut = "…"
		} else {
			continue
		}
		if short == nil {
			short = maps.Clone(m)
		}
		short[key] = cut
	}
	if short == nil {
		return m
	}
	return short
}

// outlineSize is how many events of an outline are read from the store at a time.
const outlineSize = 1024

// outline yields the outlines of the window's events; if kinds is not nil, only of events with a mark of one of the kinds.
func (w *window) outline(kinds []mark.Kind) iter.Seq[*Event] {
	return func(yield func(*Event) bool) {
		log := window{log: w.log, from: w.from}
		if w.older == nil || !w.older.hasOutlines() {
			log = *w
		} else if w.before > 0 {
			for ev := range w.older.outlineRange(w.first, w.first+int64(w.before)-1, kinds) {
				if !yield(ev) {
					return
				}
			}
		}
		for ev := range log.All() {
			if hasKind(ev, kinds) && !yield(ev) {
				return
			}
		}
	}
}

// load returns the complete event for an event of an outline, or ev itself if the window does not have it.
func (w *window) load(ev *Event) *Event {
	if i := ev.Seq - w.base(); i >= 0 && i < int64(w.Len()) {
		return w.At(int(i))
	}
	return ev
}
