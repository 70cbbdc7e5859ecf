// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"errors"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1" // reads as encoding/json does, in half the time
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/session/mark"
)

// Decode reads an event from its JSON; e must be empty. The state delta has plain
// values; see [Plain]. Decode is for stores: it refuses a timestamp that is a number, and takes
// a third of the time of json.Unmarshal if AppendJSON has written the event.
func (e *Event) Decode(data []byte) error {
	if json.Unmarshal(data, (*ordinary)(e), repeated) == nil {
		return nil
	}
	*e = Event{}
	if err := jsonv1.Unmarshal(data, (*stored)(e)); err != nil {
		return err
	}
	return e.restore(data)
}

// ordinary is an event that is read field by field, without reflection. It reads what AppendJSON
// writes, and fails for other JSON: package jsonv1 then reads that as encoding/json would.
type ordinary Event

var (
	repeated   = jsontext.AllowDuplicateNames(true) // the last one counts, as for encoding/json
	errUnusual = errors.New("this event is not as AppendJSON writes it")
)

// UnmarshalJSONFrom reads the fields that most events have, and leaves rare ones to package json.
func (o *ordinary) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	e, r := (*Event)(o), &fieldReader{Decoder: dec}
	for name := r.open('{'); name.Kind() == '"'; name = r.next() {
		switch name.String() {
		case "actions":
			r.actions(&e.Actions)
		case "address":
			e.Address = Address(r.text())
		case "attempt":
			e.Attempt = int(r.number())
		case "author":
			r.name(&e.Author)
		case "branch":
			e.Branch = r.text()
		case "content":
			e.Content = cmp.Or(e.Content, new(genai.Content))
			r.content(e.Content)
		case "customMetadata":
			e.CustomMetadata = r.values(e.CustomMetadata)
		case "finishReason":
			e.FinishReason = genai.FinishReason(r.text())
		case "id":
			e.ID = r.text()
		case "invocationId":
			r.name(&e.InvocationID)
		case "iteration":
			e.Iteration = int(r.number())
		case "mark":
			e.Mark = cmp.Or(e.Mark, new(mark.Mark))
			r.mark(e.Mark)
		case "modelVersion":
			e.ModelVersion = r.text()
		case "seq":
			e.Seq = r.number()
		case "timestamp":
			r.fail(e.Timestamp.UnmarshalJSON(r.value()))
		case "turnComplete":
			r.rare(&e.TurnComplete)
		case "usageMetadata":
			r.rare(&e.UsageMetadata)
		default:
			r.fail(errUnusual)
		}
	}
	return r.err
}

// fieldReader reads fields. After an error it reads nothing.
type fieldReader struct {
	*jsontext.Decoder
	err error // the first one
}

func (r *fieldReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// next returns the next token: of an object the name of a field or the end. It is no token after an error.
func (r *fieldReader) next() (t jsontext.Token) {
	if r.err == nil {
		t, r.err = r.ReadToken()
	}
	return t
}

// open begins an object or a list, and returns its first token.
func (r *fieldReader) open(kind jsontext.Kind) jsontext.Token {
	if t := r.next(); t.Kind() != kind {
		r.fail(errUnusual)
	}
	return r.next()
}

func (r *fieldReader) text() string {
	t := r.next()
	if t.Kind() != '"' {
		r.fail(errUnusual)
		return ""
	}
	return t.String()
}

func (r *fieldReader) number() int64 {
	t := r.next()
	if t.Kind() != '0' {
		r.fail(errUnusual)
		return 0
	}
	n, err := strconv.ParseInt(t.String(), 10, 64)
	r.fail(err)
	return n
}

// value returns the JSON of a value, until the next call.
func (r *fieldReader) value() (data jsontext.Value) {
	if r.err == nil {
		data, r.err = r.ReadValue()
	}
	return data
}

// rare reads what this reader leaves to package json.
func (r *fieldReader) rare(to any) {
	if r.err == nil {
		r.err = json.UnmarshalDecode(r.Decoder, to, asV1)
	}
}

// name reads a text that other events have too. Package json keeps such texts, so that events share them.
func (r *fieldReader) name(to any) { r.rare(to) }

var asV1 = json.JoinOptions(jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false))

// any reads a value that begins with a token, in the form of [Plain].
func (r *fieldReader) any(t jsontext.Token) any {
	switch t.Kind() {
	case 'n':
		return nil
	case 't', 'f':
		return t.Bool()
	case '"':
		return t.String()
	case '0':
		n, err := number(t.String())
		r.fail(err)
		return n
	case '[':
		list := []any{}
		for t = r.next(); t.Kind() != ']' && r.err == nil; t = r.next() {
			list = append(list, r.any(t))
		}
		return list
	case '{':
		m := make(map[string]any)
		for t = r.next(); t.Kind() == '"'; t = r.next() {
			name := t.String()
			m[name] = r.any(r.next())
		}
		return m
	}
	r.fail(errUnusual)
	return nil
}

func (r *fieldReader) values(was map[string]any) map[string]any {
	t := r.next()
	if t.Kind() != '{' || was != nil {
		r.fail(errUnusual)
		return nil
	}
	return r.any(t).(map[string]any)
}

func (r *fieldReader) actions(a *EventActions) {
	for name := r.open('{'); name.Kind() == '"'; name = r.next() {
		switch name.String() {
		case "artifactDelta":
			r.rare(&a.ArtifactDelta)
		case "escalate":
			r.rare(&a.Escalate)
		case "exit":
			r.rare(&a.Exit)
		case "skipSummarization":
			r.rare(&a.SkipSummarization)
		case "stateDelta":
			a.StateDelta = r.values(a.StateDelta)
		case "transferToAgent":
			a.TransferToAgent = r.text()
		default:
			r.fail(errUnusual)
		}
	}
}

func (r *fieldReader) mark(m *mark.Mark) {
	for name := r.open('{'); name.Kind() == '"'; name = r.next() {
		switch name.String() {
		case "data":
			m.Data = slices.Clone([]byte(r.value()))
		case "kind":
			r.name(&m.Kind)
		default:
			r.fail(errUnusual)
		}
	}
}

func (r *fieldReader) content(c *genai.Content) {
	for name := r.open('{'); name.Kind() == '"'; name = r.next() {
		switch name.String() {
		case "parts":
			c.Parts = r.parts(c.Parts)
		case "role":
			r.name(&c.Role)
		default:
			r.fail(errUnusual)
		}
	}
}

func (r *fieldReader) parts(was []*genai.Part) []*genai.Part {
	t := r.open('[')
	if was != nil {
		r.fail(errUnusual)
	}
	parts := []*genai.Part{}
	for ; t.Kind() == '{'; t = r.next() {
		parts = append(parts, r.part())
	}
	if t.Kind() != ']' {
		r.fail(errUnusual)
	}
	return parts
}

// part reads a part whose object has begun.
func (r *fieldReader) part() *genai.Part {
	p := new(genai.Part)
	for name := r.next(); name.Kind() == '"'; name = r.next() {
		switch name.String() {
		case "functionCall":
			r.rare(&p.FunctionCall)
		case "functionResponse":
			r.rare(&p.FunctionResponse)
		case "text":
			p.Text = r.text()
		case "thought":
			r.rare(&p.Thought)
		default:
			r.fail(errUnusual)
		}
	}
	return p
}
