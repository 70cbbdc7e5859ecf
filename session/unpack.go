// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/session/mark"
)

// unpack returns the events of a pack. The book is the one that it was packed with, or a later
// one of that log.
func (b *book) unpack(p *pack) []*Event {
	r := unpacker{book: b, data: p.data}
	evs, kept := make([]*Event, p.n), p.kept
	for i := range evs {
		flags := r.number()
		if flags == 0 {
			evs[i], kept = kept[0], kept[1:]
			continue
		}
		ev := &Event{Seq: p.first + int64(i)}
		r.event(ev, flags)
		evs[i] = ev
	}
	return evs
}

// unpacker reads a pack.
type unpacker struct {
	*book
	data    []byte // what is left
	at      int64
	address Address
	said    string
}

func (r *unpacker) event(ev *Event, flags uint64) {
	if ev.ID = strconv.FormatInt(ev.Seq, 10); flags&hasID != 0 {
		ev.ID = r.text()
	}
	r.at += r.signed()
	if ev.Timestamp = time.Unix(0, r.at); flags&hasUTC != 0 {
		ev.Timestamp = ev.Timestamp.UTC()
	}
	ev.InvocationID, ev.Author = r.name(), r.name()
	if flags&hasBranch != 0 {
		ev.Branch = r.name()
	}
	same := r.number()
	if rest := r.text(); rest != "" || same != uint64(len(r.address)) {
		r.address = r.address[:same] + Address(rest)
	}
	ev.Address = r.address
	ev.Iteration, ev.Attempt = int(r.signed()), int(r.signed())
	if flags&hasMark != 0 {
		ev.Mark = &mark.Mark{Kind: mark.Kind(r.name())}
		if flags&hasData != 0 {
			ev.Mark.Data = r.diff(r.known(ev.Mark.Kind))
		}
	}
	r.said = ""
	if flags&hasContent != 0 {
		ev.Content = r.content()
	}
	if flags&hasUsage != 0 {
		ev.UsageMetadata = new(genai.GenerateContentResponseUsageMetadata)
		for _, n := range usageCounts(ev.UsageMetadata) {
			*n = int32(r.signed())
		}
		for range r.number() {
			ev.UsageMetadata.CacheTokensDetails = append(ev.UsageMetadata.CacheTokensDetails,
				&genai.ModalityTokenCount{Modality: genai.MediaModality(r.name()), TokenCount: int32(r.signed())})
		}
	}
	if flags&hasResponse != 0 {
		ev.ModelVersion, ev.FinishReason = r.name(), genai.FinishReason(r.name())
		ev.ErrorCode, ev.ErrorMessage = r.text(), r.text()
	}
	if flags&hasDelta != 0 {
		ev.Actions.StateDelta = r.values()
	}
	if flags&hasMetadata != 0 {
		ev.CustomMetadata = r.values()
	}
	ev.TurnComplete, ev.Interrupted = flags&isComplete != 0, flags&isInterrupted != 0
}

func (r *unpacker) number() uint64 {
	n, size := binary.Uvarint(r.data)
	r.data = r.data[size:]
	return n
}

func (r *unpacker) signed() int64 {
	n, size := binary.Varint(r.data)
	r.data = r.data[size:]
	return n
}

func (r *unpacker) bytes(n uint64) []byte {
	b := r.data[:n]
	r.data = r.data[n:]
	return b
}

func (r *unpacker) text() string { return string(r.bytes(r.number())) }

func (r *unpacker) name() string {
	if i := r.number(); i > 0 {
		return r.names[i-1]
	}
	return r.text()
}

// diff reads what appendDiff has written.
func (r *unpacker) diff(other []byte) json.RawMessage {
	data := make(json.RawMessage, 0, r.number())
	for len(data) < cap(data) {
		if n := int(r.number()); n > 0 {
			data = append(data, other[len(data):len(data)+n]...)
		}
		data = append(data, r.bytes(r.number())...)
	}
	return data
}

func (r *unpacker) content() *genai.Content {
	c := &genai.Content{Role: r.name()}
	if n := r.number(); n > 0 {
		c.Parts = make([]*genai.Part, n)
	}
	for i := range c.Parts {
		p := new(genai.Part)
		flags := r.number()
		if flags&hasText != 0 {
			if p.Text = r.text(); r.said == "" {
				r.said = p.Text
			}
		}
		p.Thought = flags&isThought != 0
		if flags&hasSignature != 0 {
			p.ThoughtSignature = []byte(r.text())
		}
		if flags&hasCall != 0 {
			p.FunctionCall = &genai.FunctionCall{ID: r.text(), Name: r.name(), Args: r.values()}
		}
		if flags&hasAnswer != 0 {
			p.FunctionResponse = &genai.FunctionResponse{ID: r.text(), Name: r.name(), Response: r.values()}
		}
		c.Parts[i] = p
	}
	return c
}

// values returns m; nil if m is empty.
func (r *unpacker) values() map[string]any {
	n := r.number()
	if n == 0 {
		return nil
	}
	m := make(map[string]any, n)
	for range n {
		key := r.name()
		m[key] = r.value()
	}
	return m
}

func (r *unpacker) value() any {
	switch kind := r.bytes(1)[0]; kind {
	case isFalse, isTrue:
		return kind == isTrue
	case isWhole:
		return float64(r.signed())
	case isFloat:
		return math.Float64frombits(binary.LittleEndian.Uint64(r.bytes(8)))
	case isInt:
		return r.signed()
	case isUint:
		return r.number()
	case isText:
		return r.text()
	case isSaid:
		return r.said
	case isList:
		list := make([]any, r.number())
		for i := range list {
			list[i] = r.value()
		}
		return list
	case isMap:
		if m := r.values(); m != nil {
			return m
		}
		return map[string]any{}
	}
	return nil
}
