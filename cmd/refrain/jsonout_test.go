// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// T6: JSON that is looked at has no command for a terminal in it, and is the same
// value.
func TestJSONIsEscaped(t *testing.T) {
	const text = "a\u009b31m\u202e\u2066\u200f\u061c\x7f\x1b é 日本 👩\u200d💻 <&> \n\t\ufffd"
	var out bytes.Buffer
	enc := newJSON(&out)
	enc.SetIndent("", "  ")
	if err := enc.Encode(map[string]any{text: []any{text, json.RawMessage("\"\u009b\u202e\xff\"")}}); err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(out.Bytes()) {
		if r, found := command(string(bytes.TrimSuffix(line, []byte("\n")))); found {
			t.Errorf("%U in %q", r, line)
		}
	}
	var back map[string][]string
	if err := json.Unmarshal(out.Bytes(), &back); err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	if got := back[text]; len(got) != 2 || got[0] != text || got[1] != "\u009b\u202e\ufffd" {
		t.Errorf("it became %q", back)
	}
	for _, same := range []string{"", `{"a":"é 日本 👩‍💻 \u009b"}` + "\n"} {
		if got := string(escapeJSON([]byte(same))); got != same {
			t.Errorf("%q became %q", same, got)
		}
	}
}

// A store's password is not shown, in whatever is wrong with the rest of it.
func TestStoreWithoutItsPassword(t *testing.T) {
	for in, want := range map[string]string{
		"postgrs://u:SECRET@h/db":              "postgrs://[secret]@h/db",
		"postgrs://u:SEC@RET@h:5/db":           "postgrs://[secret]@h:5/db",
		"postgrs://u:SEC/RET@h/db":             "postgrs://[secret]@h/db",
		"pg:host=h password=SECRET dbname=x":   "pg:host=h password=[secret] dbname=x",
		"pg:password = 'SEC RET' host=h":       "pg:password = [secret] host=h",
		"pg://h/db?user=u&password=SECRET&x=1": "pg://h/db?user=u&password=[secret]&x=1",
		"runs.db":                              "runs.db",
		"a/b@c.db":                             "a/b@c.db",
	} {
		if got := withoutPassword(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}

// command is the first character of a line that has no business in a terminal.
func command(line string) (rune, bool) {
	for i, r := range line {
		if r == utf8.RuneError && !strings.HasPrefix(line[i:], "\ufffd") {
			return rune(line[i]), true // eight bits are a command where there is no UTF-8
		}
		if r != '\t' && unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Bidi_Control, r) {
			return r, true
		}
	}
	return 0, false
}
