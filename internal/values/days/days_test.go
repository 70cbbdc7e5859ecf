// SPDX-License-Identifier: Apache-2.0

package days_test

import (
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/values/days"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]time.Duration{"30d": 720 * time.Hour, "2w": 336 * time.Hour, "1.5d": 36 * time.Hour, "12h": 12 * time.Hour,
		"-1d": -24 * time.Hour, "0s": 0, "0": 0, "1h30m": 90 * time.Minute} {
		if got, err := days.Parse(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "30", "1e9d", "soon", "NaNd", "Infw", "2d12h"} {
		if got, err := days.Parse(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
