// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"strings"
	"testing"
)

// Each phrase is there in both languages, with room for the same things.
func TestPhrasesAreComplete(t *testing.T) {
	for p, text := range phrases {
		if text.english == "" || text.portuguese == "" {
			t.Errorf("phrase %d is %q and %q", p, text.english, text.portuguese)
		}
		if strings.Count(text.english, "%s") != strings.Count(text.portuguese, "%s") {
			t.Errorf("%q and %q have room for different things", text.english, text.portuguese)
		}
	}
}

func TestNumbersAsPeopleWriteThem(t *testing.T) {
	for _, tt := range []struct {
		f        float64
		decimals int
		en, pt   string
	}{
		{7.15, shortest, "7.15", "7,15"}, {0, shortest, "0", "0"}, {-0.5, shortest, "−0.5", "−0,5"},
		{41206, shortest, "41,206", "41.206"}, {1234567.5, shortest, "1,234,567.5", "1.234.567,5"},
		{7.150084065, shortest, "7.15008", "7,15008"}, {7.150084065, 1, "7.2", "7,2"}, {-0.01, 1, "0.0", "0,0"},
		{1e20, shortest, "1e+20", "1e+20"}, {1e-9, shortest, "1e-09", "1e-09"},
	} {
		if en, pt := English.number(tt.f, tt.decimals), Portuguese.number(tt.f, tt.decimals); en != tt.en || pt != tt.pt {
			t.Errorf("%v is %q and %q, want %q and %q", tt.f, en, pt, tt.en, tt.pt)
		}
	}
}
