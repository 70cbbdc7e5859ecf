// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/telemetry"
	"github.com/refrain-dev/refrain/telemetry/observe"
)

// noCollector keeps the environment of the test's machine out.
func noCollector(t *testing.T) {
	t.Helper()
	for _, key := range []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_SERVICE_NAME", telemetry.EnvContent,
	} {
		t.Setenv(key, "")
	}
}

// global sets up tracing for the process and takes it back at the end of the test.
func global(t *testing.T, opts ...telemetry.Option) *telemetry.Providers {
	t.Helper()
	before := otel.GetTracerProvider()
	p, err := telemetry.New(t.Context(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	p.SetGlobalOtelProviders()
	t.Cleanup(func() {
		observe.SetDefault(nil)
		otel.SetTracerProvider(before)
	})
	return p
}

// ask runs an agent whose model answers "Blue.".
func ask(t *testing.T) {
	t.Helper()
	m, err := scripted.New(scripted.Script{Name: "m", Answers: []scripted.Answer{{Text: "Blue."}}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := llmagent.New(llmagent.Config{Name: "painter", Model: m})
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.NewInMemory("app", a)
	if err != nil {
		t.Fatal(err)
	}
	msg := genai.NewContentFromText("Which colour?", genai.RoleUser)
	for _, err := range r.Run(t.Context(), "ana", "s1", msg, agent.RunConfig{}) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The runs of a program that sets up telemetry as with ADK are traced, with nothing in their RunConfig.
func TestGlobalProvidersTraceEveryRun(t *testing.T) {
	for _, content := range []bool{false, true} {
		t.Run(fmt.Sprint("content=", content), func(t *testing.T) {
			noCollector(t)
			spans := tracetest.NewInMemoryExporter()
			p := global(t, telemetry.WithResource(resource.NewSchemaless(attribute.String("service.name", "studio"))),
				telemetry.WithSpanProcessors(sdktrace.NewSimpleSpanProcessor(spans)),
				telemetry.WithGenAICaptureMessageContent(content))
			ask(t)
			if otel.GetTracerProvider() != p.TracerProvider {
				t.Error("the TracerProvider is not OpenTelemetry's global one")
			}
			var names []string
			for _, s := range spans.GetSpans() {
				names = append(names, s.Name)
				if v, _ := s.Resource.Set().Value("service.name"); v.AsString() != "studio" {
					t.Errorf("span %q is of service %q, want studio", s.Name, v.AsString())
				}
				if s.Name != "chat m" {
					continue
				}
				if said, ok := attr(s, "gen_ai.output.messages"); ok != content || strings.Contains(said, "Blue.") != content {
					t.Errorf("output messages: %q", said)
				}
			}
			if got, want := strings.Join(names, ", "), "chat m, invoke_agent painter, invoke_workflow painter"; got != want {
				t.Errorf("spans %s, want %s", got, want)
			}
			if err := p.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Providers that the program has made get the spans and the metrics, and the variable switches the content on.
func TestOwnTracerProvider(t *testing.T) {
	noCollector(t)
	read, meters := sdkmetric.NewManualReader(), otel.GetMeterProvider()
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(read)))
	t.Cleanup(func() { otel.SetMeterProvider(meters) })
	t.Setenv(telemetry.EnvContent, "true")
	spans := tracetest.NewInMemoryExporter()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	if p := global(t, telemetry.WithTracerProvider(tp)); p.TracerProvider != tp {
		t.Fatal("another provider")
	}
	ask(t)
	if all := spans.GetSpans(); len(all) != 3 {
		t.Fatalf("%d spans, want 3", len(all))
	} else if said, _ := attr(all[0], "gen_ai.output.messages"); !strings.Contains(said, "Blue.") {
		t.Errorf("output messages: %q", said)
	}
	var got metricdata.ResourceMetrics
	if err := read.Collect(t.Context(), &got); err != nil || len(got.ScopeMetrics) == 0 {
		t.Errorf("metrics %v, %v", got.ScopeMetrics, err)
	}
}

// Without options and without a collector there is no provider, and runs go on.
func TestNoProvider(t *testing.T) {
	noCollector(t)
	p := global(t)
	if p.TracerProvider != nil {
		t.Error("a TracerProvider that sends nothing")
	}
	ask(t)
	if err := p.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// The variable of OpenTelemetry names the collector, which has the spans after Shutdown.
func TestCollectorOfTheEnvironment(t *testing.T) {
	noCollector(t)
	got := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		select {
		case got <- r.URL.Path + " " + string(body):
		default:
		}
	}))
	defer srv.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", srv.URL)
	p := global(t)
	ask(t)
	if err := p.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case sent := <-got:
		if !strings.HasPrefix(sent, "/v1/traces ") || !strings.Contains(sent, "invoke_agent painter") {
			t.Errorf("sent %q", sent)
		}
	default:
		t.Error("the collector got nothing")
	}
}
