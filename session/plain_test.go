// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/store"
)

// level is text with a method, as a Go program may have it.
type level int

func (l level) MarshalText() ([]byte, error) { return []byte("level " + strconv.Itoa(int(l))), nil }

type finding struct {
	Title string        `json:"title"`
	Count int           `json:"count,omitempty"`
	Took  time.Duration `json:"took"`
	Data  []byte        `json:"data"`
	ID    uint64        `json:"id"`
	Next  *finding      `json:"next,omitempty"`

	hidden int
}

var plainValues = []struct {
	name        string
	value, want any
}{
	{"nil", nil, nil},
	{"true", true, true},
	{"text", "naïve <b> \u2028", "naïve <b> \u2028"},
	{"torn text", "a\xffb", "a\ufffdb"},
	{"float64", 7.25, 7.25},
	{"negative zero", math.Copysign(0, -1), math.Copysign(0, -1)},
	{"float32", float32(0.5), 0.5},
	{"int", 3, 3.0},
	{"int8", int8(-3), -3.0},
	{"uint16", uint16(3), 3.0},
	{"int64", int64(3), 3.0},
	{"2^53", 1 << 53, 9007199254740992.0},
	{"2^53+1", 1<<53 + 1, int64(9007199254740993)},
	{"-2^53", -1 << 53, -9007199254740992.0},
	{"-2^53-1", -1<<53 - 1, int64(-9007199254740993)},
	{"the largest int64", int64(math.MaxInt64), int64(math.MaxInt64)},
	{"the smallest int64", int64(math.MinInt64), int64(math.MinInt64)},
	{"2^63", uint64(1) << 63, uint64(1) << 63},
	{"the largest uint64", uint64(math.MaxUint64), uint64(math.MaxUint64)},
	{"small uint64", uint64(7), 7.0},
	{"1e17", 1e17, int64(1e17)},
	{"2^60 as float64", float64(1 << 60), int64(1 << 60)},
	{"2^63 as float64", float64(1 << 63), uint64(1 << 63)},
	{"-2^63 as float64", -float64(1 << 63), int64(math.MinInt64)},
	{"2^64 as float64", float64(1 << 64), float64(1 << 64)},
	{"1e21", 1e21, 1e21},
	{"the largest float64", math.MaxFloat64, math.MaxFloat64},
	{"json.Number", json.Number("9007199254740993"), int64(9007199254740993)},
	{"json.Number with an exponent", json.Number("1e2"), 100.0},
	{"large json.Number", json.Number("123456789012345678901234567890"), 123456789012345678901234567890.0},
	{"big.Int", new(big.Int).SetUint64(math.MaxUint64), uint64(math.MaxUint64)},
	{"Duration", 90 * time.Second, 9e10},
	{"Time", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "2026-01-02T03:04:05Z"},
	{"bytes", []byte("data"), "ZGF0YQ=="},
	{"json.RawMessage", json.RawMessage(`{"n": 9007199254740993}`), map[string]any{"n": int64(9007199254740993)}},
	{"text by a method", level(3), "level 3"},
	{"pointer", new(3), 3.0},
	{"nil pointer", (*int)(nil), nil},
	{"nil slice", []string(nil), nil},
	{"nil map", map[string]any(nil), nil},
	{"nil list", []any(nil), nil},
	{"strings", []string{"a"}, []any{"a"}},
	{"list", []any{1, nil, "a", []int{2}}, []any{1.0, nil, "a", []any{2.0}}},
	{"plain list", []any{1.0, nil, "a", map[string]any{"b": false}}, []any{1.0, nil, "a", map[string]any{"b": false}}},
	{"map", map[string]any{"a": 1, "b\xff": 2.0}, map[string]any{"a": 1.0, "b\ufffd": 2.0}},
	{"map by numbers", map[int]bool{1: true}, map[string]any{"1": true}},
	{"map of maps", map[string]map[string]int{"a": {"b": 1}}, map[string]any{"a": map[string]any{"b": 1.0}}},
	{"struct", finding{Title: "t", Took: 1, Data: []byte("d"), ID: math.MaxUint64, hidden: 1}, map[string]any{
		"title": "t", "took": 1.0, "data": "ZA==", "id": uint64(math.MaxUint64),
	}},
	{"empty list", []any{}, []any{}},
	{"empty map", map[string]any{}, map[string]any{}},
}

// LOOP 29, G3: a Go value is turned into its JSON form when it is set, and is the same
// after it was read back.
func TestStateHoldsJSON(t *testing.T) {
	for _, tt := range plainValues {
		t.Run(tt.name, func(t *testing.T) {
			got, err := session.Plain(tt.value)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Fatalf("plain (-want +got):\n%s", diff)
			}
			again, err := session.Plain(got)
			if diff := cmp.Diff(tt.want, again); diff != "" || err != nil {
				t.Errorf("what is plain stays as it is: %v (-want +got):\n%s", err, diff)
			}
			data, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			read, err := session.PlainJSON(data)
			if diff := cmp.Diff(tt.want, read); diff != "" || err != nil {
				t.Errorf("read from %s: %v (-want +got):\n%s", data, err, diff)
			}

			v := newView()
			set(t, v, "", "k", tt.value)
			wantValue(t, v, "", "k", tt.want)
			v = newView()
			v.Apply(&session.Event{Seq: 1, Actions: session.EventActions{StateDelta: map[string]any{"k": tt.value}}})
			wantValue(t, v, "", "k", tt.want)
			if diff := cmp.Diff(map[string]any{"k": tt.want}, v.Events().At(0).Actions.StateDelta); diff != "" {
				t.Errorf("the event that a view shows (-want +got):\n%s", diff)
			}
			if tt.value != nil && tt.want != nil {
				v = session.NewView(session.ViewConfig{State: map[string]any{"k": tt.value}})
				wantValue(t, v, "", "k", tt.want)
			}
		})
	}
}

// LOOP 29, G8: numbers have the same type and digits in every event that is read.
func TestEventsAreReadWithAllDigits(t *testing.T) {
	delta := map[string]any{}
	for _, tt := range plainValues {
		delta[tt.name] = tt.value
	}
	ev := &session.Event{Author: "a", Actions: session.EventActions{StateDelta: delta}}
	ev.CustomMetadata = map[string]any{"refrain:temp": map[string]any{"n": int64(math.MaxInt64)}}
	if err := ev.Actions.Normalize(); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(ev)
	if err != nil {
		t.Fatal(err)
	}
	old := new(session.Event)
	if err := json.Unmarshal([]byte(strings.Replace(string(data), `"timestamp":"0001-01-01T00:00:00Z"`, `"timestamp":0`, 1)), old); err != nil {
		t.Fatal(err)
	}
	plain := new(session.Event)
	if err := json.Unmarshal(data, plain); err != nil {
		t.Fatal(err)
	}
	stored := new(session.Event)
	err = stored.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]*session.Event{"with a number for its time": old, "by encoding/json": plain, "by a store": stored} {
		if diff := cmp.Diff(ev.Actions.StateDelta, got.Actions.StateDelta); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(ev.CustomMetadata, got.CustomMetadata); diff != "" {
			t.Errorf("%s: metadata (-want +got):\n%s", name, diff)
		}
	}
}

// LOOP 29: what cannot be written is an error that names the key, and changes nothing.
func TestStateRefusesWhatJSONCannotHold(t *testing.T) {
	self := map[string]any{}
	self["self"] = self
	list := []any{nil}
	list[0] = list
	for name, tt := range map[string]struct {
		value any
		says  string
	}{
		"NaN":                 {math.NaN(), `state key "k": NaN has no JSON form`},
		"+Inf":                {math.Inf(1), `state key "k": +Inf has no JSON form`},
		"a float32":           {float32(math.Inf(-1)), `state key "k": json: unsupported value: -Inf`},
		"in a list":           {[]any{1, math.NaN()}, `state key "k": element 1: NaN`},
		"in a map":            {map[string]any{"a": []any{map[string]any{"b": math.Inf(1)}}}, `state key "k": field "a": element 0: field "b": +Inf`},
		"in a typed slice":    {[]float64{math.NaN()}, `state key "k": json: unsupported value: NaN`},
		"in a struct":         {struct{ F float64 }{math.NaN()}, `NaN`},
		"a function":          {func() {}, `unsupported type: func()`},
		"a channel":           {make(chan int), `unsupported type: chan int`},
		"a complex number":    {1i, `unsupported type: complex128`},
		"a map that holds it": {self, `cycle`},
		"a list that does":    {list, `cycle`},
		"no number":           {json.Number("abc"), `invalid number literal`},
		"too large a number":  {json.RawMessage("1e999"), `1e999`},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(what string, err error) {
				t.Helper()
				if !errors.Is(err, session.ErrNotJSON) || !errors.Is(err, session.ErrInvalid) || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("%s: got error %v, want ErrNotJSON that says %s", what, err, tt.says)
				}
			}
			v := newView()
			set(t, v, "", "k", "before")
			check("Set", v.State().Set("k", tt.value))
			delta := map[string]any{"a": 1, "k": tt.value, "z": 2}
			_, err := session.Normalize(delta)
			check("Normalize", err)

			svc := session.InMemoryService()
			_, err = svc.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "s1", State: delta})
			check("Create", err)
			made, err := svc.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
			if err != nil {
				t.Fatal(err)
			}
			ev := &session.Event{Actions: session.EventActions{StateDelta: delta}}
			check("AppendEvent", svc.AppendEvent(t.Context(), made.Session, ev))
			check("AppendEvents", svc.(store.BulkAppender).AppendEvents(t.Context(), made.Session, []*session.Event{{}, ev}))
			if n := made.Session.Events().Len(); n != 0 || ev.Seq != 0 {
				t.Errorf("%d events are there, and the one that was refused has number %d", n, ev.Seq)
			}

			v.Apply(&session.Event{Seq: 1, Actions: session.EventActions{StateDelta: delta}}) // another store's
			wantValue(t, v, "", "k", "before")
			wantValue(t, v, "", "z", 2.0)
		})
	}
	for _, key := range []string{"k\xff", "k\x00"} {
		if _, err := session.Normalize(map[string]any{key: 1}); !errors.Is(err, session.ErrNotJSON) {
			t.Errorf("key %q: got error %v", key, err)
		}
	}
}

// Somebody's map is never changed.
func TestNormalizeCopies(t *testing.T) {
	inner := map[string]any{"n": 1}
	mine := map[string]any{"a": inner, "b": 2}
	got, err := session.Normalize(mine)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"a": map[string]any{"n": 1.0}, "b": 2.0}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"a": map[string]any{"n": 1}, "b": 2}, mine); diff != "" {
		t.Errorf("the caller's map (-want +got):\n%s", diff)
	}
	ev := session.EventActions{StateDelta: mine}
	if err := ev.Normalize(); err != nil || mine["b"] != 2 || ev.StateDelta["b"] != 2.0 {
		t.Errorf("got %v and %v, %v", mine, ev.StateDelta, err)
	}
}

// Every number that JSON can hold keeps its value and its type on the way through a log.
func FuzzPlainNumber(f *testing.F) {
	for _, n := range []uint64{0, 1, 1 << 53, 1<<53 + 1, 1 << 63, math.MaxUint64} {
		f.Add(n)
	}
	f.Fuzz(samePlainNumber)
}

func TestPlainNumbers(t *testing.T) {
	longtest.WithoutRace(t)
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		samePlainNumber(t, r.Uint64()>>r.IntN(64))
	}
}

func samePlainNumber(t *testing.T, bits uint64) {
	for _, v := range []any{bits, int64(bits), -int64(bits), math.Float64frombits(bits), float64(bits), -float64(bits)} {
		p, err := session.Plain(v)
		if f, ok := v.(float64); ok && f-f != 0 {
			if err == nil {
				t.Fatalf("%v is plain", v)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := session.PlainJSON(data); err != nil || again != p {
			t.Fatalf("%T %v is plain as %T %v, %s; that is read as %T %v, %v", v, v, p, p, data, again, again, err)
		}
		if want, err := json.Marshal(v); err == nil {
			if _, isFloat := v.(float64); !isFloat && string(want) != string(data) {
				t.Fatalf("%s has become %s", want, data)
			}
		}
	}
}

// What is plain already costs no allocation.
func TestPlainAllocatesNothing(t *testing.T) {
	delta := map[string]any{"text": "some words", "score": 7.5, "done": true, "id": int64(1 << 60), "list": []any{"a", 1.0, map[string]any{"b": nil}}}
	ev := session.EventActions{StateDelta: delta}
	if n := testing.AllocsPerRun(100, func() {
		if ev.Normalize() != nil {
			t.Error("refused")
		}
		if _, err := session.Plain(delta["list"]); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("got %v allocations", n)
	}
}

func BenchmarkNormalize(b *testing.B) {
	text := strings.Repeat("some words that a model has said. ", 60)
	for name, delta := range map[string]map[string]any{
		"nothing":  nil,
		"score":    {"score": 7.5},
		"text":     {"draft": text, "score": 7.5},
		"nested":   {"report": map[string]any{"score": 7.5, "issues": []any{"a", "b"}, "text": text}},
		"an int":   {"n": 3},
		"a struct": {"f": finding{Title: "t"}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ev := session.EventActions{StateDelta: delta}
				if err := ev.Normalize(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What is appended can be read again: encoding/json reads no more than 10,000 lists and objects in each other, and the event
// has some around the value.
func TestNestingThatCanBeRead(t *testing.T) {
	longtest.WithoutRace(t)
	var v any
	read := 0
	for depth := range 10_010 {
		v = []any{v}
		if depth != 1500 && depth < 9_880 {
			continue
		}
		said := &session.Event{}
		said.Content = genai.NewContentFromFunctionResponse("f", map[string]any{"k": v}, genai.RoleUser)
		about := &session.Event{}
		about.CustomMetadata = map[string]any{"k": v}
		for _, ev := range []*session.Event{
			{Actions: session.EventActions{StateDelta: map[string]any{"k": v}}},
			about, said,
		} {
			if err := ev.Normalize(); err != nil {
				if !errors.Is(err, session.ErrNotJSON) {
					t.Fatalf("%d: %v", depth, err)
				}
				continue
			}
			data, err := json.Marshal(ev)
			if err == nil {
				err = json.Unmarshal(data, new(session.Event))
			}
			if err != nil {
				t.Fatalf("a depth of %d is taken, and not read again: %v", depth, err)
			}
			read++
		}
	}
	if read < 3 {
		t.Errorf("%d events were read", read)
	}
}
