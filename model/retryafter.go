// SPDX-License-Identifier: Apache-2.0

package model

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RetryAfter reads from the headers of an answer how long a server asks to wait before
// the next request: Retry-After-Ms, or Retry-After in seconds or as a date, for which now
// is the time. It is 0 if the server does not ask, and a day at most.
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
