// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/session"
)

// The fast way to the JSON that is hashed is the same as the plain one.
func FuzzCanonical(f *testing.F) {
	for _, text := range []string{
		`{}`, `[]`, `""`, `0`, `null`, `{"b":1,"a":{"d":[1,2,{"z":0,"y":-0.5e+9}],"c":""}}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"\n":"\n\t\"\\\/\u0041\u003c<"}`,
		`"\ud800"`, `"\u2028 \u00e9 é \ufffd ` + "\u2028 \x7f \xff" + `"`, strings.Repeat("[", 99) + strings.Repeat("]", 99), `{"a":` + strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 41),
		`[{"x":true},{"x":false},{"":""}]`, `{"b\"":1,"b":2,"a\\":[{}],"B":{}}`, `12345678901234567890`, `"a,]}:{["`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			return
		}
		first, err := json.Marshal(json.RawMessage(text)) // as a mark's data is
		if err != nil {
			return
		}
		want, err := reread(nil, first)
		got, failed := canonical([]byte("x"), first)
		if (err == nil) != (failed == nil) || err == nil && !bytes.Equal(got, append([]byte("x"), want...)) {
			t.Fatalf("%s\n got %s (%v)\nwant x%s (%v)", first, got, failed, want, err)
		}
	})
}

func TestCanonicalIsTheSame(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	texts := []string{"", "a", "line\nline", `"quoted"`, "\x00\x1f\x7f", "<b>&</b>", "\u2028é漢😀", "\xff\xfe", `\u0041`, strings.Repeat("long ", 300)}
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
			return dice.NormFloat64() * 1e9
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
	for range 3000 {
		first, err := json.Marshal(value(0))
		if err != nil {
			t.Fatal(err)
		}
		want, err := reread(nil, first)
		if err != nil {
			t.Fatal(err)
		}
		c := canon{src: first}
		got, err := c.value(nil)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got %s (%v)\nwant %s", got, err, want)
		}
	}
}

func BenchmarkDigest(b *testing.B) {
	ev := &session.Event{Author: "writer"}
	ev.Actions.StateDelta = map[string]any{"draft": strings.Repeat("A line of the draft, and \"more\".\n", 3000), "count": 3}
	for b.Loop() {
		if err := New().Add(ev); err != nil {
			b.Fatal(err)
		}
	}
}
