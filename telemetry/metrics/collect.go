// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Metrics that are computed at each scrape.
var (
	active = describe("refrain_runs_active", "Runs that this process drives, without those that wait for their turn.")
	queued = describe("refrain_runs_queued", "Runs that wait in this process for their turn; see --max-runs.")
	stuck  = describe("refrain_oldest_iteration_timestamp_seconds", "Unix time at which the last iteration of a run ended, or at which "+
		"this process began to drive the run; the oldest of these times over all runs that this process drives.")
	spent = describe("refrain_budget_used_ratio", "Largest used share of a loop's budget over all runs that this process drives. "+
		"Loops that began in another process are not counted.", "definition")

	storeUp   = describe("refrain_store_up", "1 if the store has listed its runs within 5 s, else 0.")
	storeTook = describe("refrain_store_list_seconds", "How long the store took to list its runs.")
	storeRuns = describe("refrain_store_runs", "Runs in the store.", "status")
	storeAsks = describe("refrain_store_oldest_question_timestamp_seconds", "Unix time at which the oldest wait for a person "+
		"began, over all waiting runs in the store.")
	storeIdle = describe("refrain_store_oldest_running_timestamp_seconds", "Unix time of the last event of a run; the oldest of these "+
		"times over all runs in the store that have the status running.")
)

// statuses lists the statuses of a run.
var statuses = []mark.RunStatus{mark.RunRunning, mark.RunIsPaused, mark.RunWaiting, mark.RunCompleted, mark.RunFailed,
	mark.RunCanceled}

// stockCache keeps the last listing of the store's runs.
type stockCache struct {
	every time.Duration // the shortest interval between two listings

	mu     sync.Mutex
	listed time.Time // zero before the first listing
	stock  stock
}

// stock is the result of a listing of the store's runs.
type stock struct {
	up         bool
	took       time.Duration
	runs       map[mark.RunStatus]int
	asks, idle time.Time
}

// Describe sends the descriptions of all metrics.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, one := range c.series.all {
		one.Describe(ch)
	}
	for _, d := range []*prometheus.Desc{
		active, queued, stuck, spent, storeUp, storeTook, storeRuns, storeAsks, storeIdle,
	} {
		ch <- d
	}
}

// Collect sends the current metrics. It lists the store's runs, for at most 5 s.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	for _, one := range c.series.all {
		one.Collect(ch)
	}
	c.mu.Lock()
	sup := c.sup
	c.mu.Unlock()
	if sup == nil {
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	c.here(sup, gauge)
	s := c.stock.list(sup)
	if gauge(storeTook, s.took.Seconds()); !s.up {
		gauge(storeUp, 0)
		return
	}
	gauge(storeUp, 1)
	for _, status := range statuses {
		gauge(storeRuns, float64(s.runs[status]), string(status))
	}
	if !s.asks.IsZero() {
		gauge(storeAsks, unix(s.asks))
	}
	if !s.idle.IsZero() {
		gauge(storeIdle, unix(s.idle))
	}
}

func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1e3 }

// here sends the metrics of the runs that this process drives.
func (c *Collector) here(sup *supervisor.Supervisor, gauge func(*prometheus.Desc, float64, ...string)) {
	waiting := make(map[string]bool)
	all := sup.Driving()
	for _, r := range all {
		if r.Queued() {
			waiting[r.ID()] = true
		}
	}
	gauge(active, float64(len(all)-len(waiting)))
	gauge(queued, float64(len(waiting)))
	var oldest time.Time
	shares := make(map[string]float64)
	c.mu.Lock()
	for id, r := range c.runs {
		if waiting[id] {
			r.since = time.Now() // a queued run makes no progress but is not stuck
		} else {
			oldest = earlier(oldest, r.since)
		}
		for _, l := range r.loops {
			if share, ok := l.ratio(); ok {
				shares[r.definition] = max(shares[r.definition], share)
			}
		}
	}
	c.mu.Unlock()
	if !oldest.IsZero() {
		gauge(stuck, unix(oldest))
	}
	for definition, share := range shares {
		gauge(spent, share, definition)
	}
}

// patience is how long the store may take to list its runs.
const patience = 5 * time.Second

// list lists the runs of the store, or returns the last list if it is recent enough.
func (c *stockCache) list(sup *supervisor.Supervisor) stock {
	c.mu.Lock()
	defer c.mu.Unlock()
	began := time.Now()
	if !c.listed.IsZero() && began.Sub(c.listed) < c.every {
		return c.stock
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	all, err := sup.List(ctx)
	s := stock{up: err == nil, took: time.Since(began), runs: make(map[mark.RunStatus]int)}
	for i := range all {
		info := &all[i]
		s.runs[info.Run.Status]++
		switch info.Run.Status {
		case mark.RunWaiting:
			s.asks = earlier(s.asks, info.Updated)
		case mark.RunRunning:
			s.idle = earlier(s.idle, info.Updated)
		}
	}
	c.listed, c.stock = time.Now(), s
	return s
}

// earlier returns the earlier of two times. A zero time does not count.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
