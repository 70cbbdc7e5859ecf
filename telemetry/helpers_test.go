// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
	"github.com/refrain-dev/refrain/telemetry"
	"github.com/refrain-dev/refrain/telemetry/observe"
	"github.com/refrain-dev/refrain/tool"
)

// lab collects what an observer makes.
type lab struct {
	*telemetry.Observer
	spans  *tracetest.InMemoryExporter
	read   *sdkmetric.ManualReader
	traces *sdktrace.TracerProvider
}

func newLab(t testing.TB, cfg telemetry.Config) *lab {
	t.Helper()
	l := &lab{spans: tracetest.NewInMemoryExporter(), read: sdkmetric.NewManualReader()}
	l.traces = sdktrace.NewTracerProvider(sdktrace.WithSyncer(l.spans))
	cfg.TracerProvider = l.traces
	cfg.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(l.read))
	var err error
	if l.Observer, err = telemetry.NewObserver(cfg); err != nil {
		t.Fatal(err)
	}
	return l
}

// tree tells the spans that have ended, with the attributes of the keys: each below its parent, in
// the order of their beginnings, those of a parallel agent by name.
func (l *lab) tree(keys ...string) string {
	spans := l.spans.GetSpans()
	known, below := make(map[trace.SpanID]bool), make(map[trace.SpanID][]tracetest.SpanStub)
	for _, s := range spans {
		known[s.SpanContext.SpanID()] = true
	}
	for _, s := range spans {
		parent := s.Parent.SpanID()
		if !known[parent] {
			parent = trace.SpanID{}
		}
		below[parent] = append(below[parent], s)
	}
	var b strings.Builder
	var write func(parent trace.SpanID, parallel bool, indent string)
	write = func(parent trace.SpanID, parallel bool, indent string) {
		slices.SortStableFunc(below[parent], func(a, b tracetest.SpanStub) int {
			if parallel {
				return cmp.Compare(a.Name, b.Name)
			}
			return a.StartTime.Compare(b.StartTime)
		})
		for _, s := range below[parent] {
			fmt.Fprintf(&b, "%s%s", indent, s.Name)
			if s.SpanKind == trace.SpanKindClient {
				b.WriteString(" (client)")
			}
			for _, key := range keys {
				if v, ok := attr(s, key); ok {
					fmt.Fprintf(&b, " %s=%s", key[strings.LastIndexByte(key, '.')+1:], v)
				}
			}
			for _, ev := range s.Events {
				fmt.Fprintf(&b, " [%s", ev.Name)
				for _, kv := range ev.Attributes {
					fmt.Fprintf(&b, " %s", kv.Value.Emit())
				}
				b.WriteString("]")
			}
			if s.Status.Code == codes.Error {
				fmt.Fprintf(&b, " ERROR %q", s.Status.Description)
			}
			b.WriteString("\n")
			kind, _ := attr(s, "refrain.agent.type")
			write(s.SpanContext.SpanID(), kind == "parallel", indent+"  ")
		}
	}
	write(trace.SpanID{}, false, "")
	return b.String()
}

func attr(s tracetest.SpanStub, key string) (string, bool) {
	for _, kv := range s.Attributes {
		if string(kv.Key) == key {
			return kv.Value.Emit(), true
		}
	}
	return "", false
}

// named returns the only span of a name.
func (l *lab) named(t testing.TB, name string) tracetest.SpanStub {
	t.Helper()
	var found []tracetest.SpanStub
	for _, s := range l.spans.GetSpans() {
		if s.Name == name {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d spans are called %q", len(found), name)
	}
	return found[0]
}

// measured returns how often each metric was measured, with the attributes in braces.
func (l *lab) measured(t testing.TB) map[string]uint64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := l.read.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]uint64)
	add := func(m metricdata.Metrics, attrs attribute.Set, n uint64) {
		words := []string{m.Name, m.Unit}
		for _, kv := range attrs.ToSlice() {
			words = append(words, kv.Value.Emit())
		}
		counts[strings.Join(words, " ")] += n
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					add(m, p.Attributes, p.Count)
				}
			case metricdata.Histogram[int64]:
				for _, p := range data.DataPoints {
					add(m, p.Attributes, p.Count)
				}
			}
		}
	}
	return counts
}

// world builds definitions, with models that answer from scripts and tools.
type world struct {
	text   string
	script scripted.Script
	tools  []tool.Tool
	sets   []tool.Toolset
	agents map[string]definition.NewAgent
}

func (w world) root(t testing.TB) agent.Agent {
	t.Helper()
	d, err := definition.Parse("test.yaml", []byte(w.text), definition.Options{})
	if err != nil {
		t.Fatal(err)
	}
	root, err := d.Build(t.Context(), definition.BuildConfig{
		Tools: w.tools, Toolsets: w.sets, Agents: w.agents,
		Model: func(context.Context, string) (model.LLM, error) { return scripted.New(w.script) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// supervise returns a supervisor of a store, whose runs the lab observes.
func (w world) supervise(t testing.TB, store session.Service, l *lab) *supervisor.Supervisor {
	t.Helper()
	root := w.root(t)
	var o observe.Observer
	if l != nil {
		o = l
	}
	sup, err := supervisor.New(supervisor.Config{
		Service: store, AppName: "app", UserID: "ana", Observer: o,
		Build: func(context.Context, mark.RunStarted) (*supervisor.Program, error) {
			return &supervisor.Program{Agent: root}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sup.Close(context.Background()) })
	return sup
}

func request() supervisor.Request {
	return supervisor.Request{Message: genai.NewContentFromText("Go", genai.RoleUser)}
}

func start(t testing.TB, sup *supervisor.Supervisor) *supervisor.Run {
	t.Helper()
	run, err := sup.Start(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func wait(t testing.TB, run *supervisor.Run) supervisor.Ending {
	t.Helper()
	end, err := run.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return end
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
