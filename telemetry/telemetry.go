// SPDX-License-Identifier: Apache-2.0

// Package telemetry makes OpenTelemetry traces and metrics of runs, by its conventions for generative AI.
//
//	o, err := telemetry.NewObserver(telemetry.Config{TracerProvider: tp, MeterProvider: mp})
//	if err != nil {
//		return err
//	}
//	for ev, err := range r.Run(ctx, "ana", "s1", msg, agent.RunConfig{Observer: o}) {
//
// A run is a span, with the agents that it runs, the iterations of its loops, the requests to models and
// the calls of tools below it. Agents, tools and HTTP clients get their span with their context. A run that
// is paused and resumed has a span for each part: no span is open during the pause. doc/telemetry.md lists
// the names, which are all in the file names.go.
package telemetry

import (
	"context"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/refrain-dev/refrain/observe"
)

// Config says where an [Observer] sends telemetry.
type Config struct {
	// TracerProvider makes the spans; nil makes none.
	TracerProvider trace.TracerProvider
	// MeterProvider makes the metrics; nil makes none.
	MeterProvider metric.MeterProvider
	// Propagator writes the span into the requests of HTTP, MCP and A2A clients and into the environment
	// of commands, and reads it in [Observer.Handler]. The default is W3C Trace Context.
	Propagator propagation.TextMapPropagator
	// Content adds to the spans the requests and answers of models and tools, and the reason for which a
	// loop rejects an iteration. Without it, spans have no texts of agents, except where an error quotes
	// them, such as the end of a command's standard error. Known kinds of keys are removed from errors, but
	// not from contents.
	Content bool
}

// Observer makes spans and metrics of the runs that it observes. Set it as
// agent.RunConfig.Observer or supervisor.Config.Observer. It is safe for concurrent use.
type Observer struct {
	cfg    Config
	tracer trace.Tracer
	metrics

	mu   sync.Mutex
	legs map[string]trace.SpanContext // of runs that have not ended, by their invocation
}

var _ observe.Observer = (*Observer)(nil)

// NewObserver returns an observer. It fails if the MeterProvider cannot make a histogram.
func NewObserver(cfg Config) (*Observer, error) {
	if cfg.TracerProvider == nil {
		cfg.TracerProvider = nooptrace.NewTracerProvider()
	}
	if cfg.MeterProvider == nil {
		cfg.MeterProvider = noopmetric.NewMeterProvider()
	}
	if cfg.Propagator == nil {
		cfg.Propagator = propagation.TraceContext{}
	}
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

// mostLegs bounds what is remembered of runs that have not ended.
const mostLegs = 4096

// leg returns the span of the part of a run before this one, if this process has seen it.
func (o *Observer) leg(id string) (trace.SpanContext, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	sc, ok := o.legs[id]
	return sc, ok
}

// keepLeg remembers the span of a part of a run; one that has ended is forgotten.
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
		delete(o.legs, old) // its next part has no link
	}
	o.legs[id] = sc
}
