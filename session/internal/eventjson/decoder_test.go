// SPDX-License-Identifier: Apache-2.0

package eventjson_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/internal/eventjson"
	"github.com/refrain-dev/refrain/session/mark"
)

// texts are events as databases have them, and what is unusual in them or wrong.
var texts = []string{
	`{"content":{"parts":[{}],"role":"user"},"id":"1","timestamp":"2026-11-23T02:27:18.566005864Z","invocationId":"e-1",` +
		`"author":"user","actions":{"stateDelta":{"m":0,"n":0,"refrain:run":"{\"id\":\"e-1\",\"name\":\"t\u0077o\"}"}},"seq":1,` +
		`"mark":{"kind":"run_started","data":{"name":"two","program":{"files":{"a":"n \u003e= 5\n"}},"sealed":true}}}`,
	`{"id":"2","timestamp":"2026-11-23T02:27:18Z","invocationId":"e-1","author":"two","actions":{},"seq":2,"address":"two",` +
		`"attempt":1,"mark":{"kind":"step_started"}}`,
	`{"id":"6","timestamp":"2026-11-23T02:27:18.57+01:00","invocationId":"e-1","author":"a","actions":{},"seq":6,` +
		`"address":"two[1]/a","iteration":1,"attempt":1,"mark":{"kind":"step_finished","data":{"seconds":0.001067093,` +
		`"outcome":{"iteration":1,"step":0,"wrote":["n"],"state_size":28}}}}`,
	`{"content":{"parts":[{"text":"Ein Bär \ud83d\udc3b sagt \"nein\""},{"text":"hm","thought":true}],"role":"model"},` +
		`"usageMetadata":{"promptTokenCount":12,"totalTokenCount":20},"customMetadata":{"refrain:temp":{"temp:a":[1,-2.5e3,null]}},` +
		`"modelVersion":"m-1","finishReason":"STOP","turnComplete":true,"id":"7","timestamp":"2026-11-23T02:27:18Z",` +
		`"invocationId":"e-1","branch":"x.y","author":"a","actions":{"stateDelta":{"draft":"Ein Bär","list":[true,false,{}],` +
		`"gone":null},"artifactDelta":{"f":2},"exit":{"by":"a","score":0.5},"escalate":true,"skipSummarization":true,` +
		`"transferToAgent":"b"},"longRunningToolIds":["c1"],"seq":7,"address":"two[1]/a","iteration":1,"attempt":2}`,
	`{"content":{"parts":[{"functionCall":{"id":"c1","name":"find","args":{"q":"x","n":3}}},{"functionResponse":{"id":"c1",` +
		`"response":{"a":1}}},{"inlineData":{"data":"AAEC","mimeType":"x/y"}}],"role":"model"},"citationMetadata":{},` +
		`"avgLogprobs":-0.25,"errorCode":"E","errorMessage":"bad","id":"8","timestamp":"2026-11-23T02:27:18Z","invocationId":"",` +
		`"author":"a","actions":{"requestedToolConfirmations":{"c1":{"hint":"sure?"}}},"interrupted":true}`,
	` { "id" : "2" , "seq" : 2 , "actions" : { "stateDelta" : { "a" : [ 1 , 2 ] } } , "mark" : { "kind" : "asked" , "data" : [ 1 ] } } `,
	`{"actions":{"stateDelta":{"big":9007199254740993,"low":-9007199254740993,"huge":18446744073709551615}}}`,
	`{"actions":{"stateDelta":{"f":1e300,"z":-0,"s":0.1,"edge":9007199254740992,"under":9007199254740991}}}`,
	`{"customMetadata":{"a":9007199254740993}}`,
	`{"ID":"case"}`, `{"id":"a","id":"b"}`, `{"unknown":1,"id":"x"}`, `{"id":null,"actions":null,"mark":null,"content":null}`,
	`{"mark":{"kind":"x","data":null}}`, `{"mark":{"kind":"x","data":"text"}}`, `{"mark":{"data":{"a":"\ud800"}}}`,
	`{"mark":{"kind":"a"},"mark":{"data":1}}`, `{"content":{"parts":[null,{"text":null}]}}`, `{"content":{"parts":[]}}`,
	`{"content":{"parts":[{"text":"a","text":"b"}],"role":"x","role":"y"}}`, `{"content":{"parts":[{"text":"a"}],"other":[[[1]]]}}`,
	`{"actions":{"stateDelta":{"a":1,"a":{"b":2},"":3}}}`, `{"actions":{"stateDelta":{}}}`, `{"actions":{"stateDelta":null}}`,
	`{"seq":1.0}`, `{"seq":1e2}`, `{"seq":-0}`, `{"seq":01}`, `{"seq":9223372036854775807}`, `{"seq":9223372036854775808}`,
	`{"seq":"1"}`, `{"timestamp":1}`, `{"timestamp":"x"}`, `{"timestamp":null}`, `{"iteration":-3}`, `{"turnComplete":1}`,
	"{\"id\":\"\xff\"}", "{\"author\":\"a\nb\"}", `{"id":"\u00e"}`, `{"id":"\x"}`, `{"id":"\ud83d"}`, `{"id":"\udc3b\ud83d"}`,
	``, `null`, `[]`, `{}`, `{}x`, `{`, `{"id"}`, `{"id":}`, `{"id":"a",}`, `{"id":"a"`, `{"actions":{"stateDelta":{"a":tru}}}`,
	`{"actions":{"stateDelta":{"a":[1,]}}}`, `{"actions":{"stateDelta":{"a":1.}}}`, `{"actions":{"stateDelta":{"a":1e}}}`,
	`{"actions":{"stateDelta":{"a":-}}}`, `{"actions":{"stateDelta":{"a":1e999}}}`,
	`{"mark":{"kind":"x","data":` + strings.Repeat("[", 120) + strings.Repeat("]", 120) + `}}`,
	`{"author":"` + strings.Repeat("a", 100) + `","address":"` + strings.Repeat("b[1]/", 40) + `","actions":{"stateDelta":{"` +
		strings.Repeat("k", 90) + `":"` + strings.Repeat("v", 90) + `"}}}`,
}

// agree demands that a decoder returns what encoding/json does.
func agree(t *testing.T, d *eventjson.Decoder, data []byte) {
	t.Helper()
	given := string(data)
	want := new(session.Event)
	failed := want.Decode([]byte(given))
	got, err := d.Event(data)
	if string(data) != given {
		t.Fatalf("%q was changed", given)
	}
	for i := range data { // as a database does with what it has lent
		data[i] = 'x'
	}
	switch {
	case fmt.Sprint(err) != fmt.Sprint(failed):
		t.Fatalf("%s: got error %v, want %v", given, err, failed)
	case err == nil && !reflect.DeepEqual(got, want):
		g, _ := json.Marshal(got)
		w, _ := json.Marshal(want)
		t.Fatalf("%s:\n got %#v %s\nwant %#v %s", given, got, g, want, w)
	}
}

func TestDecoderReadsWhatJSONReads(t *testing.T) {
	var d eventjson.Decoder
	for _, text := range texts {
		agree(t, &d, []byte(text))
	}
}

// What a decoder has returned stays as it is when it reads on.
func TestEventsStayWhenOthersAreRead(t *testing.T) {
	d := eventjson.Decoder{Expect: 500} // there are more
	var all []*session.Event
	event := func(i int) []byte {
		return fmt.Appendf(nil, `{"id":"%d","author":"a%d","actions":{"stateDelta":{"k%d":"v%d"}},"seq":%d,"address":"l[%d]/s",`+
			`"mark":{"kind":"k%d","data":{"n":%d}}}`, i, i%80, i%200, i, i, i/3, i%5, i)
	}
	for i := 1; i <= 1000; i++ {
		ev, err := d.Event(event(i))
		if err != nil {
			t.Fatal(err)
		}
		_ = append(ev.Mark.Data, "overwritten"...) // a slice of its own
		all = append(all, ev)
	}
	for i, ev := range all {
		want := new(session.Event)
		if err := want.Decode(event(i + 1)); err != nil || !reflect.DeepEqual(ev, want) {
			t.Fatalf("event %d: got %+v, want %+v, %v", i+1, ev, want, err)
		}
	}
}

func FuzzDecoder(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var d eventjson.Decoder
		agree(t, &d, append([]byte(nil), data...))
		agree(t, &d, append([]byte(nil), data...))
	})
}

// ended is the end of a step, as most events of a log are.
func ended(b *testing.B) []byte {
	ev := &session.Event{ID: "7", Timestamp: time.Date(2026, 11, 23, 2, 27, 18, 571129934, time.UTC), InvocationID: "e-f65e5da4",
		Author: "critic", Seq: 7, Address: "story/refine[3]/critic", Iteration: 3, Attempt: 1}
	m, err := mark.New(mark.KindStepFinished, mark.StepFinished{Seconds: 0.25, Outcome: json.RawMessage(`{"iteration":3,"step":1,` +
		`"started":"2026-11-23T02:27:18.569839312Z","finished":"2026-11-23T02:27:18.571013025Z","wrote":["critique"]}`)})
	if err != nil {
		b.Fatal(err)
	}
	ev.Mark = m
	data, err := json.Marshal(ev)
	if err != nil {
		b.Fatal(err)
	}
	return data
}

// said is what an agent says, with a key of the state.
func said(b *testing.B) []byte {
	ev := &session.Event{ID: "6", Timestamp: time.Date(2026, 11, 23, 2, 27, 18, 571129934, time.UTC), InvocationID: "e-f65e5da4",
		Author: "critic", Seq: 6, Address: "story/refine[3]/critic", Iteration: 3, Attempt: 1}
	ev.Content = genai.NewContentFromText("The critic says: let the cat come home before it rains.", genai.RoleModel)
	ev.Actions.StateDelta = map[string]any{"critique": "let the cat come home before it rains"}
	data, err := json.Marshal(ev)
	if err != nil {
		b.Fatal(err)
	}
	return data
}

// BenchmarkDecoder measures encoding/json in the same run.
func BenchmarkDecoder(b *testing.B) {
	for _, tt := range []struct {
		name string
		data []byte
	}{{"mark", ended(b)}, {"said", said(b)}} {
		b.Run(tt.name, func(b *testing.B) {
			var d eventjson.Decoder
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Event(tt.data); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(tt.name+"/encoding-json", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := new(session.Event).Decode(tt.data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
