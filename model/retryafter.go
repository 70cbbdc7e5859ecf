// SPDX-License-Identifier: Apache-2.0

package model

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RetryAfter returns the wait that a server asks for in the headers of its answer: Retry-After-Ms,
// or Retry-After in seconds or as a date, which is compared with now. It returns 0 if the server
// does not ask, and at most one day.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil {
		return seconds(ms / 1000)
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return seconds(s)
	}
	if at, err := http.ParseTime(v); err == nil {
		return min(max(at.Sub(now), 0), longestWait)
	}
	return 0
}

// longestWait is the most that a server can ask for.
const longestWait = 24 * time.Hour

// seconds converts what a server sent: nothing below zero, above a day or not a number.
func seconds(s float64) time.Duration {
	if !(s > 0) {
		return 0
	}
	return time.Duration(min(s, longestWait.Seconds()) * float64(time.Second))
}
