// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/binary"
	"math"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/session/mark"
)

// packed are events that follow one another, in a third of the memory: without all that is empty in
// most events. Each look at one makes it anew.
type packed struct {
	first   int64 // the Seq of the first one
	packs   []pack
	open    []*Event // behind the packs; fewer than packSize
	names   []string // texts that many events have
	numbers map[string]uint64
	zones   []*time.Location // beside UTC and the local one
	buf     []byte
}

const packSize = 64

// pack has packSize events.
type pack struct {
	text string
	data []byte           // of the marks
	ends [packSize]uint32 // of each event in the text
	rest map[int]*Event   // those that have more than a pack holds
}

func (p *packed) len() int { return len(p.packs)*packSize + len(p.open) }

// add adds the next event.
func (p *packed) add(ev *Event) {
	if p.len() == 0 {
		p.first = ev.Seq
	}
	if p.open = append(p.open, ev); len(p.open) == packSize {
		p.packs = append(p.packs, p.pack())
		clear(p.open)
		p.open = p.open[:0]
	}
}

// at is the event at an index.
func (p *packed) at(i int) *Event {
	n, i := i/packSize, i%packSize
	switch {
	case n == len(p.packs):
		return p.open[i]
	case p.packs[n].rest[i] != nil:
		return p.packs[n].rest[i]
	}
	u := p.unpacking(n, i)
	return u.event(p.first + int64(n*packSize+i))
}

// kind is the kind of the mark of the event at an index; empty if it has none.
func (p *packed) kind(i int) mark.Kind {
	n, i := i/packSize, i%packSize
	if n == len(p.packs) || p.packs[n].rest[i] != nil {
		if m := p.at(n*packSize + i).Mark; m != nil {
			return m.Kind
		}
		return ""
	}
	u := p.unpacking(n, i)
	if u.number()&hasMark == 0 {
		return ""
	}
	return mark.Kind(u.name())
}

func (p *packed) unpacking(n, i int) unpacking {
	u := unpacking{packed: p, pack: &p.packs[n], text: p.packs[n].text[:p.packs[n].ends[i]]}
	if i > 0 {
		u.text = u.text[p.packs[n].ends[i-1]:]
	}
	return u
}

// What an event has.
const (
	hasBranch = 1 << iota
	hasMark
	hasData
	hasDelta
	hasEmptyDelta
	hasContent
	hasThought
	asksToLeave
	hasOmitted
)

// pack packs the open events.
func (p *packed) pack() pack {
	var done pack
	p.buf = p.buf[:0]
	data := 0
	for _, ev := range p.open {
		if ev.Mark != nil {
			data += len(ev.Mark.Data)
		}
	}
	done.data = make([]byte, 0, data)
	for i, ev := range p.open {
		if !fits(ev) || ev.Seq != p.first+int64(len(p.packs)*packSize+i) {
			if done.rest == nil {
				done.rest = make(map[int]*Event)
			}
			done.rest[i] = ev
		} else {
			done.data = p.event(ev, done.data)
		}
		done.ends[i] = uint32(len(p.buf))
	}
	done.text = string(p.buf)
	return done
}

// fits reports whether a pack holds all that an event has.
func fits(ev *Event) bool {
	a, c := &ev.Actions, ev.Content
	switch {
	case ev.CitationMetadata != nil, ev.GroundingMetadata != nil, ev.UsageMetadata != nil, ev.CustomMetadata != nil,
		ev.LogprobsResult != nil, ev.ModelVersion != "", ev.ErrorCode != "", ev.ErrorMessage != "",
		ev.FinishReason != "", ev.AvgLogprobs != 0, ev.Partial, ev.TurnComplete, ev.Interrupted,
		ev.LongRunningToolIDs != nil, a.ArtifactDelta != nil, a.RequestedToolConfirmations != nil,
		a.TransferToAgent != "", a.Exit != nil, a.SkipSummarization,
		ev.Iteration < 0, ev.Attempt < 0, ev.Omitted < 0:
		return false
	case ev.Timestamp.Year() < 1700 || ev.Timestamp.Year() > 2200: // their nanoseconds fit into 64 bits
		return false
	case ev.Mark != nil && (ev.Mark.Joins || ev.Mark.Data != nil && len(ev.Mark.Data) == 0):
		return false
	case c != nil && (len(c.Parts) != 1 || c.Parts[0] == nil || !isText(c.Parts[0])):
		return false
	}
	for _, val := range a.StateDelta {
		switch val.(type) {
		case nil, bool, string, float64, int64, uint64:
		default:
			return false
		}
	}
	return true
}

// isText reports whether a part is a text, perhaps a thought, and nothing else.
func isText(p *genai.Part) bool {
	return p.AudioTranscription == nil && p.CodeExecutionResult == nil && p.ExecutableCode == nil && p.FileData == nil &&
		p.FunctionCall == nil && p.FunctionResponse == nil && p.InlineData == nil && p.MediaProcessing == "" &&
		p.MediaResolution == nil && p.PartMetadata == nil && p.SpeechMetadata == nil && p.ThoughtSignature == nil &&
		p.ToolCall == nil && p.ToolResponse == nil && p.VideoMetadata == nil
}

// event packs one.
func (p *packed) event(ev *Event, data []byte) []byte {
	var has uint64
	note := func(bit uint64, is bool) {
		if is {
			has |= bit
		}
	}
	note(hasBranch, ev.Branch != "")
	note(hasMark, ev.Mark != nil)
	note(hasData, ev.Mark != nil && ev.Mark.Data != nil)
	note(hasDelta, len(ev.Actions.StateDelta) > 0)
	note(hasEmptyDelta, ev.Actions.StateDelta != nil && len(ev.Actions.StateDelta) == 0)
	note(hasContent, ev.Content != nil)
	note(hasThought, ev.Content != nil && ev.Content.Parts[0].Thought)
	note(asksToLeave, ev.Actions.Escalate)
	note(hasOmitted, ev.Omitted != 0)
	p.number(has)
	if has&hasMark != 0 {
		p.name(string(ev.Mark.Kind))
	}
	p.text(ev.ID)
	p.number(p.zone(ev.Timestamp))
	p.buf = binary.LittleEndian.AppendUint64(p.buf, uint64(ev.Timestamp.UnixNano()))
	p.name(ev.InvocationID)
	p.name(ev.Author)
	p.text(string(ev.Address))
	p.number(uint64(ev.Iteration))
	p.number(uint64(ev.Attempt))
	if has&hasBranch != 0 {
		p.name(ev.Branch)
	}
	if has&hasData != 0 {
		p.number(uint64(len(data)))
		data = append(data, ev.Mark.Data...)
		p.number(uint64(len(data)))
	}
	if has&hasDelta != 0 {
		p.number(uint64(len(ev.Actions.StateDelta)))
		for key, val := range ev.Actions.StateDelta {
			p.name(key)
			p.value(val)
		}
	}
	if has&hasContent != 0 {
		p.name(ev.Content.Role)
		p.text(ev.Content.Parts[0].Text)
	}
	if has&hasOmitted != 0 {
		p.number(uint64(ev.Omitted))
	}
	return data
}

func (p *packed) number(n uint64) { p.buf = binary.AppendUvarint(p.buf, n) }

func (p *packed) text(s string) {
	p.number(uint64(len(s)))
	p.buf = append(p.buf, s...)
}

// name writes a text that is likely to come again.
func (p *packed) name(s string) {
	n, known := p.numbers[s]
	if !known {
		if p.numbers == nil {
			p.numbers = make(map[string]uint64)
		}
		n = uint64(len(p.names))
		s = string([]byte(s)) // it holds nothing else
		p.names, p.numbers[s] = append(p.names, s), n
	}
	p.number(n)
}

// zone is the number of a time's zone.
func (p *packed) zone(t time.Time) uint64 {
	switch at := t.Location(); at {
	case time.UTC:
		return 0
	case time.Local:
		return 1
	default:
		name, offset := t.Zone()
		for i, z := range p.zones {
			if known, seconds := t.In(z).Zone(); known == name && seconds == offset {
				return uint64(i + 2)
			}
		}
		p.zones = append(p.zones, at)
		return uint64(len(p.zones) + 1)
	}
}

// The kinds of value in a delta.
const (
	isNil = iota
	isFalse
	isTrue
	isString
	isFloat
	isInt
	isUint
)

func (p *packed) value(v any) {
	switch v := v.(type) {
	case nil:
		p.number(isNil)
	case bool:
		p.number(map[bool]uint64{false: isFalse, true: isTrue}[v])
	case string:
		p.number(isString)
		p.text(v)
	case float64:
		p.number(isFloat)
		p.buf = binary.LittleEndian.AppendUint64(p.buf, math.Float64bits(v))
	case int64:
		p.number(isInt)
		p.number(uint64(v))
	case uint64:
		p.number(isUint)
		p.number(v)
	}
}

// unpacking reads an event.
type unpacking struct {
	*packed
	pack *pack
	text string
}

func (u *unpacking) event(seq int64) *Event {
	has := u.number()
	made := new(struct {
		ev   Event
		mark mark.Mark
	})
	ev := &made.ev
	if has&hasMark != 0 {
		ev.Mark = &made.mark
		ev.Mark.Kind = mark.Kind(u.name())
	}
	ev.Seq, ev.ID = seq, u.words()
	zone := u.number()
	ev.Timestamp = time.Unix(0, int64(u.word()))
	switch zone {
	case 0:
		ev.Timestamp = ev.Timestamp.UTC()
	case 1:
	default:
		ev.Timestamp = ev.Timestamp.In(u.zones[zone-2])
	}
	ev.InvocationID, ev.Author = u.name(), u.name()
	ev.Address = Address(u.words())
	ev.Iteration, ev.Attempt = int(u.number()), int(u.number())
	if has&hasBranch != 0 {
		ev.Branch = u.name()
	}
	if has&hasData != 0 {
		from, to := u.number(), u.number()
		ev.Mark.Data = u.pack.data[from:to:to]
	}
	if has&hasEmptyDelta != 0 {
		ev.Actions.StateDelta = map[string]any{}
	}
	if has&hasDelta != 0 {
		n := u.number()
		ev.Actions.StateDelta = make(map[string]any, n)
		for range n {
			key := u.name()
			ev.Actions.StateDelta[key] = u.value()
		}
	}
	if has&hasContent != 0 {
		ev.Content = &genai.Content{Role: u.name()}
		ev.Content.Parts = []*genai.Part{{Text: u.words(), Thought: has&hasThought != 0}}
	}
	ev.Actions.Escalate = has&asksToLeave != 0
	if has&hasOmitted != 0 {
		ev.Omitted = int64(u.number())
	}
	return ev
}

func (u *unpacking) number() (n uint64) {
	for shift := 0; ; shift += 7 {
		b := u.text[0]
		u.text = u.text[1:]
		if n |= uint64(b&0x7f) << shift; b < 0x80 {
			return n
		}
	}
}

// word is a number of 64 bits.
func (u *unpacking) word() (n uint64) {
	for i := range 8 {
		n |= uint64(u.text[i]) << (8 * i)
	}
	u.text = u.text[8:]
	return n
}

func (u *unpacking) words() (s string) {
	n := u.number()
	s, u.text = u.text[:n], u.text[n:]
	return s
}

func (u *unpacking) name() string { return u.names[u.number()] }

func (u *unpacking) value() any {
	switch u.number() {
	case isFalse:
		return false
	case isTrue:
		return true
	case isString:
		return u.words()
	case isFloat:
		return math.Float64frombits(u.word())
	case isInt:
		return int64(u.number())
	case isUint:
		return u.number()
	}
	return nil
}
