// SPDX-License-Identifier: Apache-2.0

// Package days reads durations that people give in days.
//
//	d, err := days.Parse("30d") // 720 hours
package days

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Parse reads a duration such as 30d, 2w, 1.5d, 12h or 1h30m. A number other than 0 without a unit is an error, because it could mean seconds or days.
func Parse(s string) (time.Duration, error) {
	for unit, d := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if number, ok := strings.CutSuffix(s, unit); ok {
			n, err := strconv.ParseFloat(number, 64)
			if err != nil || !(math.Abs(n)*float64(d) < math.MaxInt64) {
				return 0, fmt.Errorf("invalid duration %q", s)
			}
			return time.Duration(n * float64(d)), nil
		}
	}
	return time.ParseDuration(s)
}
