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
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/refrain-dev/refrain/observe"
	"github.com/refrain-dev/refrain/supervisor"
	"github.com/refrain-dev/refrain/telemetry"
)

// flushTime is how long the command waits at its end for a collector.
const flushTime = 2 * time.Second

// wanted says what the environment asks for.
type wanted struct {
	traces, metrics bool
	wrong           error // what it asks for and cannot have
}

// read reads the environment.
func read(getenv func(string) string) (w wanted) {
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
			errs = append(errs, fmt.Errorf("%s=%s: only http/protobuf is possible, which collectors take at port 4318",
				which, protocol))
			return false
		}
		return true
	}
	w.traces, w.metrics = on("TRACES"), on("METRICS")
	if len(errs) > 0 {
		w.wrong = errs[0] // mostly the other says the same
	}
	return w
}

// Sender sends what an observer makes. A nil Sender sends nothing.
type Sender struct {
	getenv  func(string) string
	version func() string
	warn    func(error)
	wanted  wanted

	once     sync.Once
	observer *telemetry.Observer // nil if it could not be made
	stops    []func(context.Context) error

	mu    sync.Mutex
	live  bool  // warnings are told at once
	first error // that is to be told
	told  bool
}

// New returns a sender, or nil if the environment asks for none, or the program has set up telemetry itself
// ([observe.SetDefault]). It calls warn at most once, about something that is wrong with the environment, or
// the first time that something cannot be sent: by [Sender.Stop], as a run may draw on the terminal until
// then, or at once after [Sender.Live].
func New(getenv func(string) string, version func() string, warn func(error)) *Sender {
	w := read(getenv)
	if observe.Default() != nil || !w.traces && !w.metrics && w.wrong == nil {
		return nil
	}
	return &Sender{getenv: getenv, version: version, wanted: w, warn: warn}
}

// Live is for a command that goes on for long and draws nothing: it is warned at once.
func (s *Sender) Live() {
	if s != nil {
		s.flushWarning(true)
	}
}

// Observer returns what observes the runs, made by the first call; nil if nobody does.
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

// Within returns a context that belongs to the trace that the environment names.
func (s *Sender) Within(ctx context.Context) context.Context {
	if o := s.Observer(); o != nil {
		ctx = o.Within(ctx, s.getenv)
	}
	return ctx
}

// Observe lets a supervisor's runs be observed.
func (s *Sender) Observe(cfg *supervisor.Config) {
	if o := s.Observer(); o != nil {
		cfg.Observer = o
	}
}

// tell notes the first thing that goes wrong.
func (s *Sender) tell(err error) {
	s.mu.Lock()
	if s.first == nil {
		s.first = fmt.Errorf("telemetry is not sent, and the runs go on without it: %w", err)
	}
	live := s.live
	s.mu.Unlock()
	if live {
		s.flushWarning(true)
	}
}

// flushWarning warns, once, if there is something to warn of.
func (s *Sender) flushWarning(live bool) {
	s.mu.Lock()
	s.live = s.live || live
	err := s.first
	if s.told {
		err = nil
	}
	s.told = s.told || err != nil
	s.mu.Unlock()
	if err != nil {
		s.warn(err)
	}
}

// Stop sends what is left, for at most two seconds.
func (s *Sender) Stop() {
	if s == nil {
		return
	}
	defer s.flushWarning(false)
	ctx, cancel := context.WithTimeoutCause(context.Background(), flushTime,
		errors.New("the collector does not answer"))
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
