// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	collmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	colltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector takes what is sent by OTLP over HTTP.
type collector struct {
	*httptest.Server

	mu       sync.Mutex
	spans    []*tracepb.Span
	metrics  []string
	resource map[string]string
	keys     []string // of the requests
}

func newCollector(t *testing.T) *collector {
	c := &collector{resource: make(map[string]string)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("a request of %s: %v", r.Header.Get("Content-Type"), err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.keys = append(c.keys, r.Header.Get("X-Key"))
		switch r.URL.Path {
		case "/v1/traces":
			var req colltrace.ExportTraceServiceRequest
			if err := proto.Unmarshal(body, &req); err != nil {
				t.Error(err)
			}
			for _, of := range req.ResourceSpans {
				for _, kv := range of.Resource.Attributes {
					c.resource[kv.Key] = kv.Value.GetStringValue()
				}
				for _, scope := range of.ScopeSpans {
					c.spans = append(c.spans, scope.Spans...)
				}
			}
		case "/v1/metrics":
			var req collmetrics.ExportMetricsServiceRequest
			if err := proto.Unmarshal(body, &req); err != nil {
				t.Error(err)
			}
			for _, of := range req.ResourceMetrics {
				for _, scope := range of.ScopeMetrics {
					for _, m := range scope.Metrics {
						c.metrics = append(c.metrics, m.Name)
					}
				}
			}
		default:
			t.Errorf("a request to %s", r.URL.Path)
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// tree lists the spans, each after as many dots as there are spans around it.
func (c *collector) tree() (lines []string) {
	slices.SortFunc(c.spans, func(a, b *tracepb.Span) int { return int(a.StartTimeUnixNano) - int(b.StartTimeUnixNano) })
	depth := make(map[string]int)
	for _, s := range c.spans {
		n, below := depth[string(s.ParentSpanId)]
		if below {
			n++
		}
		depth[string(s.SpanId)] = n
		lines = append(lines, strings.Repeat(".", n)+s.Name)
	}
	return lines
}

func has(attrs []*commonpb.KeyValue, key, value string) bool {
	return slices.ContainsFunc(attrs, func(kv *commonpb.KeyValue) bool { return kv.Key == key && kv.Value.GetStringValue() == value })
}

// tracedRun runs the command in an empty folder with this definition, and returns its exit code and stderr.
func tracedRun(t *testing.T, definition string, env ...string) (code int, stderr string) {
	t.Helper()
	t.Chdir(t.TempDir())
	write(t, "loop.yaml", definition)
	cmd := exec.CommandContext(t.Context(), "refrain", "run", "loop.yaml", "--progress", "plain", "--store", "sqlite:runs.db")
	cmd.Env = append(os.Environ(), env...)
	var said strings.Builder
	cmd.Stderr = &said
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), said.String()
}

const tracedLoop = `
name: poem
max_iterations: 2
stop_when: iteration == 2
score: points
sub_agents:
  - {name: writer, text: A line., output_key: line}
  - {name: judge, set: {points: iteration}}
`

// The environment switches telemetry on: the command sends its spans and metrics before it ends, in the
// trace that it was started in.
func TestTelemetryIsSent(t *testing.T) {
	c := newCollector(t)
	code, said := tracedRun(t, tracedLoop, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_EXPORTER_OTLP_HEADERS=x-key=k1",
		"OTEL_RESOURCE_ATTRIBUTES=deployment.environment=test",
		"TRACEPARENT=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	if code != 0 || strings.Contains(said, "telemetry") {
		t.Fatalf("exit code %d: %s", code, said)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if diff := cmp.Diff([]string{
		"invoke_workflow poem", ".invoke_agent poem",
		"..iteration poem", "...invoke_agent writer", "...invoke_agent judge",
		"..iteration poem", "...invoke_agent writer", "...invoke_agent judge",
	}, c.tree()); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	root := c.spans[0]
	if !has(root.Attributes, "loop.stop_reason", "condition") || string(root.ParentSpanId) != "\x00\xf0\x67\xaa\x0b\xa9\x02\xb7" {
		t.Errorf("the run's span is %v", root)
	}
	if events := c.spans[2].Events; len(events) != 1 || events[0].Name != "gen_ai.evaluation.result" ||
		!has(events[0].Attributes, "gen_ai.evaluation.name", "points") {
		t.Errorf("the iteration's events are %v", events)
	}
	if c.resource["service.name"] != "refrain" || c.resource["deployment.environment"] != "test" {
		t.Errorf("the resource is %v", c.resource)
	}
	if !slices.Contains(c.metrics, "gen_ai.workflow.duration") || !slices.Contains(c.metrics, "gen_ai.invoke_agent.duration") {
		t.Errorf("the metrics are %v", c.metrics)
	}
	if slices.Contains(c.keys, "") {
		t.Errorf("the requests have the keys %q", c.keys)
	}
}

// A run that is interrupted sends what it has.
func TestTelemetryOfAnInterruptedRun(t *testing.T) {
	c := newCollector(t)
	code, said := tracedRun(t, `
name: poem
max_iterations: 1000000
sub_agents:
  - {name: writer, text: A line.}
  - {name: stop, command: [sh, -c, "[ -e sent ] || kill -INT $PPID; echo >sent"]}
`, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_METRICS_EXPORTER=none", "OTEL_SERVICE_NAME=poems")
	if code != 130 || strings.Contains(said, "telemetry") {
		t.Fatalf("exit code %d: %s", code, said)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if diff := cmp.Diff([]string{ // when the signal comes nobody knows
		"invoke_workflow poem", ".invoke_agent poem", "..iteration poem", "...invoke_agent writer", "...invoke_agent stop",
	}, c.tree()[:5]); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	if len(c.metrics) > 0 || c.resource["service.name"] != "poems" || !has(c.spans[0].Attributes, "refrain.outcome", "paused") {
		t.Errorf("got the metrics %v, of %v, of %v", c.metrics, c.resource, c.spans[0])
	}
}

// What is wrong with telemetry changes nothing of a run, and is said once.
func TestTelemetryThatFails(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	stuck := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stuck }))
	defer silent.Close()
	defer close(stuck)
	for _, tt := range []struct {
		name, want string
		env        []string
	}{
		{"gone", "connection refused", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + gone.URL}},
		{"silent", "refrain: telemetry is not sent", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + silent.URL}},
		{"grpc", "write http/protobuf, the only supported protocol", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + gone.URL, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}},
		{"grpc for traces", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc",
			[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + gone.URL, "OTEL_METRICS_EXPORTER=none",
				"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc"}},
		{"console", "write otlp or none", []string{"OTEL_TRACES_EXPORTER=console"}},
		{"disabled", "", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + gone.URL, "OTEL_SDK_DISABLED=true"}},
		{"none", "", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + gone.URL, "OTEL_TRACES_EXPORTER=none", "OTEL_METRICS_EXPORTER=none"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, said := tracedRun(t, tracedLoop, tt.env...)
			warned := 1
			if tt.want == "" {
				warned = 0
			}
			if code != 0 || strings.Count(said, "telemetry is not sent") != warned || !strings.Contains(said, tt.want) ||
				strings.Contains(said, "traces export") && warned == 0 {
				t.Errorf("exit code %d: %s", code, said)
			}
		})
	}
}
