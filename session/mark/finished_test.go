// SPDX-License-Identifier: Apache-2.0

package mark_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/session/mark"
)

// FuzzStepFinished holds the ends of steps against what encoding/json makes of them.
func FuzzStepFinished(f *testing.F) {
	for _, data := range []string{
		`{"seconds":0.001067093,"outcome":{"iteration":1,"step":0,"wrote":["n"],"state_size":28},"usage":{"calls":1}}`,
		`{"error":"panic: \"no\"","kind":"panic","permanent":true,"budget":"b","retry_after_ns":1000000000,"timeout":true,` +
			`"canceled":true,"again":true,"at":"a/b","seconds":1e-9}`,
		`{"Error":"case"}`, `{"error":null,"seconds":null,"outcome":null}`, `{"seconds":1,"seconds":2}`, `{"unknown":1}`,
		`{"retry_after_ns":1.5}`, `{"retry_after_ns":9223372036854775807}`, `{"seconds":1e999}`, `{"seconds":"1"}`,
		` { "outcome" : [ 1 , "\ud83d\udc3b" ] , "seconds" : -0 } `, `{"outcome":"\ud800"}`, "{\"at\":\"\xff\"}", ``, `null`, `{}x`,
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, want mark.StepFinished
		err := (&mark.Mark{Kind: mark.KindStepFinished, Data: data}).Decode(&got)
		failed := json.Unmarshal(data, &want)
		switch {
		case (err == nil) != (failed == nil):
			t.Fatalf("%s: got error %v, want %v", data, err, failed)
		case err != nil && !strings.HasPrefix(err.Error(), "decode mark step_finished: "):
			t.Fatalf("%s: got error %v, which does not say what was read", data, err)
		case err == nil && !reflect.DeepEqual(got, want):
			t.Fatalf("%s: got %+v, want %+v", data, got, want)
		}
	})
}
