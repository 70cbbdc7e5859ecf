// SPDX-License-Identifier: Apache-2.0

package brief_test

import (
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/brief"
)

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
		{brief.Number(1234567, 64), "1234567"},
		{brief.Number(float64(float32(0.1)), 32), "0.1"},
		{brief.Number(1e-9, 64), "1e-09"},
		{brief.Clip("höher", 5), "höher"},
		{brief.Clip("höher", 2), "hö…"},
		{brief.Line(" two\n\n  words\xff ", 20), "two words\uFFFD"},
		{brief.Line("two\nwords", 4), "two …"},
		{brief.Line("two", 0), "…"},
		{brief.Clip("", 0), ""},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}
