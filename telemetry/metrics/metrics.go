// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// Config describes a collector.
type Config struct {
	// Version is the version of the program, for refrain_build_info.
	Version string
	// MaxValues limits the number of distinct definitions, agents, models and loops as labels, each by itself; 0 means 100.
	MaxValues int
	// Every is the shortest interval between two listings of the store's runs; 0 means 5 s.
	Every time.Duration
}

// Collector counts what runs do. It is a [prometheus.Collector] and safe for concurrent use.
type Collector struct {
	every                              time.Duration
	definitions, agents, models, loops *values
	refusals                           *values

	started, resumed, ended, dropped, asked, refused *prometheus.CounterVec
	iterations, errors, tokens, cache                *prometheus.CounterVec
	iteration, step                                  *prometheus.HistogramVec
	score, build                                     *prometheus.GaugeVec
	cost, unpriced                                   prometheus.Counter
	all                                              []prometheus.Collector

	mu   sync.Mutex
	sup  *supervisor.Supervisor
	runs map[string]*run // runs that this process drives, by ID

	looking sync.Mutex
	looked  time.Time
	stock   stock
}

// Buckets in seconds. A step can be as fast as a function and as slow as an agent that works for an hour.
var (
	stepBuckets      = []float64{0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600}
	iterationBuckets = []float64{0.1, 1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600}
)

// New returns a collector whose counters are 0.
func New(cfg Config) *Collector {
	most := cfg.MaxValues
	if most <= 0 {
		most = 100
	}
	c := &Collector{
		every:       cmp.Or(cfg.Every, 5*time.Second),
		definitions: newValues(most), agents: newValues(most), models: newValues(most), loops: newValues(most), refusals: newValues(most),
		runs: make(map[string]*run),
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		c.all = append(c.all, v)
		return v
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
		c.all = append(c.all, v)
		return v
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
		c.all = append(c.all, v)
		return v
	}
	c.started = counter("refrain_runs_started_total", "Runs that this process has begun.", "definition")
	c.resumed = counter("refrain_runs_resumed_total", "Runs that this process has resumed after a pause, a question, "+
		"a stop or the death of a process.", "definition")
	c.ended = counter("refrain_runs_total", "Runs that have ended in this process. stop_reason is the stop reason of the outermost "+
		"loop, or none.", "definition", "status", "stop_reason")
	c.dropped = counter("refrain_runs_dropped_total", "Unfinished runs that this process has stopped driving, because it has "+
		"lost the lease (lease_lost) or could not write the status of the run (error).", "reason")
	c.asked = counter("refrain_questions_total", "Questions that runs have asked people.", "definition")
	c.refused = counter("refrain_requests_refused_total", "Requests and connections that the server has refused, by the kind of "+
		"problem.", "kind")
	c.iterations = counter("refrain_iterations_total", "Iterations that have ended.", "definition", "loop")
	c.iteration = histogram("refrain_iteration_duration_seconds", "Duration of iterations that this process has driven from "+
		"beginning to end.", iterationBuckets, "definition", "loop")
	c.score = gauge("refrain_last_score", "Score of the last iteration that has one.", "definition", "loop")
	c.step = histogram("refrain_sub_agent_duration_seconds", "Duration of agents' steps; a loop is also a step. The "+
		"status is ok, error, timeout or canceled.", stepBuckets, "agent", "status")
	c.errors = counter("refrain_sub_agent_errors_total", "Steps that have failed, each attempt, at the agent where the error "+
		"happened.", "agent", "kind")
	c.tokens = counter("refrain_tokens_total", "Tokens that models have reported, of type input or output. Input includes cached "+
		"tokens, output includes thinking tokens.", "model", "type")
	c.cache = counter("refrain_cache_tokens_total", "Input tokens that providers have read from their caches (type read) or "+
		"written into them for five minutes (write) or an hour (write_1h). refrain_tokens_total includes these tokens.", "model", "type")
	c.build = gauge("refrain_build_info", "1, with the version of the program as a label.", "version", "goversion")
	c.cost = prometheus.NewCounter(prometheus.CounterOpts{Name: "refrain_cost_total",
		Help: "Cost of model calls, in the currency of the definitions' price lists."})
	c.unpriced = prometheus.NewCounter(prometheus.CounterOpts{Name: "refrain_unpriced_model_calls_total",
		Help: "Model calls of steps whose cost is unknown, and therefore not in refrain_cost_total."})
	c.all = append(c.all, c.cost, c.unpriced)
	c.build.WithLabelValues(clean(cfg.Version), runtime.Version()).Set(1)
	for _, reason := range []string{droppedLease, droppedError} {
		c.dropped.WithLabelValues(reason)
	}
	return c
}

// Values of the label reason of refrain_runs_dropped_total.
const (
	droppedLease = "lease_lost"
	droppedError = "error"
)

// Refused counts a request that a server has refused; see server.Config.
func (c *Collector) Refused(kind string) { c.refused.WithLabelValues(c.refusals.one(kind)).Inc() }

// Observe makes a supervisor report its runs to the collector before it calls the functions that cfg already has.
// Call Observe before you create the supervisor, and [Collector.Watch] with the supervisor.
func (c *Collector) Observe(cfg *supervisor.Config) {
	event, beginning, ending := cfg.OnEvent, cfg.OnBeginning, cfg.OnEnding
	cfg.OnEvent = func(id string, ev *session.Event) {
		c.hear(id, ev)
		if event != nil {
			event(id, ev)
		}
	}
	cfg.OnBeginning = func(id string, run mark.Run, taken bool) {
		c.begun(id, run, taken)
		if beginning != nil {
			beginning(id, run, taken)
		}
	}
	cfg.OnEnding = func(id string, end supervisor.Ending) {
		c.left(id, end)
		if ending != nil {
			ending(id, end)
		}
	}
}

// Watch adds metrics of the runs that a supervisor drives and of the runs in its store. It replaces the supervisor of
// an earlier call.
func (c *Collector) Watch(sup *supervisor.Supervisor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sup = sup
}

// begun records that this process drives a run.
func (c *Collector) begun(id string, now mark.Run, taken bool) {
	definition := c.definitions.one(now.Name)
	if taken {
		c.resumed.WithLabelValues(definition).Inc()
	} else {
		c.started.WithLabelValues(definition).Inc()
	}
	// A new series that begins with 1 shows no increase, so the first failure would raise no alert. This call creates
	// the series with 0.
	c.ended.WithLabelValues(definition, string(mark.RunFailed), string(loop.ReasonError))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs[id] = &run{definition: definition, name: now.Name, since: time.Now()}
}

// left records that this process no longer drives a run.
func (c *Collector) left(id string, end supervisor.Ending) {
	c.mu.Lock()
	delete(c.runs, id)
	c.mu.Unlock()
	switch {
	case errors.Is(end.Err, lease.ErrLost):
		c.dropped.WithLabelValues(droppedLease).Inc()
	case end.Dropped():
		c.dropped.WithLabelValues(droppedError).Inc()
	}
}
