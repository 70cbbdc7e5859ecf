// SPDX-License-Identifier: Apache-2.0

// Package eventjson reads events from the JSON in which databases keep them, several times as fast as
// encoding/json and with fewer allocations. What it returns is what [session.Event.Decode] returns.
package eventjson

import (
	"encoding/json"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/internal/jsonscan"
	"github.com/refrain-dev/refrain/session/mark"
)

// Decoder reads the events of one log, one after the other. Their texts, marks and the events
// themselves share memory, which is free when none of some dozen neighbours is in use. The zero value
// is ready to use, by one goroutine.
type Decoder struct {
	// Expect is how many events are still to come; 0 if nobody knows.
	Expect int

	grown            int             // how many events the memory was for that was made last
	names, addresses [named]string   // that were read last, each where its hash is
	texts            strings.Builder // whose beginning is in use
	data             []byte          // so is this
	events           []session.Event // those are not in use yet
	marks            []mark.Mark
	sayings          []saying
	scanner          jsonscan.Scanner
}

// saying is a content of one part, as most are.
type saying struct {
	content genai.Content
	parts   [1]*genai.Part
	part    genai.Part
}

// The memory that values share is for so many events at most, with so many bytes of texts each. A
// text that is longer than short, and data longer than long, has its own.
const (
	most  = 32
	block = 128
	short = 64
	long  = 1 << 10
	named = 64 // names that are known, and addresses
)

// Event reads an event. It keeps nothing of data.
func (d *Decoder) Event(data []byte) (*session.Event, error) {
	if len(d.events) == 0 {
		d.events = make([]session.Event, d.slab())
	}
	ev := &d.events[0]
	if d.scanner.Strings == nil {
		d.scanner.Strings = d
	}
	d.scanner.Reset(data)
	p := parser{&d.scanner, d}
	ok := p.event(ev) && p.End()
	d.scanner.Reset(nil)
	d.Expect = max(d.Expect-1, 0)
	if ok {
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

// slab is for how many events memory is made: for those that come, or for more each time.
func (d *Decoder) slab() int {
	if d.Expect > 0 {
		return min(d.Expect, most)
	}
	d.grown = min(max(2*d.grown, 1), most)
	return d.grown
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
		d.texts.Grow(max(len(b), d.slab()*block))
	}
	from := d.texts.Len()
	d.texts.Write(b)
	return d.texts.String()[from:]
}

// Name is a string of which there are few.
func (d *Decoder) Name(b []byte) string { return d.known(&d.names, b) }

// known is a string that was read lately, or a new one.
func (d *Decoder) known(all *[named]string, b []byte) string {
	n := len(b)
	if n == 0 || n > 4*short {
		return d.Text(b)
	}
	place := &all[(n^int(b[0])^int(b[n/2])<<1^int(b[n-1])<<2)%named]
	if *place != string(b) {
		*place = d.Text(b)
	}
	return *place
}

// bytes is a copy of some JSON.
func (d *Decoder) bytes(b []byte) []byte {
	if len(b) > long {
		return append([]byte(nil), b...)
	}
	if cap(d.data)-len(d.data) < len(b) {
		d.data = make([]byte, 0, max(len(b), d.slab()*block))
	}
	from := len(d.data)
	d.data = append(d.data, b...)
	return d.data[from:len(d.data):len(d.data)]
}

func (d *Decoder) mark() *mark.Mark {
	if len(d.marks) == 0 {
		d.marks = make([]mark.Mark, d.slab())
	}
	m := &d.marks[0]
	d.marks = d.marks[1:]
	return m
}

// saying is an empty content, and the place of its first part.
func (d *Decoder) saying() *saying {
	if len(d.sayings) == 0 {
		d.sayings = make([]saying, d.slab())
	}
	s := &d.sayings[0]
	d.sayings = d.sayings[1:]
	return s
}

// parser reads what a row has.
type parser struct {
	*jsonscan.Scanner
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
			bit, ok = 2, p.time(&ev.Timestamp)
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
	said := p.d.saying()
	c := &said.content
	var seen uint64
	ok := p.Object(func(key []byte) bool {
		switch string(key) {
		case "role":
			return p.NameInto(&c.Role) && jsonscan.Once(&seen, 1)
		case "parts":
			c.Parts = said.parts[:0]
			return jsonscan.Once(&seen, 2) && p.Array(func() bool {
				part := &said.part
				if len(c.Parts) > 0 {
					part = new(genai.Part)
				}
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

// time reads a timestamp.
func (p *parser) time(to *time.Time) bool {
	raw := p.Quoted()
	if at, ok := instant(raw); ok {
		*to = at
		return true
	}
	return raw != nil && to.UnmarshalJSON(raw) == nil
}

// instant reads a quoted time in UTC as stores write it: "2006-01-02T15:04:05.999999999Z", with
// any number of decimals. It leaves others alone.
func instant(raw []byte) (at time.Time, ok bool) {
	const seconds = len(`"2006-01-02T15:04:05`)
	if len(raw) < seconds+2 || len(raw) > seconds+len(`.999999999Z"`) || raw[len(raw)-2] != 'Z' ||
		raw[5] != '-' || raw[8] != '-' || raw[11] != 'T' || raw[14] != ':' || raw[17] != ':' {
		return at, false
	}
	ok = true
	number := func(from, to int) (n int) {
		for _, c := range raw[from:to] {
			ok = ok && c-'0' <= 9
			n = 10*n + int(c-'0')
		}
		return n
	}
	year, month, day := number(1, 5), number(6, 8), number(9, 11)
	hour, minute, second := number(12, 14), number(15, 17), number(18, 20)
	nanos := 0
	if decimals := len(raw) - seconds - len(`.Z"`); decimals >= 0 {
		ok = ok && decimals > 0 && raw[seconds] == '.'
		nanos = number(seconds+1, seconds+1+decimals)
		for range 9 - decimals {
			nanos *= 10
		}
	}
	if !ok || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 59 {
		return at, false
	}
	at = time.Date(year, time.Month(month), day, hour, minute, second, nanos, time.UTC)
	return at, day <= 28 || at.Day() == day // else the month has fewer days
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
