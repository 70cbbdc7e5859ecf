// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// slowly is the canonical JSON as seals were first made over it: what json.Marshal says, read
// as plain values and said again.
func slowly(ev *session.Event) ([]byte, error) {
	plain := *ev.WithoutTemp()
	plain.Timestamp = ev.Timestamp.UTC().Truncate(time.Microsecond)
	first, err := json.Marshal(&plain)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(first))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// readBack is the event as a store gives it back.
func readBack(t *testing.T, ev *session.Event) *session.Event {
	t.Helper()
	data, err := json.Marshal(ev.WithoutTemp())
	if err != nil {
		t.Fatal(err)
	}
	back := new(session.Event)
	if err := back.Decode(data); err != nil {
		t.Fatal(err)
	}
	return back
}

func checkCanonical(t *testing.T, ev *session.Event) {
	t.Helper()
	checkJSON(t, ev)
	_, err := slowly(ev)
	got, failed := ev.AppendCanonical([]byte("before "))
	if err != nil || failed != nil {
		if (err == nil) != (failed == nil) {
			t.Fatalf("error %v, want %v", failed, err)
		}
		return
	}
	want, err := slowly(readBack(t, ev))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != "before "+string(want) {
		t.Fatalf("\n got %s\nwant before %s", got, want)
	}
	again, err := readBack(t, ev).AppendCanonical(nil)
	if err != nil || !bytes.Equal(again, want) {
		t.Fatalf("read back: %v\n got %s\nwant %s", err, again, want)
	}
}

// checkJSON demands that the JSON for stores is that of json.Marshal, with sorted fields, and the data of a mark as they are.
func checkJSON(t *testing.T, ev *session.Event) {
	t.Helper()
	first, err := json.Marshal(ev)
	got, failed := ev.AppendJSON([]byte("before "))
	if err != nil || failed != nil {
		if (err == nil) != (failed == nil) || string(got) != "before " {
			t.Fatalf("%s, error %v, want %v", got, failed, err)
		}
		return
	}
	row, ok := bytes.CutPrefix(got, []byte("before "))
	if want := sorted(t, first); !ok || string(sorted(t, row)) != string(want) || ev.Mark == nil && string(row) != string(want) {
		t.Fatalf("\n got %s\nwant before %s", got, want)
	}
	var was, is struct {
		Mark struct{ Data json.RawMessage }
	}
	if json.Unmarshal(first, &was) != nil || json.Unmarshal(row, &is) != nil || !bytes.Equal(was.Mark.Data, is.Mark.Data) {
		t.Fatalf("the data of the mark\n got %s\nwant %s", is.Mark.Data, was.Mark.Data)
	}
}

// sorted is JSON with the fields of all objects by name.
func sorted(t *testing.T, text []byte) []byte {
	t.Helper()
	var v any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCanonicalEvents(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 123456789, time.FixedZone("x", 5400))
	for name, ev := range map[string]*session.Event{
		"empty":      {},
		"time":       {Timestamp: at},
		"year 0":     {Timestamp: time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)},
		"year 10000": {Timestamp: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
		"texts":      {Author: "a\"\\\b\f\n\r\t\x00\x1f\x7f", ID: "<b>&</b>", InvocationID: "\u2028\u2029é漢😀\ufffd", Branch: "\xff\xfeé\xe2\x80"},
		"temp":       {Actions: session.EventActions{StateDelta: map[string]any{"temp:x": func() {}}}},
		"no words":   {LLMResponse: saying(&genai.Content{Parts: []*genai.Part{nil, {}}})},
		"calls": {LLMResponse: saying(&genai.Content{Role: "model", Parts: []*genai.Part{
			{FunctionCall: &genai.FunctionCall{Name: "f", ID: "1", Args: map[string]any{
				"b": []any{nil, true, math.Copysign(0, -1), 1e21, 1e-7, 5e-324, math.MaxFloat64, int64(math.MaxInt64), uint64(math.MaxUint64), float32(0.1), json.Number("1.0")},
				"a": map[string]any{"z": map[string]any(nil), "y": []any(nil), "x": json.RawMessage(`{"b":1,"a":2}`), "": "\xff"},
			}}},
			{FunctionResponse: &genai.FunctionResponse{Name: "f", Response: map[string]any{"\xff": 1.0, "\xfe": 2.0}}},
			{InlineData: &genai.Blob{Data: []byte{0, 1, 2, 255}, MIMEType: "image/png"}, ThoughtSignature: []byte("sign")},
			{Thought: true, Text: "hm", VideoMetadata: &genai.VideoMetadata{StartOffset: 1500 * time.Millisecond}},
		}})},
		"not a number": {LLMResponse: saying(genai.NewContentFromFunctionCall("f", map[string]any{"a": []any{math.NaN()}}, "model"))},
		"no JSON":      {LLMResponse: saying(genai.NewContentFromFunctionCall("f", map[string]any{"a": func() {}}, "model"))},
		"mark":         {Mark: &mark.Mark{Kind: "k", Data: json.RawMessage(` {"b" : "\u0041<", "a" : {"d":1,"c":2.50}, "b":3}`)}},
		"no mark":      {Mark: &mark.Mark{Kind: "k", Data: json.RawMessage(`{"a":`)}},
		"exit":         {Actions: session.EventActions{Exit: &session.Exit{Score: new(0.5), By: "critic"}, Escalate: true}},
		"files":        {Actions: session.EventActions{ArtifactDelta: map[string]int64{"b": math.MaxInt64, "a": 0}}},
		"odd files":    {Actions: session.EventActions{ArtifactDelta: map[string]int64{"b": 1, "\xff": 2, "\xfe": 3}}},
	} {
		t.Run(name, func(t *testing.T) { checkCanonical(t, ev) })
	}
}

func saying(c *genai.Content) model.LLMResponse { return model.LLMResponse{Content: c} }

// A time that has no JSON in its own zone has one in UTC.
func TestCanonicalTimeOfAFarZone(t *testing.T) {
	ev := &session.Event{Timestamp: time.Date(2026, 3, 4, 5, 6, 7, 0, time.FixedZone("far", 25*3600))}
	checkJSON(t, ev)
	if data, err := ev.AppendCanonical(nil); err != nil || !strings.Contains(string(data), `"2026-03-03T04:06:07Z"`) {
		t.Errorf("%s, error %v", data, err)
	}
}

// Every field of an event, and of all that it holds, is in its canonical JSON.
func TestCanonicalRandomEvents(t *testing.T) {
	filler := filler{dice: rand.New(rand.NewPCG(3, 4))}
	for range longtest.N(500, 50_000) {
		ev := new(session.Event)
		filler.rare = filler.dice.IntN(4) // some events have much, others little
		filler.fill(reflect.ValueOf(ev).Elem(), 0)
		ev.Omitted = 0
		if _, err := slowly(ev); err != nil {
			t.Fatal(err)
		}
		checkCanonical(t, ev)
	}
}

// filler fills values at random.
type filler struct {
	dice *rand.Rand
	rare int
}

func (f *filler) text() string {
	texts := []string{"", "a", "line\nline", `"quoted\"`, "\x00\x1f\x7f", "<b>&</b>", "\u2028é漢😀", "\xff\xfe", "temp:a", "refrain:run",
		strings.Repeat("long ", 300)}
	return texts[f.dice.IntN(len(texts))]
}

func (f *filler) any(depth int) any {
	switch n := f.dice.IntN(12); {
	case n < 2 && depth < 4:
		m := map[string]any{}
		for range f.dice.IntN(4) {
			m[f.text()+fmt.Sprint(f.dice.IntN(9))] = f.any(depth + 1)
		}
		return m
	case n < 3 && depth < 4:
		list := make([]any, f.dice.IntN(3))
		for i := range list {
			list[i] = f.any(depth + 1)
		}
		return list
	case n < 5:
		return []any{f.dice.NormFloat64() * 1e9, f.dice.Int64(), f.dice.Int(), f.dice.Uint64(), float64(f.dice.IntN(9))}[f.dice.IntN(5)]
	case n < 6:
		return []any{nil, true, false}[f.dice.IntN(3)]
	}
	return f.text()
}

func (f *filler) fill(v reflect.Value, depth int) {
	if f.dice.IntN(8) < f.rare*2 || depth > 7 {
		return
	}
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = time.Unix(f.dice.Int64N(1e10), f.dice.Int64N(1e9))
		return
	case *time.Duration:
		*x = time.Duration(f.dice.IntN(1000)) * time.Second
		return
	case *json.RawMessage:
		*x, _ = json.Marshal(f.any(0))
		return
	case *any:
		*x = f.any(0)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(f.text())
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Int16, reflect.Int8:
		v.SetInt(f.dice.Int64N(100))
	case reflect.Uint8:
		v.SetUint(f.dice.Uint64N(256))
	case reflect.Float64, reflect.Float32:
		v.SetFloat(f.dice.NormFloat64())
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), depth+1)
	case reflect.Struct:
		for _, field := range v.Fields() {
			f.fill(field, depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), f.dice.IntN(3), 2))
		for i := range v.Len() {
			f.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range f.dice.IntN(3) {
			val := reflect.New(v.Type().Elem()).Elem()
			f.fill(val, depth+1)
			v.SetMapIndex(reflect.ValueOf(f.text()).Convert(v.Type().Key()), val)
		}
	default:
		panic(fmt.Sprint("cannot fill ", v.Type()))
	}
}

// ordinary is what a step says in most runs.
func ordinary() *session.Event {
	ev := &session.Event{ID: "17", Seq: 17, Author: "critic", InvocationID: "e-1", Address: "story/refine[3]/critic", Iteration: 3, Attempt: 1,
		Timestamp: time.Unix(5, 123456000)}
	ev.Content = genai.NewContentFromText("The critic says: \"shorten\" the last line.\n", genai.RoleModel)
	ev.Actions.StateDelta = map[string]any{"draft": "The critic says", "score": 0.7, "open": []any{"a", 1.0, map[string]any{"b": nil}}}
	ev.Mark = &mark.Mark{Kind: mark.KindStepFinished, Data: json.RawMessage(`{"seconds":0.001,"outcome":{"step":1,"iteration":3}}`)}
	return ev
}

func TestCanonicalRefusesAnExcerpt(t *testing.T) {
	ev := ordinary()
	ev.Omitted = 5
	if _, err := ev.AppendCanonical(nil); err == nil || !strings.Contains(err.Error(), "Log.Full") {
		t.Errorf("error %v", err)
	}
}

func FuzzCanonicalEvent(f *testing.F) {
	for _, ev := range []*session.Event{{}, ordinary()} {
		data, err := json.Marshal(ev)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"actions":{"stateDelta":{"a":9007199254740993,"temp:b":1}},"content":{"parts":[{"functionCall":{"args":{"x":1e30}}}]},"mark":{"data":[1,{"b":"\/","a":0}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		ev := new(session.Event)
		if json.Unmarshal(data, ev) != nil {
			return
		}
		if _, err := json.Marshal(ev); err == nil {
			checkCanonical(t, ev)
		}
	})
}

// The timestamp of a canonical event is that of package time, in UTC and in microseconds.
func TestCanonicalTimestamp(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	at := []time.Time{{}, time.Unix(0, 0), time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.FixedZone("", -3600)), time.Date(-1, 1, 1, 0, 0, 0, 1, time.UTC),
		time.Date(0, 1, 1, 0, 0, 0, 1000, time.UTC), time.Unix(-1, 1), time.Unix(1e9, 120_000_000)}
	for range 2000 {
		at = append(at, time.Unix(dice.Int64N(2e11)-5e10, dice.Int64N(1e9)).In(time.FixedZone("", dice.IntN(80000)-40000)),
			time.Unix(dice.Int64N(2e9), dice.Int64N(1e3)*1e6))
	}
	for _, at := range at {
		want, failed := json.Marshal(at.UTC().Truncate(time.Microsecond))
		got, err := (&session.Event{Timestamp: at}).AppendCanonical(nil)
		if (err == nil) != (failed == nil) || err == nil && !bytes.Contains(got, append([]byte(`"timestamp":`), want...)) {
			t.Errorf("%v: got %s and error %v, want %s and error %v", at, got, err, want, failed)
		}
	}
}
