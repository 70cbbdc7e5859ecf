// SPDX-License-Identifier: Apache-2.0

// Package otlp sends the telemetry of the command, if the environment says where: with the variables
// of OpenTelemetry, such as OTEL_EXPORTER_OTLP_ENDPOINT, by OTLP over HTTP. Nothing of it is made
// before a command drives runs.
package otlp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/refrain-dev/refrain/supervisor"
	"github.com/refrain-dev/refrain/telemetry"
	"github.com/refrain-dev/refrain/telemetry/observe"
)

// flushTime is how long the command waits for a collector before it exits.
const flushTime = 2 * time.Second

// settings is what the environment asks for.
type settings struct {
	traces, metrics bool
	wrong           error // a request of the environment that cannot be met
}

// read reads the environment variables.
func read(getenv func(string) string) (w settings) {
	if off, _ := strconv.ParseBool(getenv("OTEL_SDK_DISABLED")); off {
		return w
	}
	var errs []error
	on := func(kind string) bool {
		exporter := strings.TrimSpace(getenv("OTEL_" + kind + "_EXPORTER"))
		which := "OTEL_EXPORTER_OTLP_" + kind + "_PROTOCOL"
		if getenv(which) == "" {
			which = "OTEL_EXPORTER_OTLP_PROTOCOL"
		}
		protocol := getenv(which)
		endpoint := cmp.Or(getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), getenv("OTEL_EXPORTER_OTLP_"+kind+"_ENDPOINT"))
		switch {
		case exporter == "none", exporter == "" && endpoint == "":
			return false
		case exporter != "" && exporter != "otlp":
			errs = append(errs, fmt.Errorf("OTEL_%s_EXPORTER=%s: write otlp or none", kind, exporter))
			return false
		case protocol != "" && protocol != "http/protobuf":
			errs = append(errs, fmt.Errorf("%s=%s: write http/protobuf, the only supported protocol, and use the collector's port 4318",
				which, protocol))
			return false
		}
		return true
	}
	w.traces, w.metrics = on("TRACES"), on("METRICS")
	if len(errs) > 0 {
		w.wrong = errs[0] // the error about metrics usually has the same text
	}
	return w
}

// Sender sends traces and metrics to a collector. A nil Sender sends nothing.
type Sender struct {
	getenv  func(string) string
	version func() string
	warn    func(error)
	wanted  settings

	once     sync.Once
	observer *telemetry.Observer // nil if the observer could not be made
	stops    []func(context.Context) error

	live  atomic.Bool // print the warning at once
	first atomic.Pointer[error]
	told  sync.Once
}

// New returns a sender. It returns nil if the environment asks for none, or if the program has set up telemetry itself
// ([observe.SetDefault]). The sender calls warn at most once: for an error in the environment, or for the first failed export.
// Because a run may draw on the terminal, the call is made in [Sender.Stop], or at once after [Sender.Live].
func New(getenv func(string) string, version func() string, warn func(error)) *Sender {
	w := read(getenv)
	if observe.Default() != nil || !w.traces && !w.metrics && w.wrong == nil {
		return nil
	}
	return &Sender{getenv: getenv, version: version, wanted: w, warn: warn}
}

// Live makes the sender warn at once. Call Live in a command that runs for long and does not draw on the terminal.
func (s *Sender) Live() {
	if s != nil {
		s.live.Store(true)
		s.flushWarning()
	}
}

// Observer returns the observer of the runs, which the first call makes; nil if no telemetry is sent.
func (s *Sender) Observer() *telemetry.Observer {
	if s == nil {
		return nil
	}
	s.once.Do(s.make)
	return s.observer
}

func (s *Sender) make() {
	if err := s.wanted.wrong; err != nil {
		s.tell(err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(s.tell))
	ctx := context.Background()
	about := resource.NewSchemaless(attribute.String("service.name", "refrain"),
		attribute.String("service.version", s.version()))
	own, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		s.tell(err)
	}
	if all, err := resource.Merge(about, own); err == nil {
		about = all
	}
	content, _ := strconv.ParseBool(s.getenv(telemetry.EnvContent))
	cfg := telemetry.Config{Content: content}
	if s.wanted.traces {
		to, err := otlptracehttp.New(ctx)
		if err != nil {
			s.tell(err)
		} else {
			p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(to), sdktrace.WithResource(about))
			cfg.TracerProvider, s.stops = p, append(s.stops, p.Shutdown)
		}
	}
	if s.wanted.metrics {
		to, err := otlpmetrichttp.New(ctx)
		if err != nil {
			s.tell(err)
		} else {
			p := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(to)), sdkmetric.WithResource(about))
			cfg.MeterProvider, s.stops = p, append(s.stops, p.Shutdown)
		}
	}
	if len(s.stops) == 0 {
		return
	}
	if s.observer, err = telemetry.NewObserver(cfg); err != nil {
		s.tell(err)
	}
}

// Within returns a context in the trace that the environment names.
func (s *Sender) Within(ctx context.Context) context.Context {
	if o := s.Observer(); o != nil {
		ctx = o.Within(ctx, s.getenv)
	}
	return ctx
}

// Observe adds the observer to the config of a supervisor.
func (s *Sender) Observe(cfg *supervisor.Config) {
	if o := s.Observer(); o != nil {
		cfg.Observer = o
	}
}

// tell records the first error.
func (s *Sender) tell(err error) {
	err = fmt.Errorf("telemetry is not sent, and the runs go on without it: %w", err)
	if s.first.CompareAndSwap(nil, &err); s.live.Load() {
		s.flushWarning()
	}
}

// flushWarning calls warn with the first error, once.
func (s *Sender) flushWarning() {
	if err := s.first.Load(); err != nil {
		s.told.Do(func() { s.warn(*err) })
	}
}

// Stop sends the remaining telemetry, for at most two seconds.
func (s *Sender) Stop() {
	if s == nil {
		return
	}
	defer s.flushWarning()
	ctx, cancel := context.WithTimeoutCause(context.Background(), flushTime,
		errors.New("the collector does not answer; check OTEL_EXPORTER_OTLP_ENDPOINT"))
	defer cancel()
	var all sync.WaitGroup
	for _, stop := range s.stops {
		all.Go(func() {
			if err := stop(ctx); err != nil {
				s.tell(err)
			}
		})
	}
	all.Wait()
}
