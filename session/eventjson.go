// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	jsonv1 "github.com/go-json-experiment/json/v1" // reads as encoding/json does, in half the time
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/session/internal/canonical"
	"github.com/refrain-dev/refrain/session/mark"
)

// AppendJSON appends the event's JSON: the output of json.Marshal, with the fields of all objects sorted by
// name, except in the data of its mark. AppendJSON is for stores, because it is several times as fast as
// json.Marshal. It fails for an event that JSON cannot hold.
func (e *Event) AppendJSON(dst []byte) ([]byte, error) {
	w := eventWriter{Writer: canonical.Writer{Buf: dst}, exactly: true}
	if w.event(e); w.err != nil {
		return dst, w.err
	}
	return w.Buf, nil
}

// AppendCanonical appends the event's canonical JSON, from which seals are computed: the event as a store
// returns it, with the fields of all objects sorted by name, without temp: keys, and with the timestamp in
// UTC and microseconds. [Event.Decode] reads it. AppendCanonical fails for an event that JSON cannot hold,
// and for an event without its long texts; see [View.Outline].
func (e *Event) AppendCanonical(dst []byte) ([]byte, error) {
	if e.Omitted > 0 {
		return dst, fmt.Errorf("encode event %d: its long texts are cut off; read the event with View.Whole", e.Seq)
	}
	out, same, err := e.appendCanonical(dst)
	if err == nil && !same {
		var back Event
		if back.Decode(out[len(dst):]) == nil {
			out, _, err = back.appendCanonical(dst)
		}
	}
	if err != nil {
		return dst, fmt.Errorf("encode event %d: %w", e.Seq, err)
	}
	return out, nil
}

// appendCanonical appends the event's canonical JSON as the event is. same says that the event
// has the same JSON when it was read back.
func (e *Event) appendCanonical(dst []byte) (_ []byte, same bool, err error) {
	w := eventWriter{Writer: canonical.Writer{Buf: dst}}
	w.event(e.Kept())
	return w.Buf, !w.Other, w.err
}

// eventWriter writes an event: each method writes the fields in the order of their names. What
// is rare in an event, it leaves to package json.
type eventWriter struct {
	canonical.Writer
	exactly bool  // the timestamp
	err     error // the first one
}

// open begins an object. The methods below write its fields.
func (w *eventWriter) open() { w.Buf = append(w.Buf, '{') }

func (w *eventWriter) close() { w.Buf = append(w.Buf, '}') }

// name begins a field. It gets the name as it stands behind another field, such as `,"id":`.
func (w *eventWriter) name(name string) {
	if w.Buf[len(w.Buf)-1] == '{' {
		name = name[1:]
	}
	w.Buf = append(w.Buf, name...)
}

// must writes a field even if it is empty; the other methods omit empty fields.
func (w *eventWriter) must(name, s string) {
	w.name(name)
	w.Text(s)
}

func (w *eventWriter) text(name, s string) {
	if s != "" {
		w.must(name, s)
	}
}

func (w *eventWriter) claim(name string, is bool) {
	if is {
		w.name(name)
		w.Buf = append(w.Buf, "true"...)
	}
}

func (w *eventWriter) number(name string, n int64) {
	if n != 0 {
		w.name(name)
		w.Buf = strconv.AppendInt(w.Buf, n, 10)
	}
}

func (w *eventWriter) values(name string, m map[string]any) {
	if len(m) > 0 {
		w.name(name)
		w.note(w.Map(m))
	}
}

// bytes writes base64.
func (w *eventWriter) bytes(name string, data []byte) {
	if len(data) > 0 {
		w.name(name)
		w.note(w.JSON(data))
	}
}

// rare writes what this writer leaves to package json.
func (w *eventWriter) rare(name string, is bool, v any) {
	if is {
		w.name(name)
		w.Other = true
		w.note(w.JSON(v))
	}
}

func (w *eventWriter) note(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *eventWriter) event(e *Event) {
	w.open()
	w.name(`,"actions":`)
	w.actions(&e.Actions)
	w.text(`,"address":`, string(e.Address))
	w.number(`,"attempt":`, int64(e.Attempt))
	w.must(`,"author":`, e.Author)
	w.rare(`,"avgLogprobs":`, e.AvgLogprobs != 0, e.AvgLogprobs)
	w.text(`,"branch":`, e.Branch)
	w.rare(`,"citationMetadata":`, e.CitationMetadata != nil, e.CitationMetadata)
	if e.Content != nil {
		w.name(`,"content":`)
		w.content(e.Content)
	}
	w.values(`,"customMetadata":`, e.CustomMetadata)
	w.text(`,"errorCode":`, e.ErrorCode)
	w.text(`,"errorMessage":`, e.ErrorMessage)
	w.text(`,"finishReason":`, string(e.FinishReason))
	w.rare(`,"groundingMetadata":`, e.GroundingMetadata != nil, e.GroundingMetadata)
	w.must(`,"id":`, e.ID)
	w.claim(`,"interrupted":`, e.Interrupted)
	w.must(`,"invocationId":`, e.InvocationID)
	w.number(`,"iteration":`, int64(e.Iteration))
	w.rare(`,"logprobsResult":`, e.LogprobsResult != nil, e.LogprobsResult)
	w.rare(`,"longRunningToolIds":`, len(e.LongRunningToolIDs) > 0, e.LongRunningToolIDs)
	if m := e.Mark; m != nil {
		w.name(`,"mark":`)
		w.open()
		if len(m.Data) > 0 {
			w.name(`,"data":`)
			w.data(m)
		}
		w.must(`,"kind":`, string(m.Kind))
		w.close()
	}
	w.text(`,"modelVersion":`, e.ModelVersion)
	w.claim(`,"partial":`, e.Partial)
	w.number(`,"seq":`, e.Seq)
	w.name(`,"timestamp":`)
	w.time(e.Timestamp)
	w.claim(`,"turnComplete":`, e.TurnComplete)
	if e.UsageMetadata != nil {
		w.name(`,"usageMetadata":`)
		w.usage(e.UsageMetadata)
	}
	w.close()
}

// data writes the data of a mark.
func (w *eventWriter) data(m *mark.Mark) {
	var err error
	switch data := m.Data; {
	case m.Sorted:
		w.Buf = append(w.Buf, data...)
	case !w.exactly:
		w.Buf, err = canonical.Append(w.Buf, data)
	case bytes.ContainsAny(data, "<>&\u2028\u2029"): // json.Marshal escapes them
		var text []byte
		text, err = json.Marshal(data)
		w.Buf = append(w.Buf, text...)
	default:
		buf := bytes.NewBuffer(w.Buf)
		if err = json.Compact(buf, data); err == nil {
			w.Buf = buf.Bytes()
		}
	}
	w.note(err)
}

// time writes a point in time; in a canonical form as fine as stores are.
func (w *eventWriter) time(t time.Time) {
	if !w.exactly {
		t = t.UTC().Truncate(time.Microsecond)
	}
	text, err := t.AppendText(append(w.Buf, '"')) // in the format of its JSON
	if err != nil {
		w.note(err)
		return
	}
	w.Buf = append(text, '"')
}

func (w *eventWriter) actions(a *EventActions) {
	w.open()
	w.rare(`,"artifactDelta":`, len(a.ArtifactDelta) > 0, a.ArtifactDelta)
	w.claim(`,"escalate":`, a.Escalate)
	w.rare(`,"exit":`, a.Exit != nil, a.Exit)
	w.rare(`,"requestedToolConfirmations":`, len(a.RequestedToolConfirmations) > 0, a.RequestedToolConfirmations)
	w.claim(`,"skipSummarization":`, a.SkipSummarization)
	w.values(`,"stateDelta":`, a.StateDelta)
	w.text(`,"transferToAgent":`, a.TransferToAgent)
	w.close()
}

func (w *eventWriter) content(c *genai.Content) {
	w.open()
	if len(c.Parts) > 0 {
		w.name(`,"parts":`)
		w.Buf = append(w.Buf, '[')
		for i, p := range c.Parts {
			if i > 0 {
				w.Buf = append(w.Buf, ',')
			}
			if p == nil {
				w.Buf = append(w.Buf, "null"...)
				continue
			}
			w.part(p)
		}
		w.Buf = append(w.Buf, ']')
	}
	w.text(`,"role":`, c.Role)
	w.close()
}

func (w *eventWriter) part(p *genai.Part) {
	rest := *p
	rest.FunctionCall, rest.FunctionResponse, rest.InlineData, rest.Text, rest.Thought, rest.ThoughtSignature = nil, nil, nil, "", false, nil
	if !reflect.ValueOf(&rest).Elem().IsZero() {
		w.Other = true
		w.note(w.JSON(p))
		return
	}
	w.open()
	if p.FunctionCall != nil {
		w.name(`,"functionCall":`)
		w.call(p.FunctionCall)
	}
	if p.FunctionResponse != nil {
		w.name(`,"functionResponse":`)
		w.response(p.FunctionResponse)
	}
	if d := p.InlineData; d != nil {
		w.name(`,"inlineData":`)
		w.open()
		w.bytes(`,"data":`, d.Data)
		w.text(`,"displayName":`, d.DisplayName)
		w.text(`,"mimeType":`, d.MIMEType)
		w.close()
	}
	w.text(`,"text":`, p.Text)
	w.claim(`,"thought":`, p.Thought)
	w.bytes(`,"thoughtSignature":`, p.ThoughtSignature)
	w.close()
}

func (w *eventWriter) call(c *genai.FunctionCall) {
	w.open()
	w.values(`,"args":`, c.Args)
	w.text(`,"id":`, c.ID)
	w.text(`,"name":`, c.Name)
	w.rare(`,"partialArgs":`, len(c.PartialArgs) > 0, c.PartialArgs)
	w.rare(`,"willContinue":`, c.WillContinue != nil, c.WillContinue)
	w.close()
}

func (w *eventWriter) response(r *genai.FunctionResponse) {
	w.open()
	w.text(`,"id":`, r.ID)
	w.text(`,"name":`, r.Name)
	w.rare(`,"parts":`, len(r.Parts) > 0, r.Parts)
	w.values(`,"response":`, r.Response)
	w.text(`,"scheduling":`, string(r.Scheduling))
	w.rare(`,"willContinue":`, r.WillContinue != nil, r.WillContinue)
	w.close()
}

func (w *eventWriter) usage(u *genai.GenerateContentResponseUsageMetadata) {
	w.open()
	w.rare(`,"cacheTokensDetails":`, len(u.CacheTokensDetails) > 0, u.CacheTokensDetails)
	w.number(`,"cachedContentTokenCount":`, int64(u.CachedContentTokenCount))
	w.number(`,"candidatesTokenCount":`, int64(u.CandidatesTokenCount))
	w.rare(`,"candidatesTokensDetails":`, len(u.CandidatesTokensDetails) > 0, u.CandidatesTokensDetails)
	w.number(`,"promptTokenCount":`, int64(u.PromptTokenCount))
	w.rare(`,"promptTokensDetails":`, len(u.PromptTokensDetails) > 0, u.PromptTokensDetails)
	w.number(`,"thoughtsTokenCount":`, int64(u.ThoughtsTokenCount))
	w.number(`,"toolUsePromptTokenCount":`, int64(u.ToolUsePromptTokenCount))
	w.rare(`,"toolUsePromptTokensDetails":`, len(u.ToolUsePromptTokensDetails) > 0, u.ToolUsePromptTokensDetails)
	w.number(`,"totalTokenCount":`, int64(u.TotalTokenCount))
	w.text(`,"trafficType":`, string(u.TrafficType))
	w.close()
}

// stored is an event as this package writes it: without UnmarshalJSON.
type stored Event

// UnmarshalJSON reads an event. The state delta has plain values; see [Plain]. The
// timestamp may also be a number, as Python's ADK writes it: seconds since 1970, read
// to the microsecond.
func (e *Event) UnmarshalJSON(data []byte) error {
	err := jsonv1.Unmarshal(data, (*stored)(e))
	if err == nil {
		return e.restore(data)
	}
	var number struct {
		Timestamp *float64 `json:"timestamp"`
	}
	if jsonv1.Unmarshal(data, &number) != nil || number.Timestamp == nil {
		return err
	}
	at := time.UnixMicro(int64(math.Round(*number.Timestamp * 1e6))).UTC()
	if y := at.Year(); y < 1 || y > 9999 || math.Abs(*number.Timestamp) > 1e12 {
		return fmt.Errorf("timestamp %v of an event is not in seconds since 1970", *number.Timestamp)
	}
	rest := struct {
		*stored
		Timestamp json.RawMessage `json:"timestamp"` // takes the place of the event's
	}{stored: (*stored)(e)}
	if err := jsonv1.Unmarshal(data, &rest); err != nil {
		return err
	}
	e.Timestamp = at
	return e.restore(data)
}
