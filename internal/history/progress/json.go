// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

// NewJSON returns an encoder for JSON that is also shown to people. It escapes, as in \u009b, characters that could
// control a terminal or turn the direction of a text. Programs read the same value.
func NewJSON(w io.Writer) *json.Encoder { return json.NewEncoder(escaping{w}) }

// MarshalJSON returns one value as [NewJSON] writes it, on one line, without a line break at the end.
func MarshalJSON(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	return EscapeJSON(text), err
}

// escaping writes JSON to w. The encoders of encoding/json write a value at once, so
// that no character is cut in two.
type escaping struct{ w io.Writer }

func (e escaping) Write(b []byte) (int, error) {
	if _, err := e.w.Write(EscapeJSON(b)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// EscapeJSON returns a JSON text with its invisible characters escaped, as JSON escapes those below U+0020. YAML has
// the same escapes between double quotes.
func EscapeJSON(text []byte) []byte {
	var out []byte
	done := 0
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(text[i:])
		}
		if brief.IsCommand(r) || r == utf8.RuneError && size == 1 {
			out = append(out, text[done:i]...)
			for _, u := range utf16.Encode([]rune{r}) {
				out = fmt.Appendf(out, `\u%04x`, u)
			}
			done = i + size
		}
		i += size
	}
	if out == nil {
		return text
	}
	return append(out, text[done:]...)
}
