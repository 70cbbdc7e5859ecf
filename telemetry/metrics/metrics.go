// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"errors"
	"sync"
	"time"

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
	series series
	labels labels
	stock  stockCache

	mu   sync.Mutex
	sup  *supervisor.Supervisor
	runs map[string]*run // runs that this process drives, by ID
}

// New returns a collector whose counters are 0.
func New(cfg Config) *Collector {
	most := cfg.MaxValues
	if most <= 0 {
		most = 100
	}
	return &Collector{
		series: newSeries(cfg.Version),
		labels: newLabels(most),
		stock:  stockCache{every: cmp.Or(cfg.Every, 5*time.Second)},
		runs:   make(map[string]*run),
	}
}

// Refused counts a request that a server has refused; see server.Config.
func (c *Collector) Refused(kind string) {
	c.series.refused.WithLabelValues(c.labels.refusals.one(kind)).Inc()
}

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
	definition := c.labels.definitions.one(now.Name)
	if taken {
		c.series.resumed.WithLabelValues(definition).Inc()
	} else {
		c.series.started.WithLabelValues(definition).Inc()
	}
	// A new series that begins with 1 shows no increase, so the first failure would raise no alert. This call creates
	// the series with 0.
	c.series.ended.WithLabelValues(definition, string(mark.RunFailed), string(loop.ReasonError))
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
		c.series.dropped.WithLabelValues(droppedLease).Inc()
	case end.Dropped():
		c.series.dropped.WithLabelValues(droppedError).Inc()
	}
}
