// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/session/mark"
)

// pack is a part of a log, encoded as bytes. They take a tenth of the memory of the events, and the
// garbage collector does not scan them. An unpacked event equals the event that was packed, except that its
// empty maps are nil and its timestamp has no monotonic clock reading. Resuming reads a log up to 13 times, and whole outlines in
// place of packs raise the peak memory of `refrain resume` after 10,000 iterations from 87 to 172 MB, where 100 MB are its bound.
type pack struct {
	first int64 // the sequence number of the first event
	data  []byte
	kept  []*Event // the events that are not encoded, because they are long or the codec does not support them; in order
	n     int      // the number of events, encoded and kept
}

// A pack has at most packed events. An event that weighs more than maxPacked bytes is not encoded, because it
// consists almost only of texts, and texts take the same memory in a pack.
const (
	packed    = 64
	maxPacked = 16 << 10
)

// book is the dictionary of names and marks that the packs of a log refer to. It only grows, so a goroutine can
// read a copy of it while the original grows.
type book struct {
	names []string
	marks []mark.Mark // the first one of each kind that has data
}

// The book has names that are not longer than maxName bytes, at most maxNames of them.
const (
	maxName  = 100
	maxNames = 200
)

// pack encodes events whose sequence numbers have no gap, at most [packed] of them. room is a buffer that the caller reuses.
func (b *book) pack(evs []*Event, room *[]byte) *pack {
	p := &pack{first: evs[0].Seq, n: len(evs)}
	c := codec{book: b, buf: (*room)[:0]}
	for _, ev := range evs {
		before := c
		if c.odd = ev.Weight() > maxPacked || !common(ev); !c.odd {
			c.event(ev, eventFlags(c.count(int(flagsOf(ev)))))
		}
		if c.odd {
			c = before
			c.buf = append(before.buf, 0)
			p.kept = append(p.kept, ev)
		}
	}
	p.data, *room = slices.Clone(c.buf), c.buf
	return p
}

// unpack returns the events of a pack. b must be the book that the pack was made with, or a later copy
// of it.
func (b *book) unpack(p *pack) []*Event {
	c := codec{book: b, buf: p.data, reads: true}
	evs, kept := make([]*Event, p.n), p.kept
	for i := range evs {
		flags := eventFlags(c.count(0))
		if flags == 0 {
			evs[i], kept = kept[0], kept[1:]
			continue
		}
		evs[i] = &Event{Seq: p.first + int64(i)}
		c.event(evs[i], flags)
	}
	return evs
}

// eventFlags say which optional fields an event has.
type eventFlags uint

const (
	isPacked eventFlags = 1 << iota // else the event is in pack.kept
	hasUTC                          // its timestamp is in UTC, else in local time
	hasMark
	hasContent
	hasUsage
	hasValues   // a state delta or metadata
	hasResponse // other fields of a model's response
	hasID       // its ID is not its sequence number
	isComplete
	isInterrupted
)

// flagsOf returns the flags of an event. The order of the conditions is that of the constants from hasUTC on.
func flagsOf(ev *Event) eventFlags {
	flags := isPacked
	var digits [20]byte
	for i, is := range [...]bool{ev.Timestamp.Location() == time.UTC, ev.Mark != nil, ev.Content != nil, ev.UsageMetadata != nil,
		len(ev.Actions.StateDelta) > 0 || len(ev.CustomMetadata) > 0,
		ev.ModelVersion != "" || ev.ErrorCode != "" || ev.ErrorMessage != "" || ev.FinishReason != "",
		ev.ID != string(strconv.AppendInt(digits[:0], ev.Seq, 10)), ev.TurnComplete, ev.Interrupted} {
		if is {
			flags |= hasUTC << i
		}
	}
	return flags
}

// common reports whether the codec supports all fields that the event uses. It does not check the values in these
// fields: the codec sets odd if it does not support a value.
func common(ev *Event) bool {
	a := &ev.Actions
	if len(a.ArtifactDelta) > 0 || len(a.RequestedToolConfirmations) > 0 || a.TransferToAgent != "" || a.Exit != nil ||
		a.SkipSummarization || a.Escalate {
		return false
	}
	if s := ev.Timestamp.Unix(); s < -1<<33 || s > 1<<33 { // the nanoseconds must fit into an int64
		return false
	}
	loc := ev.Timestamp.Location()
	return (loc == time.UTC || loc == time.Local) && len(ev.LongRunningToolIDs) == 0 && ev.Omitted == 0 &&
		(ev.Mark == nil || !ev.Mark.Batch) && ev.CitationMetadata == nil && ev.GroundingMetadata == nil &&
		ev.LogprobsResult == nil && ev.AvgLogprobs == 0 && !ev.Partial
}

// codec writes the events of a pack or reads them. Both directions use the same functions, so that each field is
// listed once. A codec that writes does not change the events.
type codec struct {
	*book
	reads     bool
	buf       []byte // the bytes written so far, or the bytes left to read
	at        int64  // the timestamp of the last event, in nanoseconds since 1970
	address   Address
	firstText string // the first text of the current event
	odd       bool   // the codec does not support a value of the current event
}

// event writes or reads one event. It writes the difference from the timestamp and the address of the last event.
func (c *codec) event(ev *Event, flags eventFlags) {
	if flags&hasID != 0 {
		c.text(&ev.ID)
	} else if c.reads {
		ev.ID = strconv.FormatInt(ev.Seq, 10)
	}
	since := ev.Timestamp.UnixNano() - c.at
	varint(c, &since)
	c.at += since
	c.name(&ev.InvocationID)
	c.name(&ev.Author)
	c.name(&ev.Branch)
	same := c.count(sameStart(c.address, ev.Address))
	rest := ev.Address[min(same, len(ev.Address)):]
	if c.text((*string)(&rest)); rest != "" || same != len(c.address) {
		c.address = c.address[:same] + rest
	}
	varint(c, &ev.Iteration)
	varint(c, &ev.Attempt)
	if flags&hasMark != 0 {
		c.mark(fresh(c, &ev.Mark))
	}
	c.firstText = ""
	if flags&hasContent != 0 {
		c.content(fresh(c, &ev.Content))
	}
	if flags&hasUsage != 0 {
		c.usage(fresh(c, &ev.UsageMetadata))
	}
	if flags&hasResponse != 0 {
		c.name(&ev.ModelVersion)
		c.name((*string)(&ev.FinishReason))
		c.text(&ev.ErrorCode)
		c.text(&ev.ErrorMessage)
	}
	if flags&hasValues != 0 {
		c.values(&ev.Actions.StateDelta, 0)
		c.values(&ev.CustomMetadata, 0)
	}
	if c.reads {
		if ev.Timestamp = time.Unix(0, c.at); flags&hasUTC != 0 {
			ev.Timestamp = ev.Timestamp.UTC()
		}
		ev.Address = c.address
		ev.TurnComplete, ev.Interrupted = flags&isComplete != 0, flags&isInterrupted != 0
	}
}

// fresh returns *p. A codec that reads first sets *p to a new value.
func fresh[T any](c *codec, p **T) *T {
	if c.reads {
		*p = new(T)
	}
	return *p
}

// count writes n, which is not negative, and returns it. A codec that reads ignores n and returns the number that it reads.
func (c *codec) count(n int) int {
	if !c.reads {
		c.buf = binary.AppendUvarint(c.buf, uint64(n))
		return n
	}
	read, size := binary.Uvarint(c.buf)
	c.buf = c.buf[size:]
	return int(read)
}

// varint writes a number that can be negative, or reads it into *n.
func varint[N ~int | ~int32 | ~int64](c *codec, n *N) {
	if !c.reads {
		c.buf = binary.AppendVarint(c.buf, int64(*n))
		return
	}
	read, size := binary.Varint(c.buf)
	c.buf, *n = c.buf[size:], N(read)
}

// bytes reads n bytes. The result shares the memory of the pack.
func (c *codec) bytes(n int) []byte {
	b := c.buf[:n]
	c.buf = c.buf[n:]
	return b
}

// text writes a text with its length, or reads it into *s.
func (c *codec) text(s *string) {
	if n := c.count(len(*s)); c.reads {
		*s = string(c.bytes(n))
	} else {
		c.buf = append(c.buf, *s...)
	}
}

// name does what text does, for texts that occur often: it writes an index into the book's names if it can.
func (c *codec) name(s *string) {
	i := -1
	if !c.reads {
		i = slices.Index(c.names, *s)
		if i < 0 && len(*s) <= maxName && len(c.names) < maxNames && !c.odd {
			i, c.names = len(c.names), append(c.names, *s)
		}
	}
	if i = c.count(i+1) - 1; i < 0 {
		c.text(s)
	} else if c.reads {
		*s = c.names[i]
	}
}

// mark writes the kind of a mark, and how its data differs from the data of the first mark of this kind.
func (c *codec) mark(m *mark.Mark) {
	c.name((*string)(&m.Kind))
	n := c.count(len(m.Data))
	if n == 0 {
		return
	}
	at := slices.IndexFunc(c.marks, func(o mark.Mark) bool { return o.Kind == m.Kind })
	var other []byte
	switch {
	case at >= 0:
		other = c.marks[at].Data
	case !c.reads && len(c.marks) < maxNames:
		other, c.marks = m.Data, append(c.marks, mark.Mark{Kind: m.Kind, Data: m.Data})
	}
	if !c.reads {
		c.buf = appendDiff(c.buf, m.Data, other)
		return
	}
	for m.Data = make([]byte, 0, n); len(m.Data) < n; { // reverses appendDiff
		if same := c.count(0); same > 0 {
			m.Data = append(m.Data, other[len(m.Data):len(m.Data)+same]...)
		}
		m.Data = append(m.Data, c.bytes(c.count(0))...)
	}
}

// appendDiff appends the difference between data and other. By turns it writes the number of bytes that equal
// the bytes at the same index of other, and a counted run of bytes that differ.
func appendDiff(dst, data, other []byte) []byte {
	const least = 4 // a shorter run of equal bytes is written as if it differed
	other = other[:min(len(other), len(data))]
	for i := 0; i < len(data); {
		from := i
		for i < len(other) && data[i] == other[i] {
			i++
		}
		dst = binary.AppendUvarint(dst, uint64(i-from))
		for from = i; i < len(data); i++ {
			if i+least <= len(other) && string(data[i:i+least]) == string(other[i:i+least]) {
				break
			}
		}
		dst = append(binary.AppendUvarint(dst, uint64(i-from)), data[from:i]...)
	}
	return dst
}

// usage writes or reads the token counts. It sets odd for the details that it does not support.
func (c *codec) usage(u *genai.GenerateContentResponseUsageMetadata) {
	for _, n := range [...]*int32{&u.CachedContentTokenCount, &u.CandidatesTokenCount, &u.PromptTokenCount, &u.ThoughtsTokenCount,
		&u.ToolUsePromptTokenCount, &u.TotalTokenCount} {
		varint(c, n)
	}
	c.odd = c.odd || len(u.CandidatesTokensDetails) > 0 || len(u.PromptTokensDetails) > 0 ||
		len(u.ToolUsePromptTokensDetails) > 0 || u.TrafficType != "" || slices.Contains(u.CacheTokensDetails, nil)
	if n := c.count(len(u.CacheTokensDetails)); c.odd {
		return
	} else if c.reads && n > 0 {
		u.CacheTokensDetails = make([]*genai.ModalityTokenCount, n)
	}
	for i := range u.CacheTokensDetails {
		d := fresh(c, &u.CacheTokensDetails[i])
		c.name((*string)(&d.Modality))
		varint(c, &d.TokenCount)
	}
}

// content writes or reads a content. It sets odd if the codec does not support a field of a part.
func (c *codec) content(x *genai.Content) {
	c.name(&x.Role)
	if n := c.count(len(x.Parts)); c.reads && n > 0 {
		x.Parts = make([]*genai.Part, n)
	}
	for i := range x.Parts {
		if c.odd = c.odd || !c.reads && !commonPart(x.Parts[i]); c.odd {
			return
		}
		c.part(fresh(c, &x.Parts[i]))
	}
}

// commonPart does for a part of a content what common does for an event.
func commonPart(p *genai.Part) bool {
	if p == nil || p.MediaResolution != nil || p.CodeExecutionResult != nil || p.ExecutableCode != nil || p.FileData != nil ||
		p.InlineData != nil || p.VideoMetadata != nil || p.ToolCall != nil || p.ToolResponse != nil ||
		len(p.PartMetadata) > 0 || p.AudioTranscription != nil || p.MediaProcessing != "" || p.SpeechMetadata != nil {
		return false
	}
	call, answer := p.FunctionCall, p.FunctionResponse
	return (call == nil || len(call.PartialArgs) == 0 && call.WillContinue == nil) &&
		(answer == nil || len(answer.Parts) == 0 && answer.Scheduling == "" && answer.WillContinue == nil)
}

// Flags for the fields of a part of a content, besides its text.
const (
	isThought = 1 << iota
	hasCall
	hasAnswer
)

// part writes or reads a part of a content. commonPart has checked that the codec supports its fields.
func (c *codec) part(p *genai.Part) {
	flags := 0
	for i, is := range [...]bool{p.Thought, p.FunctionCall != nil, p.FunctionResponse != nil} {
		if is {
			flags |= isThought << i
		}
	}
	flags = c.count(flags)
	if c.reads {
		p.Thought = flags&isThought != 0
	}
	c.text(&p.Text)
	c.firstText = cmp.Or(c.firstText, p.Text)
	signature := string(p.ThoughtSignature)
	if c.text(&signature); c.reads && signature != "" {
		p.ThoughtSignature = []byte(signature)
	}
	if flags&hasCall != 0 {
		call := fresh(c, &p.FunctionCall)
		c.text(&call.ID)
		c.name(&call.Name)
		c.values(&call.Args, 0)
	}
	if flags&hasAnswer != 0 {
		answer := fresh(c, &p.FunctionResponse)
		c.text(&answer.ID)
		c.name(&answer.Name)
		c.values(&answer.Response, 0)
	}
}

// values writes or reads a map. It reads an empty map as nil. depth is how deep the map is nested.
func (c *codec) values(m *map[string]any, depth int) {
	n := c.count(len(*m))
	if !c.reads {
		for key, v := range *m {
			c.name(&key)
			c.write(v, depth+1)
		}
		return
	}
	if n > 0 {
		*m = make(map[string]any, n)
	}
	for range n {
		var key string
		c.name(&key)
		(*m)[key] = c.read()
	}
}

// The kinds of values.
const (
	isNil = iota
	isFalse
	isTrue
	isWhole // a float64 without a fraction
	isFloat
	isInt
	isUint
	isText
	isSaid // equal to the first text of the event, which is not repeated
	isList
	isMap
)

// write writes one value of a map or list, with its kind. It sets odd if the codec does not support the value.
func (c *codec) write(v any, depth int) {
	kind := func(k byte) { c.buf = append(c.buf, k) }
	switch x := v.(type) {
	case nil:
		kind(isNil)
	case bool:
		if kind(isFalse); x {
			c.buf[len(c.buf)-1] = isTrue
		}
	case float64:
		if n := int64(x); float64(n) == x && n > -exact && n < exact && (n != 0 || !math.Signbit(x)) {
			kind(isWhole)
			varint(c, &n)
			return
		}
		kind(isFloat)
		c.buf = binary.LittleEndian.AppendUint64(c.buf, math.Float64bits(x))
	case int64:
		kind(isInt)
		varint(c, &x)
	case uint64:
		kind(isUint)
		c.buf = binary.LittleEndian.AppendUint64(c.buf, x)
	case string:
		if x != "" && x == c.firstText {
			kind(isSaid)
			return
		}
		kind(isText)
		c.text(&x)
	case []any:
		kind(isList)
		c.count(len(x))
		if c.odd = c.odd || x == nil || depth > maxNesting; c.odd {
			return
		}
		for _, e := range x {
			c.write(e, depth+1)
		}
	case map[string]any:
		kind(isMap)
		if c.odd = c.odd || x == nil || depth > maxNesting; c.odd {
			return
		}
		c.values(&x, depth)
	default:
		c.odd = true
	}
}

// read reads a value that write has written.
func (c *codec) read() any {
	switch kind := c.bytes(1)[0]; kind {
	case isFalse, isTrue:
		return kind == isTrue
	case isWhole, isInt:
		var n int64
		if varint(c, &n); kind == isInt {
			return n
		}
		return float64(n)
	case isFloat:
		return math.Float64frombits(binary.LittleEndian.Uint64(c.bytes(8)))
	case isUint:
		return binary.LittleEndian.Uint64(c.bytes(8))
	case isText:
		var s string
		c.text(&s)
		return s
	case isSaid:
		return c.firstText
	case isList:
		list := make([]any, c.count(0))
		for i := range list {
			list[i] = c.read()
		}
		return list
	case isMap:
		var m map[string]any
		if c.values(&m, 0); m == nil {
			m = map[string]any{}
		}
		return m
	}
	return nil
}

// sameStart returns the length of the common beginning of two addresses, in bytes.
func sameStart(a, b Address) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
