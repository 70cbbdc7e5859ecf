// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

// T6: JSON output contains no command for a terminal, and has the same value.
func TestJSONIsEscaped(t *testing.T) {
	const text = "a\u009b31m\u202e\u2066\u200f\u061c\x7f\x1b é 日本 👩\u200d💻 <&> \n\t\ufffd"
	var out bytes.Buffer
	enc := NewJSON(&out)
	enc.SetIndent("", "  ")
	if err := enc.Encode(map[string]any{text: []any{text, json.RawMessage("\"\u009b\u202e\xff\"")}}); err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(out.Bytes()) {
		if !utf8.Valid(line) || bytes.ContainsFunc(line, brief.IsCommand) {
			t.Errorf("there is a command in %q", line)
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
		if got := string(EscapeJSON([]byte(same))); got != same {
			t.Errorf("%q became %q", same, got)
		}
	}
}
