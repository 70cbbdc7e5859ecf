// SPDX-License-Identifier: Apache-2.0

package gzipped_test

import (
	"net/http"
	"testing"

	"github.com/refrain-dev/refrain/internal/values/gzipped"
)

func TestWanted(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, "identity": false, "gzip": true, "br, GZIP": true, "gzip;q=1.0, br": true, "gzip; q=0.5": true, "*": true,
		"gzip;q=0": false, "br, gzip; q=0.000": false, "*;q=0": false, "*, gzip;q=0": false, "gzip, *;q=0": true, "gzip;q=x": false, "xgzip": false,
	} {
		if got := gzipped.Wanted(&http.Request{Header: http.Header{"Accept-Encoding": {header}}}); got != want {
			t.Errorf("%q: %v", header, got)
		}
	}
}
