// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/session/mark"
)

// pack is a part of a log as bytes. They take a tenth of the memory of the events, and the
// garbage collector does not look into them. An event that is read back is the one that was
// written, except that empty maps are nil and that its timestamp has no monotonic clock.
type pack struct {
	first int64 // the sequence number of the first event
	data  []byte
	kept  []*Event // those that are long or have no form, in their order
	n     int      // of all events
}

// A pack has packed events at most. Of one that weighs more than maxPacked, nearly all is texts,
// which take the same memory in a pack: it is kept.
const (
	packed    = 64
	maxPacked = 16 << 10
)

// book is what the packs of a log refer to. It only grows: a copy of it can be read while the
// original grows.
type book struct {
	names []string
	marks []mark.Mark // the first one of each kind that has data
}

// The book has names that are not longer than maxName bytes, at most maxNames of them.
const (
	maxName  = 100
	maxNames = 200
)

// What an event has, besides what all have.
const (
	isPacked = 1 << iota // else it is kept
	hasID                // other than its number
	hasUTC               // its timestamp is in UTC, else in local time
	hasBranch
	hasMark
	hasData
	hasContent
	hasDelta
	hasUsage
	hasMetadata
	hasResponse // other fields of a model's response
	isComplete
	isInterrupted
)

// pack packs events that follow one another, at most [packed] of them. room is for use in between.
func (b *book) pack(evs []*Event, room *[]byte) *pack {
	p := &pack{first: evs[0].Seq, n: len(evs)}
	w := packer{book: b, buf: (*room)[:0]}
	for _, ev := range evs {
		n, at, address := len(w.buf), w.at, w.address
		if ev.Weight() > maxPacked || !common(ev) || !w.event(ev) {
			w.buf, w.at, w.address = append(w.buf[:n], 0), at, address
			p.kept = append(p.kept, ev)
		}
	}
	p.data, *room = slices.Clone(w.buf), w.buf
	return p
}

// packer writes a pack.
type packer struct {
	*book
	buf     []byte
	at      int64 // when the last event was, in nanoseconds since 1970
	address Address
	said    string // the first text of the event under way
}

func (w *packer) event(ev *Event) bool {
	var digits [20]byte
	id := ev.ID == string(strconv.AppendInt(digits[:0], ev.Seq, 10))
	m := ev.Mark
	flags := uint64(isPacked)
	for i, is := range [...]bool{!id, ev.Timestamp.Location() == time.UTC, ev.Branch != "", m != nil,
		m != nil && m.Data != nil, ev.Content != nil, len(ev.Actions.StateDelta) > 0, ev.UsageMetadata != nil,
		len(ev.CustomMetadata) > 0,
		ev.ModelVersion != "" || ev.ErrorCode != "" || ev.ErrorMessage != "" || ev.FinishReason != "",
		ev.TurnComplete, ev.Interrupted} {
		if is {
			flags |= hasID << i
		}
	}
	w.number(flags)
	if !id {
		w.text(ev.ID)
	}
	at := ev.Timestamp.UnixNano()
	w.signed(at - w.at)
	w.at = at
	w.name(ev.InvocationID)
	w.name(ev.Author)
	if ev.Branch != "" {
		w.name(ev.Branch)
	}
	same := sameStart(w.address, ev.Address)
	w.number(uint64(same))
	w.text(string(ev.Address[same:]))
	w.address = ev.Address
	w.signed(int64(ev.Iteration))
	w.signed(int64(ev.Attempt))
	if m != nil {
		w.name(string(m.Kind))
		if m.Data != nil {
			w.number(uint64(len(m.Data)))
			w.buf = appendDiff(w.buf, m.Data, w.like(m))
		}
	}
	w.said = ""
	if !w.content(ev.Content) || !w.usage(ev.UsageMetadata) {
		return false
	}
	if flags&hasResponse != 0 {
		w.name(ev.ModelVersion)
		w.name(string(ev.FinishReason))
		w.text(ev.ErrorCode)
		w.text(ev.ErrorMessage)
	}
	return (len(ev.Actions.StateDelta) == 0 || w.values(ev.Actions.StateDelta, 0)) &&
		(len(ev.CustomMetadata) == 0 || w.values(ev.CustomMetadata, 0))
}

// common reports whether an event has only fields that a pack has a form for. What those hold is
// another matter.
func common(ev *Event) bool {
	a := &ev.Actions
	if len(a.ArtifactDelta) > 0 || len(a.RequestedToolConfirmations) > 0 || a.TransferToAgent != "" || a.Exit != nil ||
		a.SkipSummarization || a.Escalate {
		return false
	}
	if s := ev.Timestamp.Unix(); s < -1<<33 || s > 1<<33 { // for nanoseconds
		return false
	}
	loc := ev.Timestamp.Location()
	return (loc == time.UTC || loc == time.Local) && len(ev.LongRunningToolIDs) == 0 && ev.Omitted == 0 &&
		(ev.Mark == nil || !ev.Mark.Joins) && ev.CitationMetadata == nil && ev.GroundingMetadata == nil &&
		ev.LogprobsResult == nil && ev.AvgLogprobs == 0 && !ev.Partial
}

func (w *packer) number(n uint64) { w.buf = binary.AppendUvarint(w.buf, n) }
func (w *packer) signed(n int64)  { w.buf = binary.AppendVarint(w.buf, n) }

func (w *packer) text(s string) {
	w.number(uint64(len(s)))
	w.buf = append(w.buf, s...)
}

// name writes a text that comes often.
func (w *packer) name(s string) {
	i := slices.Index(w.names, s)
	if i < 0 && len(s) <= maxName && len(w.names) < maxNames {
		i, w.names = len(w.names), append(w.names, s)
	}
	w.number(uint64(i + 1))
	if i < 0 {
		w.text(s)
	}
}

// like is the data that a mark's is compared with. The first one of its kind is like nothing.
func (w *packer) like(m *mark.Mark) []byte {
	if data := w.known(m.Kind); data != nil || len(w.marks) >= maxNames {
		return data
	}
	w.marks = append(w.marks, mark.Mark{Kind: m.Kind, Data: m.Data})
	return m.Data
}

// known is the data of the first mark of a kind; nil if there is none in the book.
func (b *book) known(kind mark.Kind) []byte {
	for i := range b.marks {
		if b.marks[i].Kind == kind {
			return b.marks[i].Data
		}
	}
	return nil
}

func (w *packer) usage(u *genai.GenerateContentResponseUsageMetadata) bool {
	if u == nil {
		return true
	}
	for _, n := range usageCounts(u) {
		w.signed(int64(*n))
	}
	w.number(uint64(len(u.CacheTokensDetails)))
	for _, d := range u.CacheTokensDetails {
		if d == nil {
			return false
		}
		w.name(string(d.Modality))
		w.signed(int64(d.TokenCount))
	}
	return len(u.CandidatesTokensDetails) == 0 && len(u.PromptTokensDetails) == 0 &&
		len(u.ToolUsePromptTokensDetails) == 0 && u.TrafficType == ""
}

func usageCounts(u *genai.GenerateContentResponseUsageMetadata) [6]*int32 {
	return [...]*int32{&u.CachedContentTokenCount, &u.CandidatesTokenCount, &u.PromptTokenCount, &u.ThoughtsTokenCount,
		&u.ToolUsePromptTokenCount, &u.TotalTokenCount}
}

// What a part of a content has.
const (
	hasText = 1 << iota
	isThought
	hasSignature
	hasCall
	hasAnswer
)

func (w *packer) content(c *genai.Content) bool {
	if c == nil {
		return true
	}
	w.name(c.Role)
	w.number(uint64(len(c.Parts)))
	for _, p := range c.Parts {
		if p == nil || !w.part(p) {
			return false
		}
	}
	return true
}

func (w *packer) part(p *genai.Part) bool {
	if p.MediaResolution != nil || p.CodeExecutionResult != nil || p.ExecutableCode != nil || p.FileData != nil ||
		p.InlineData != nil || p.VideoMetadata != nil || p.ToolCall != nil || p.ToolResponse != nil ||
		len(p.PartMetadata) > 0 || p.AudioTranscription != nil || p.MediaProcessing != "" || p.SpeechMetadata != nil {
		return false
	}
	flags := uint64(0)
	for i, is := range [...]bool{p.Text != "", p.Thought, len(p.ThoughtSignature) > 0, p.FunctionCall != nil,
		p.FunctionResponse != nil} {
		if is {
			flags |= 1 << i
		}
	}
	w.number(flags)
	if p.Text != "" {
		w.text(p.Text)
		if w.said == "" {
			w.said = p.Text
		}
	}
	if len(p.ThoughtSignature) > 0 {
		w.text(string(p.ThoughtSignature))
	}
	if c := p.FunctionCall; c != nil {
		if len(c.PartialArgs) > 0 || c.WillContinue != nil || !w.called(c.ID, c.Name, c.Args) {
			return false
		}
	}
	if r := p.FunctionResponse; r != nil {
		if len(r.Parts) > 0 || r.Scheduling != "" || r.WillContinue != nil || !w.called(r.ID, r.Name, r.Response) {
			return false
		}
	}
	return true
}

func (w *packer) called(id, name string, values map[string]any) bool {
	w.text(id)
	w.name(name)
	return w.values(values, 0)
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
	isSaid // the first text of the event
	isList
	isMap
)

func (w *packer) values(m map[string]any, depth int) bool {
	w.number(uint64(len(m)))
	for k, v := range m {
		w.name(k)
		if !w.value(v, depth+1) {
			return false
		}
	}
	return true
}

func (w *packer) value(v any, depth int) bool {
	kind := func(k byte) { w.buf = append(w.buf, k) }
	switch x := v.(type) {
	case nil:
		kind(isNil)
	case bool:
		if kind(isFalse); x {
			w.buf[len(w.buf)-1] = isTrue
		}
	case float64:
		if n := int64(x); float64(n) == x && n > -exact && n < exact && (n != 0 || !math.Signbit(x)) {
			kind(isWhole)
			w.signed(n)
			return true
		}
		kind(isFloat)
		w.buf = binary.LittleEndian.AppendUint64(w.buf, math.Float64bits(x))
	case int64:
		kind(isInt)
		w.signed(x)
	case uint64:
		kind(isUint)
		w.number(x)
	case string:
		if x != "" && x == w.said {
			kind(isSaid)
			return true
		}
		kind(isText)
		w.text(x)
	case []any:
		if kind(isList); x == nil || depth > maxNesting {
			return false
		}
		w.number(uint64(len(x)))
		for _, e := range x {
			if !w.value(e, depth+1) {
				return false
			}
		}
	case map[string]any:
		if kind(isMap); x == nil || depth > maxNesting {
			return false
		}
		return w.values(x, depth)
	default:
		return false
	}
	return true
}

// sameStart is how long the common beginning of two addresses is.
func sameStart(a, b Address) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// appendDiff appends data as it differs from another one: by turns how many bytes are as
// those in the same place there, and bytes that are not.
func appendDiff(dst, data, other []byte) []byte {
	const least = 4 // bytes that are worth a turn
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
