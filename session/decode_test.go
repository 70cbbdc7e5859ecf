// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/session"
)

// storedTexts are events as databases have them, and what is unusual in them or wrong.
var storedTexts = []string{
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
	`{"customMetadata":{"a":9007199254740993}}`, `{"customMetadata":{"a":1,"b":2},"x":1,"customMetadata":{"b":3}}`,
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

// plainEvent is an event as encoding/json reads it, without a method of its own.
type plainEvent session.Event

// agree demands that an event is read as encoding/json reads it, and keeps nothing of the JSON.
func agree(t *testing.T, data []byte) {
	t.Helper()
	given := string(data)
	want := new(plainEvent)
	failed := json.Unmarshal(data, want)
	got := new(session.Event)
	err := got.Decode(data)
	if errors.Is(err, session.ErrNotJSON) {
		return // a number in the state that is out of range
	}
	if string(data) != given {
		t.Fatalf("%q was changed", given)
	}
	for i := range data { // as a database does with what it has lent
		data[i] = 'x'
	}
	got.Actions.StateDelta, _ = rounded(got.Actions.StateDelta).(map[string]any)
	got.CustomMetadata, _ = rounded(got.CustomMetadata).(map[string]any)
	switch {
	case (err == nil) != (failed == nil):
		t.Fatalf("%s: got error %v, want %v", given, err, failed)
	case err == nil && !reflect.DeepEqual(plainEvent(*got), *want):
		g, _ := json.Marshal(got)
		w, _ := json.Marshal(want)
		t.Fatalf("%s:\n got %#v %s\nwant %#v %s", given, got, g, want, w)
	}
}

// rounded gives integers that keep their digits the type that encoding/json gives them.
func rounded(v any) any {
	switch x := v.(type) {
	case int64:
		return float64(x)
	case uint64:
		return float64(x)
	case []any:
		for i := range x {
			x[i] = rounded(x[i])
		}
	case map[string]any:
		for k := range x {
			x[k] = rounded(x[k])
		}
	}
	return v
}

func TestDecodeReadsWhatJSONReads(t *testing.T) {
	for _, text := range storedTexts {
		agree(t, []byte(text))
	}
}

func FuzzDecode(f *testing.F) {
	for _, text := range storedTexts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) { agree(t, append([]byte(nil), data...)) })
}
