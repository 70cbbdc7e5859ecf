// SPDX-License-Identifier: Apache-2.0

package canonical

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// appendString appends a text. A byte that is no UTF-8 becomes U+FFFD; valid says that there was none.
func appendString(dst []byte, s string) (_ []byte, valid bool) {
	from := len(dst)
	dst, err := jsontext.AppendQuote(dst, s)
	for _, special := range [...]byte{'<', '>', '&', 0xe2} { // U+2028 and U+2029 begin with 0xe2
		if strings.IndexByte(s, special) >= 0 {
			dst, _ = jsontext.AppendFormat(dst[:from], slices.Clone(dst[from:]), escaped...)
			break
		}
	}
	return dst, err == nil
}

// appendFloat appends a number, which is neither NaN nor an infinity.
func appendFloat(dst []byte, f float64) []byte {
	if i := int64(f); float64(i) == f && -exact < i && i < exact && (i != 0 || !math.Signbit(f)) {
		return strconv.AppendInt(dst, i, 10)
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	if n := len(dst); format == 'e' && n >= 4 && dst[n-4] == 'e' && dst[n-3] == '-' && dst[n-2] == '0' {
		dst[n-2] = dst[n-1] // e-09 is e-9
		dst = dst[:n-1]
	}
	return dst
}

// maxNested is how deep the writer goes before it leaves the rest to encoding/json.
const maxNested = 500

// exact is where float64 begins to leave out integers.
const exact = 1 << 53

// Writer appends values. Its zero value is ready to use.
type Writer struct {
	// Buf is what was written.
	Buf []byte
	// Other says that a value was written which is another one once it was read back, or
	// may be: an integer that a float64 does not hold, or a value of a type that JSON does
	// not have.
	Other bool
}

// Value appends a value. It fails for what has no JSON.
func (w *Writer) Value(v any) error { return w.value(v, 0) }

// Text is Value for a text.
func (w *Writer) Text(s string) {
	var valid bool
	w.Buf, valid = appendString(w.Buf, s)
	w.Other = w.Other || !valid
}

// Map is Value for a map.
func (w *Writer) Map(m map[string]any) error { return w.object(m, 0) }

// JSON appends a value by way of json.Marshal.
func (w *Writer) JSON(v any) (err error) {
	w.Buf, err = AppendJSON(w.Buf, v)
	return err
}

func (w *Writer) value(v any, depth int) error {
	switch x := v.(type) {
	case nil:
		w.Buf = append(w.Buf, "null"...)
		return nil
	case bool:
		w.Buf = strconv.AppendBool(w.Buf, x)
		return nil
	case string:
		w.Text(x)
		return nil
	case float64:
		if x-x == 0 {
			w.Buf = appendFloat(w.Buf, x)
			return nil
		}
	case int:
		w.integer(int64(x))
		return nil
	case int64:
		w.integer(x)
		return nil
	case []any:
		if x != nil && depth < maxNested {
			return w.list(x, depth+1)
		}
	case map[string]any:
		if x != nil && depth < maxNested {
			return w.object(x, depth+1)
		}
	}
	w.Other = true
	return w.JSON(v)
}

func (w *Writer) integer(i int64) {
	w.Other = w.Other || i < -exact || i > exact
	w.Buf = strconv.AppendInt(w.Buf, i, 10)
}

func (w *Writer) list(list []any, depth int) error {
	w.Buf = append(w.Buf, '[')
	for i, v := range list {
		if i > 0 {
			w.Buf = append(w.Buf, ',')
		}
		if err := w.value(v, depth); err != nil {
			return err
		}
	}
	w.Buf = append(w.Buf, ']')
	return nil
}

func (w *Writer) object(m map[string]any, depth int) error {
	var few [16]string
	keys := few[:0]
	for key := range m {
		if !utf8.ValidString(key) { // several may become one
			w.Other = true
			return w.JSON(m)
		}
		keys = append(keys, key)
	}
	slices.Sort(keys)
	w.Buf = append(w.Buf, '{')
	for i, key := range keys {
		if i > 0 {
			w.Buf = append(w.Buf, ',')
		}
		w.Text(key)
		w.Buf = append(w.Buf, ':')
		if err := w.value(m[key], depth); err != nil {
			return err
		}
	}
	w.Buf = append(w.Buf, '}')
	return nil
}
