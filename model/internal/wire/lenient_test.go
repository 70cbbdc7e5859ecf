// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/model/internal/wire"
)

func TestUnmarshalTakesWhatItUnderstands(t *testing.T) {
	type answer struct {
		Text  string
		N     wire.Count
		Known *wire.Count
		List  []struct{ Text string }
	}
	three := wire.Count(3)
	for in, want := range map[string]answer{
		`{"text":"a","n":3,"known":3,"list":[{"text":"b"}],"novel":{"x":[1]}}`: {"a", 3, &three, []struct{ Text string }{{"b"}}},
		`{"text":{"a":1},"n":3,"list":{"text":"b"}}`:                           {N: 3},
		`{"list":[7,{"text":"b"}],"text":"a"}`:                                 {Text: "a", List: []struct{ Text string }{{}, {"b"}}},
		`{"text":null,"n":null,"known":null,"list":null}`:                      {},
		`{"n":3.0,"known":"3"}`:                                                {N: 3, Known: &three},
		`{"n":-3}`:                                                             {},
		`{"n":1e300}`:                                                          {N: 1<<31 - 1},
		`{"n":"NaN"}`:                                                          {},
		`{"n":[1]}`:                                                            {},
		`["not","this"]`:                                                       {},
	} {
		var got answer
		if err := wire.Unmarshal([]byte(in), &got); err != nil {
			t.Errorf("%s: %v", in, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", in, diff)
		}
	}
	for _, in := range []string{"", `{"text":`, "<html>", `{"text":"a"} and more`} {
		if err := wire.Unmarshal([]byte(in), &answer{}); err == nil {
			t.Errorf("%q is JSON", in)
		}
	}
}
