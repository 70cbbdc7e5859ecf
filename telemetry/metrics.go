// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// metrics has the histograms.
type metrics struct {
	workflow, agent, tool, model metric.Float64Histogram // seconds
	tokens                       metric.Int64Histogram
}

// Bucket boundaries of the histograms. Those for requests and tokens are the ones that the conventions recommend.
var (
	requestBounds = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	runBounds     = []float64{0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 14400, 86400}
	tokenBounds   = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
)

func (m *metrics) make(from metric.Meter) error {
	var errs []error
	seconds := func(name, about string, bounds []float64) metric.Float64Histogram {
		h, err := from.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(about),
			metric.WithExplicitBucketBoundaries(bounds...))
		errs = append(errs, err)
		return h
	}
	m.workflow = seconds(metricWorkflow, "Time of a part of a run, from its start or resume to its end or pause.",
		runBounds)
	m.agent = seconds(metricAgent, "Time of a run of an agent.", runBounds)
	m.tool = seconds(metricTool, "Time of a tool call.", requestBounds)
	m.model = seconds(metricModel, "Time of a request to a model.", requestBounds)
	var err error
	m.tokens, err = from.Int64Histogram(metricTokens, metric.WithUnit("{token}"),
		metric.WithDescription("Tokens of a request to a model."), metric.WithExplicitBucketBoundaries(tokenBounds...))
	return errors.Join(append(errs, err)...)
}
