// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// series are the metrics that events change.
type series struct {
	started, resumed, ended, dropped, asked, refused *prometheus.CounterVec
	iterations, errors, tokens, cache                *prometheus.CounterVec
	iteration, step                                  *prometheus.HistogramVec
	score, build                                     *prometheus.GaugeVec
	cost, unpriced                                   prometheus.Counter
	all                                              []prometheus.Collector
}

// Buckets in seconds. A step can be as fast as a function and as slow as an agent that works for an hour.
var (
	stepBuckets      = []float64{0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600}
	iterationBuckets = []float64{0.1, 1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600}
)

// Values of the label reason of refrain_runs_dropped_total.
const (
	droppedLease = "lease_lost"
	droppedError = "error"
)

// newSeries returns series that are 0.
func newSeries(version string) (s series) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		s.all = append(s.all, v)
		return v
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
		s.all = append(s.all, v)
		return v
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
		s.all = append(s.all, v)
		return v
	}
	s.started = counter("refrain_runs_started_total", "Runs that this process has begun.", "definition")
	s.resumed = counter("refrain_runs_resumed_total", "Runs that this process has resumed after a pause, a question, "+
		"a stop or the death of a process.", "definition")
	s.ended = counter("refrain_runs_total", "Runs that have ended in this process. stop_reason is the stop reason of the outermost "+
		"loop, or none.", "definition", "status", "stop_reason")
	s.dropped = counter("refrain_runs_dropped_total", "Unfinished runs that this process has stopped driving, because it has "+
		"lost the lease (lease_lost) or could not write the status of the run (error).", "reason")
	s.asked = counter("refrain_questions_total", "Questions that runs have asked people.", "definition")
	s.refused = counter("refrain_requests_refused_total", "Requests and connections that the server has refused, by the kind of "+
		"problem.", "kind")
	s.iterations = counter("refrain_iterations_total", "Iterations that have ended.", "definition", "loop")
	s.iteration = histogram("refrain_iteration_duration_seconds", "Duration of iterations that this process has driven from "+
		"beginning to end.", iterationBuckets, "definition", "loop")
	s.score = gauge("refrain_last_score", "Score of the last iteration that has one.", "definition", "loop")
	s.step = histogram("refrain_sub_agent_duration_seconds", "Duration of agents' steps; a loop is also a step. The "+
		"status is ok, error, timeout or canceled.", stepBuckets, "agent", "status")
	s.errors = counter("refrain_sub_agent_errors_total", "Steps that have failed, each attempt, at the agent where the error "+
		"happened.", "agent", "kind")
	s.tokens = counter("refrain_tokens_total", "Tokens that models have reported, of type input or output. Input includes cached "+
		"tokens, output includes thinking tokens.", "model", "type")
	s.cache = counter("refrain_cache_tokens_total", "Input tokens that providers have read from their caches (type read) or "+
		"written into them for five minutes (write) or an hour (write_1h). refrain_tokens_total includes these tokens.", "model", "type")
	s.build = gauge("refrain_build_info", "1, with the version of the program as a label.", "version", "goversion")
	s.cost = prometheus.NewCounter(prometheus.CounterOpts{Name: "refrain_cost_total",
		Help: "Cost of model calls, in the currency of the definitions' price lists."})
	s.unpriced = prometheus.NewCounter(prometheus.CounterOpts{Name: "refrain_unpriced_model_calls_total",
		Help: "Model calls of steps whose cost is unknown, and therefore not in refrain_cost_total."})
	s.all = append(s.all, s.cost, s.unpriced)
	s.build.WithLabelValues(clean(version), runtime.Version()).Set(1)
	for _, reason := range []string{droppedLease, droppedError} {
		s.dropped.WithLabelValues(reason)
	}
	return s
}
