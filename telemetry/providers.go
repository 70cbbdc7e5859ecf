// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/refrain-dev/refrain/telemetry/observe"
)

// Option is an option of [New].
type Option func(*options)

type options struct {
	resource *resource.Resource
	spans    []sdktrace.SpanProcessor
	tracer   *sdktrace.TracerProvider
	content  bool
}

// WithResource describes the sender of the spans. Its attributes override those of the environment, such as
// OTEL_SERVICE_NAME.
func WithResource(r *resource.Resource) Option { return func(o *options) { o.resource = r } }

// WithSpanProcessors adds processors of spans, such as one that sends them with an exporter.
func WithSpanProcessors(p ...sdktrace.SpanProcessor) Option {
	return func(o *options) { o.spans = append(o.spans, p...) }
}

// WithTracerProvider sends the spans to an existing provider. New then ignores the resource and the
// processors of the other options.
func WithTracerProvider(tp *sdktrace.TracerProvider) Option {
	return func(o *options) { o.tracer = tp }
}

// WithGenAICaptureMessageContent sets whether spans include the requests and answers of models and tools; see
// [Config].Content. The default is the value of OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT.
func WithGenAICaptureMessageContent(capture bool) Option {
	return func(o *options) { o.content = capture }
}

// Providers holds the tracing that [New] has set up.
type Providers struct {
	// TracerProvider is nil if there is no processor, collector or provider to send spans to.
	TracerProvider *sdktrace.TracerProvider

	content bool
}

// New sets up tracing as ADK does. It sends spans to the processors of [WithSpanProcessors], and by OTLP over HTTP to
// the collector that OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT names. To trace runs, call
// [Providers.SetGlobalOtelProviders], or set [Providers.Observer] as their observer. Call [Providers.Shutdown] at the
// end. New fails if the exporter or the resource cannot be created.
func New(ctx context.Context, opts ...Option) (*Providers, error) {
	var o options
	o.content, _ = strconv.ParseBool(os.Getenv(EnvContent))
	for _, opt := range opts {
		opt(&o)
	}
	p := &Providers{TracerProvider: o.tracer, content: o.content}
	if p.TracerProvider != nil {
		return p, nil
	}
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "" {
		to, err := otlptracehttp.New(ctx)
		if err != nil {
			return nil, fmt.Errorf("telemetry: make the OTLP exporter: %w", err)
		}
		o.spans = append(o.spans, sdktrace.NewBatchSpanProcessor(to))
	}
	if len(o.spans) == 0 {
		return p, nil
	}
	about, err := resource.Merge(resource.Default(), o.resource)
	if err != nil {
		return nil, fmt.Errorf("telemetry: merge the resource with the default one: %w", err)
	}
	all := []sdktrace.TracerProviderOption{sdktrace.WithResource(about)}
	for _, sp := range o.spans {
		all = append(all, sdktrace.WithSpanProcessor(sp))
	}
	p.TracerProvider = sdktrace.NewTracerProvider(all...)
	return p, nil
}

// Observer returns an observer that creates spans with the TracerProvider and metrics with OpenTelemetry's global
// MeterProvider. Without a TracerProvider it uses the global one. Observer fails if the MeterProvider cannot create a
// histogram.
func (p *Providers) Observer() (*Observer, error) {
	var to trace.TracerProvider = p.TracerProvider
	if p.TracerProvider == nil {
		to = otel.GetTracerProvider()
	}
	return NewObserver(Config{TracerProvider: to, MeterProvider: otel.GetMeterProvider(), Content: p.content})
}

// SetGlobalOtelProviders makes the TracerProvider OpenTelemetry's global one, and traces the runs of this process
// that have no observer of their own.
func (p *Providers) SetGlobalOtelProviders() {
	if p.TracerProvider != nil {
		otel.SetTracerProvider(p.TracerProvider)
	}
	o, err := p.Observer()
	if err != nil {
		otel.Handle(err)
		return
	}
	observe.SetDefault(o)
}

// Shutdown sends the pending spans and stops the TracerProvider. It fails if the spans cannot be sent before ctx ends.
func (p *Providers) Shutdown(ctx context.Context) error {
	if p.TracerProvider == nil {
		return nil
	}
	return p.TracerProvider.Shutdown(ctx)
}
