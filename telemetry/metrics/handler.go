// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"compress/gzip"
	"io"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"

	"github.com/refrain-dev/refrain/internal/values/gzipped"
)

// Handler returns a handler that responds to a scrape with these metrics and those of the process and the Go runtime.
//
// Handler writes the text format, which every Prometheus reads. Package promhttp would add 400 kB to the binary, for
// formats and compressions that no Prometheus needs.
func (c *Collector) Handler() http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(c, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		families, err := reg.Gather()
		if err != nil {
			http.Error(w, "gather metrics: "+err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
		w.Header().Add("Vary", "Accept-Encoding")
		var to io.Writer = w
		if gzipped.Wanted(r) {
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			defer packed.Close()
			to = packed
		}
		for _, family := range families {
			if _, err := expfmt.MetricFamilyToText(to, family); err != nil {
				return // the client has disconnected
			}
		}
	})
}
