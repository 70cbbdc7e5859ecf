// SPDX-License-Identifier: Apache-2.0

// Package eventjson reads events from the JSON in which databases keep them, several times as fast as
// encoding/json and with fewer allocations. What it returns is what [session.Event.Decode] returns.
package eventjson

import (
	"encoding/json"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/internal/jsonscan"
	"github.com/refrain-dev/refrain/session/mark"
)

// Decoder reads the events of one log, one after the other. Their texts, marks and the events
// themselves share memory, which is free when none of some dozen neighbours is in use. The zero value
// is ready to use, by one goroutine.
type Decoder struct {
	names, addresses map[string]string
	texts            strings.Builder // whose beginning is in use
	data             []byte          // so is this
	events           []session.Event // those are not in use yet
	marks            []mark.Mark
}

// The sizes of the memory that values share: of few events, and of texts that are no longer than
// short, in bytes.
const (
	slab  = 32
	block = 4 << 10
	short = 64
	named = 64 // different names, and addresses
)

// Event reads an event. It keeps nothing of data.
func (d *Decoder) Event(data []byte) (*session.Event, error) {
	if len(d.events) == 0 {
		d.events = make([]session.Event, slab)
	}
	ev := &d.events[0]
	p := parser{jsonscan.New(data, d), d}
	if p.event(ev) && p.End() {
		d.events = d.events[1:]
		return ev, nil
	}
	*ev = session.Event{}
	ev = new(session.Event)
	if err := ev.Decode(data); err != nil {
		return nil, err
	}
	return ev, nil
}

// Text is a string that shares memory with others.
func (d *Decoder) Text(b []byte) string {
	switch {
	case len(b) == 0:
		return ""
	case len(b) > short:
		return string(b)
	case d.texts.Cap()-d.texts.Len() < len(b):
		d.texts = strings.Builder{}
		d.texts.Grow(block)
	}
	from := d.texts.Len()
	d.texts.Write(b)
	return d.texts.String()[from:]
}

// Name is a string of which there are few.
func (d *Decoder) Name(b []byte) string {
	if len(b) > short {
		return string(b)
	}
	return d.known(&d.names, b)
}

func (d *Decoder) known(all *map[string]string, b []byte) string {
	if s, ok := (*all)[string(b)]; ok {
		return s
	}
	if *all == nil {
		*all = make(map[string]string)
	}
	if len(*all) >= named {
		clear(*all)
	}
	s := d.Text(b)
	(*all)[s] = s
	return s
}

// bytes is a copy of some JSON.
func (d *Decoder) bytes(b []byte) []byte {
	if len(b) > block/4 {
		return append([]byte(nil), b...)
	}
	if cap(d.data)-len(d.data) < len(b) {
		d.data = make([]byte, 0, block)
	}
	from := len(d.data)
	d.data = append(d.data, b...)
	return d.data[from:len(d.data):len(d.data)]
}

func (d *Decoder) mark() *mark.Mark {
	if len(d.marks) == 0 {
		d.marks = make([]mark.Mark, slab)
	}
	m := &d.marks[0]
	d.marks = d.marks[1:]
	return m
}

// parser reads what a row has.
type parser struct {
	jsonscan.Scanner
	d *Decoder
}

// event reads an event's JSON. Like all methods of a parser it returns false for whatever is not as
// it is written here: encoding/json reads that.
func (p *parser) event(ev *session.Event) bool {
	var seen uint64
	return p.Object(func(key []byte) bool {
		var bit uint
		var ok bool
		switch string(key) { // no allocation
		case "id":
			bit, ok = 1, p.Into(&ev.ID)
		case "timestamp":
			raw := p.Quoted()
			bit, ok = 2, raw != nil && ev.Timestamp.UnmarshalJSON(raw) == nil
		case "invocationId":
			bit, ok = 3, p.NameInto(&ev.InvocationID)
		case "branch":
			bit, ok = 4, p.NameInto(&ev.Branch)
		case "author":
			bit, ok = 5, p.NameInto(&ev.Author)
		case "actions":
			bit, ok = 6, p.actions(&ev.Actions)
		case "longRunningToolIds":
			bit, ok = 7, p.other(&ev.LongRunningToolIDs)
		case "seq":
			bit, ok = 8, p.Int64(&ev.Seq)
		case "address":
			bit, ok = 9, p.address(&ev.Address)
		case "iteration":
			bit, ok = 10, p.Int(&ev.Iteration)
		case "attempt":
			bit, ok = 11, p.Int(&ev.Attempt)
		case "mark":
			ev.Mark = p.d.mark()
			bit, ok = 12, p.mark(ev.Mark)
		case "content":
			bit, ok = 13, p.content(&ev.Content)
		case "usageMetadata":
			bit, ok = 14, p.other(&ev.UsageMetadata)
		case "customMetadata":
			bit, ok = 15, p.Values(&ev.CustomMetadata)
		case "modelVersion":
			bit, ok = 16, p.NameInto(&ev.ModelVersion)
		case "finishReason":
			bit, ok = 17, p.NameInto((*string)(&ev.FinishReason))
		case "errorCode":
			bit, ok = 18, p.NameInto(&ev.ErrorCode)
		case "errorMessage":
			bit, ok = 19, p.Into(&ev.ErrorMessage)
		case "turnComplete":
			bit, ok = 20, p.Bool(&ev.TurnComplete)
		case "interrupted":
			bit, ok = 21, p.Bool(&ev.Interrupted)
		}
		return ok && jsonscan.Once(&seen, bit)
	})
}

func (p *parser) actions(a *session.EventActions) bool {
	var seen uint64
	return p.Object(func(key []byte) bool {
		var bit uint
		var ok bool
		switch string(key) {
		case "stateDelta":
			bit, ok = 1, p.Values(&a.StateDelta)
		case "artifactDelta":
			bit, ok = 2, p.other(&a.ArtifactDelta)
		case "requestedToolConfirmations":
			bit, ok = 3, p.other(&a.RequestedToolConfirmations)
		case "transferToAgent":
			bit, ok = 4, p.NameInto(&a.TransferToAgent)
		case "exit":
			bit, ok = 5, p.other(&a.Exit)
		case "skipSummarization":
			bit, ok = 6, p.Bool(&a.SkipSummarization)
		case "escalate":
			bit, ok = 7, p.Bool(&a.Escalate)
		}
		return ok && jsonscan.Once(&seen, bit)
	})
}

func (p *parser) mark(m *mark.Mark) bool {
	var seen uint64
	return p.Object(func(key []byte) bool {
		switch string(key) {
		case "kind":
			return p.NameInto((*string)(&m.Kind)) && jsonscan.Once(&seen, 1)
		case "data":
			raw := p.Raw()
			m.Data = p.d.bytes(raw)
			return raw != nil && jsonscan.Once(&seen, 2)
		}
		return false
	})
}

// content reads a content whose parts are texts, and has others read.
func (p *parser) content(to **genai.Content) bool {
	from := p.Place()
	c := new(genai.Content)
	var seen uint64
	ok := p.Object(func(key []byte) bool {
		switch string(key) {
		case "role":
			return p.NameInto(&c.Role) && jsonscan.Once(&seen, 1)
		case "parts":
			c.Parts = make([]*genai.Part, 0, 1)
			return jsonscan.Once(&seen, 2) && p.Array(func() bool {
				part := new(genai.Part)
				c.Parts = append(c.Parts, part)
				var seen uint64
				return p.Object(func(key []byte) bool {
					switch string(key) {
					case "text":
						return p.Into(&part.Text) && jsonscan.Once(&seen, 1)
					case "thought":
						return p.Bool(&part.Thought) && jsonscan.Once(&seen, 2)
					}
					return false
				})
			})
		}
		return false
	})
	if ok {
		*to = c
		return true
	}
	p.Back(from)
	return p.other(to)
}

func (p *parser) address(to *session.Address) bool {
	s, ok := p.Bytes()
	if ok {
		*to = session.Address(p.d.known(&p.d.addresses, s))
	}
	return ok
}

// other has encoding/json read a value.
func (p *parser) other(to any) bool {
	raw := p.Raw()
	return raw != nil && json.Unmarshal(raw, to) == nil
}
