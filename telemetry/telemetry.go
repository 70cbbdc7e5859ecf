// SPDX-License-Identifier: Apache-2.0

// Package telemetry creates OpenTelemetry traces and metrics of runs, by the semantic conventions for generative AI.
//
//	o, err := telemetry.NewObserver(telemetry.Config{TracerProvider: tp, MeterProvider: mp})
//	if err != nil {
//		return err
//	}
//	for ev, err := range r.Run(ctx, "ana", "s1", msg, agent.RunConfig{Observer: o}) {
//
// The span of a run contains the spans of its agents, the iterations of its loops, the requests to models and the
// calls of tools. Agents, tools and HTTP clients find their span in their context. A run that is paused and resumed
// has one span for each part, so that no span is open during the pause. doc/telemetry.md lists the names of spans,
// attributes and metrics; the file names.go defines them.
package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/refrain-dev/refrain/telemetry/observe"
)

// Config says where an [Observer] sends telemetry.
type Config struct {
	// TracerProvider creates the spans; nil creates none.
	TracerProvider trace.TracerProvider
	// MeterProvider creates the metrics; nil creates none.
	MeterProvider metric.MeterProvider
	// Propagator writes the span into the requests of HTTP, MCP and A2A clients and into the environment of commands.
	// [Observer.Handler] reads the span of a request with it. The default is W3C Trace Context.
	Propagator propagation.TextMapPropagator
	// Content adds to the spans the requests and answers of models and tools, and the reason for which a loop rejects
	// an iteration. Without Content, spans contain no text of agents, except where an error quotes it, such as the
	// end of a command's standard error. Keys of known kinds are removed from errors, but not from content.
	Content bool
}

// Observer creates spans and metrics of the runs that it observes. Set it as agent.RunConfig.Observer or
// supervisor.Config.Observer. It is safe for concurrent use.
type Observer struct {
	cfg    Config
	tracer trace.Tracer
	metrics

	mu   sync.Mutex
	legs map[string]trace.SpanContext // last span of each run that has not ended, by invocation
}

var _ observe.Observer = (*Observer)(nil)

// NewObserver returns an observer. It fails if the MeterProvider cannot create a histogram.
func NewObserver(cfg Config) (*Observer, error) {
	cfg.TracerProvider = cmp.Or[trace.TracerProvider](cfg.TracerProvider, nooptrace.NewTracerProvider())
	cfg.MeterProvider = cmp.Or[metric.MeterProvider](cfg.MeterProvider, noopmetric.NewMeterProvider())
	cfg.Propagator = cmp.Or[propagation.TextMapPropagator](cfg.Propagator, propagation.TraceContext{})
	o := &Observer{cfg: cfg, tracer: cfg.TracerProvider.Tracer(scope), legs: make(map[string]trace.SpanContext)}
	if err := o.metrics.make(cfg.MeterProvider.Meter(scope)); err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	return o, nil
}

// fields returns the log fields of a request with the context ctx.
func (o *Observer) fields(ctx context.Context) map[string]string {
	m := make(propagation.MapCarrier)
	o.cfg.Propagator.Inject(ctx, m)
	return m
}

// mostLegs limits the number of entries in legs.
const mostLegs = 4096

// leg returns the span of the previous part of a run, if this process has traced that part.
func (o *Observer) leg(id string) (trace.SpanContext, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	sc, ok := o.legs[id]
	return sc, ok
}

// keepLeg keeps the span of a part of a run, or deletes it if the run has ended.
func (o *Observer) keepLeg(id string, sc trace.SpanContext, ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if ended || !sc.IsValid() {
		delete(o.legs, id)
		return
	}
	for old := range o.legs {
		if len(o.legs) < mostLegs {
			break
		}
		delete(o.legs, old) // the span of its next part will have no link
	}
	o.legs[id] = sc
}
