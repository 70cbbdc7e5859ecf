// SPDX-License-Identifier: Apache-2.0

package term

import (
	"bytes"
	"testing"
)

// T6: what is written to an output reaches it without what commands a terminal,
// however it is cut into pieces; what another program reads is left as it is.
func TestOutputsAreReadable(t *testing.T) {
	const text = "a\x1b[31m\u009b31m\u202eb\u2028\u2029\té🙂\r\x07\n\xffz"
	for size := 1; size <= len(text); size++ {
		var got bytes.Buffer
		w := Readable(&got)
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if m, err := w.Write([]byte(rest[:n])); err != nil || m != n {
				t.Fatal(m, err)
			}
			rest = rest[n:]
		}
		if want := "a[31m31mb\té🙂\n\uFFFDz"; got.String() != want {
			t.Errorf("in pieces of %d: %q, want %q", size, got.String(), want)
		}
	}
	var got bytes.Buffer
	if _, err := Exactly(Readable(&got)).Write([]byte(text)); err != nil || got.String() != text {
		t.Errorf("exactly: %q, %v", got.String(), err)
	}
}
