// SPDX-License-Identifier: Apache-2.0

package canonical

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

// The fast way to the JSON that is hashed is the same as the plain one.
func FuzzCanonical(f *testing.F) {
	for _, text := range []string{
		`{}`, `[]`, `""`, `0`, `null`, `{"b":1,"a":{"d":[1,2,{"z":0,"y":-0.5e+9}],"c":""}}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"\n":"\n\t\"\\\/\u0041\u003c<"}`,
		`"\ud800"`, `"\u2028 \u00e9 é \ufffd ` + "\u2028 \x7f \xff" + `"`, strings.Repeat("[", 99) + strings.Repeat("]", 99), strings.Repeat("[", 600) + strings.Repeat("]", 600), `{"a":` + strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 41),
		`{"b":[{"d":1,"c":{"f":1,"e":2}}],"a":{"h":"<","g":"\b\f\u001f\u001F\u000a"}}`, ` { "b" : 1 , "a" : [ ] } `, `{"a":01}`, `-`, `{"a":1}}`, `"\u12"`, `nul`, `{"a":-0.0E-07}`,
		`[{"x":true},{"x":false},{"":""}]`, `{"b\"":1,"b":2,"a\\":[{}],"B":{}}`, `12345678901234567890`, `"a,]}:{["`, `{"😀":1,"\ufb01":2}`, "{\"😀\":1,\"ﬁ\":2}", `{"\ud83d\ude00":1,"\ufb01":2}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, failed := Append([]byte("x"), text)
		first, err := json.Marshal(json.RawMessage(text)) // as a mark's data is
		if err != nil {
			if failed == nil {
				t.Fatalf("%s: no error, but %s", text, got)
			}
			return
		}
		want, err := sort([]byte("x"), first)
		if (err == nil) != (failed == nil) || err == nil && !bytes.Equal(got, want) {
			t.Fatalf("%s\n got %s (%v)\nwant %s (%v)", text, got, failed, want, err)
		}
	})
}

func TestCanonicalIsTheSame(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	texts := []string{"", "a", "line\nline", `"quoted"`, "\x00\x1f\x7f", "<b>&</b>", "\u2028é漢😀", "\xff\xfe", `\u0041`, strings.Repeat("long ", 300)}
	numbers := []func() any{
		func() any { return dice.NormFloat64() * 1e9 },
		func() any { return math.Ldexp(dice.Float64()-0.5, dice.IntN(2000)-1000) },
		func() any { return float64(dice.Int64() >> dice.IntN(64)) },
		func() any { return math.Copysign(0, -1) },
		func() any { return dice.Int64() >> dice.IntN(64) },
		func() any { return int(dice.Int64() >> dice.IntN(64)) },
		func() any { return dice.Uint64() },
		func() any { return float32(dice.NormFloat64()) },
		func() any { return json.Number("1.50") },
	}
	var value func(depth int) any
	value = func(depth int) any {
		switch n := dice.IntN(8); {
		case n < 2 && depth < 5:
			m := map[string]any{}
			for range dice.IntN(5) {
				m[texts[dice.IntN(len(texts))]+fmt.Sprint(dice.IntN(9))] = value(depth + 1)
			}
			return m
		case n < 3 && depth < 5:
			list := make([]any, dice.IntN(4))
			for i := range list {
				list[i] = value(depth + 1)
			}
			return list
		case n < 4:
			return numbers[dice.IntN(len(numbers))]()
		case n < 5:
			return struct {
				Z string `json:"z"`
				A any    `json:"a"`
			}{texts[dice.IntN(len(texts))], dice.Int64()}
		case n < 6:
			return []any{nil, true, false}[dice.IntN(3)]
		}
		return texts[dice.IntN(len(texts))]
	}
	for range longtest.N(3000, 100_000) {
		v := value(0)
		first, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		want, err := sort(nil, first)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Append(nil, first)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got %s (%v)\nwant %s", got, err, want)
		}
		var w Writer
		if err := w.Value(v); err != nil || !bytes.Equal(w.Buf, want) {
			t.Fatalf("got %s (%v)\nwant %s", w.Buf, err, want)
		}
	}
}
