// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/bench/ours"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/telemetry"
)

// telemetryOff measures what telemetry costs that nobody has switched on: nothing. The bounds are a little above the
// allocations of the commit before there was any, 10.1 and 31.6 an event, because the addresses of a loop's steps take
// one or two more since. What a span costs is told.
func telemetryOff(t *testing.T, tb *table) {
	on, err := telemetry.NewObserver(telemetry.Config{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithBatcher(discard{}))})
	if err != nil {
		t.Fatal(err)
	}
	loop, err := ours.Loop(1000)
	if err != nil {
		t.Fatal(err)
	}
	turns, err := modelTree(100, llmagent.ContextFull)
	if err != nil {
		t.Fatal(err)
	}
	got := rounds(t, 9, sampled("loop", observed(t, loop, agent.RunConfig{MaxLLMCalls: -1})),
		sampled("loop on", observed(t, loop, agent.RunConfig{MaxLLMCalls: -1, Observer: on})),
		sampled("turn", observed(t, turns, agent.RunConfig{MaxLLMCalls: -1})),
		sampled("turn on", observed(t, turns, agent.RunConfig{MaxLLMCalls: -1, Observer: on})))
	for _, side := range []struct {
		name, what string
		bound      float64
	}{{"loop", "runner, telemetry off, to a tenth", 12.5}, {"turn", "model turn, telemetry off, to a tenth", 35.5}} {
		off, on := got[side.name], got[side.name+" on"]
		tb.atMost(side.what, "allocs/event", side.bound, off.allocs().to(10), floor("on", "allocs", on.allocs()))
		tb.tell("  the time of it", "µs/event", off.cpu().in(us))
		tb.tell("  with spans, to a batch that is thrown away", "µs/event", on.cpu().in(us))
	}
}

// observed runs an agent in a new session in memory each time.
func observed(t *testing.T, a agent.Agent, cfg agent.RunConfig) op {
	service := session.InMemoryService()
	r, err := ours.NewRunner(a, service, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	return func() (int, error) {
		msg := genai.NewContentFromText("Go", genai.RoleUser)
		n, err := ours.Said(r.Run(ctx, user, "s", msg, cfg))
		if err != nil {
			return n, err
		}
		return n, service.Delete(ctx, &session.DeleteRequest{AppName: app, UserID: user, SessionID: "s"})
	}
}

// discard is an exporter.
type discard struct{}

func (discard) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (discard) Shutdown(context.Context) error                             { return nil }
