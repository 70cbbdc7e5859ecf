// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"testing"
	"time"
)

func TestAge(t *testing.T) {
	for text, want := range map[string]time.Duration{"30d": 720 * time.Hour, "2w": 336 * time.Hour, "1.5d": 36 * time.Hour, "12h": 12 * time.Hour, "": 0} {
		if got, err := parseAge(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"d", "-1d", "0d", "0s", "-5h", "1e9d", "soon", "NaNd"} {
		if got, err := parseAge(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
