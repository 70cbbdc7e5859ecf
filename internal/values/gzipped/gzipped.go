// SPDX-License-Identifier: Apache-2.0

// Package gzipped reports whether a client wants a compressed response.
//
//	if gzipped.Wanted(r) {
//		w.Header().Set("Content-Encoding", "gzip")
//	}
package gzipped

import (
	"net/http"
	"strconv"
	"strings"
)

// Wanted reports whether the client of a request accepts gzip. The header Accept-Encoding must list gzip, or * if it
// does not list gzip, with a quality above 0 (RFC 9110, 12.5.3).
func Wanted(r *http.Request) bool {
	wanted := false
	for one := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, rest, _ := strings.Cut(one, ";")
		name = strings.ToLower(strings.TrimSpace(name))
		if name != "gzip" && name != "*" {
			continue
		}
		takes := true
		if q, found := strings.CutPrefix(strings.ToLower(strings.TrimSpace(rest)), "q="); found {
			quality, err := strconv.ParseFloat(q, 64)
			takes = err == nil && quality > 0
		}
		if name == "gzip" {
			return takes
		}
		wanted = takes
	}
	return wanted
}
