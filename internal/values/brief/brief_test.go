// SPDX-License-Identifier: Apache-2.0

package brief_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

func ExampleClip() {
	fmt.Println(brief.Clip("höher und höher", 5), brief.ClipBytes("höher und höher", 5))
	fmt.Println(brief.End("höher und höher", 4), brief.EndBytes("höher und höher", 4))
	// Output:
	// höher… h…
	// …öher …her
}

func TestTextsForPeople(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{brief.Duration(5 * time.Minute), "5m"},
		{brief.Duration(90 * time.Minute), "1h30m"},
		{brief.Duration(2 * time.Hour), "2h"},
		{brief.Duration(20 * time.Minute), "20m"},
		{brief.Duration(90 * time.Second), "1m30s"},
		{brief.Duration(0), "0s"},
		{brief.Count(1, "step"), "1 step"},
		{brief.Count(uint(0), "step"), "0 steps"},
		{brief.Count(1173, "step"), "1,173 steps"},
		{brief.Number(1234567, 64), "1234567"},
		{brief.Number(float64(float32(0.1)), 32), "0.1"},
		{brief.Number(1e-9, 64), "1e-09"},
		{brief.Clip("höher", 5), "höher"},
		{brief.Clip("höher", 2), "hö…"},
		{brief.Line(" two\n\n  words\xff ", 20), "two words\uFFFD"},
		{brief.Line("two\nwords", 4), "two …"},
		{brief.Line("two", 0), "…"},
		{brief.ClipBytes("höher", 6), "höher"},
		{brief.ClipBytes("höher", 5), "h…"}, // not the first half of the ö
		{brief.ClipBytes("\xffhöher", 6), "\ufffd…"},
		{brief.ClipBytes("\u202eab", 2), ""},
		{brief.ClipBytes("", 0), ""},
		{brief.End("höher", 5), "höher"},
		{brief.End("höher", 4), "…öher"},
		{brief.End("ab\xe2\x80", 1), "…\x80"},
		{brief.End("a", 0), "…"},
		{brief.End("", 0), ""},
		{brief.EndBytes("höher", 6), "höher"},
		{brief.EndBytes("höher", 4), "…her"},
		{brief.EndBytes("a\xffb", 1), "…b"},
		{brief.EndBytes("ö", 0), "…"},
		{brief.Clip("", 0), ""},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}
