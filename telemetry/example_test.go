// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"context"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/telemetry"
	"github.com/refrain-dev/refrain/telemetry/observe"
)

// A program that has OpenTelemetry set up gives its providers to an observer, and the observer to its
// runs.
func Example() {
	spans := tracetest.NewInMemoryExporter() // in place of one that sends them
	o, err := telemetry.NewObserver(telemetry.Config{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))})
	if err != nil {
		fmt.Println(err)
		return
	}
	work, err := agent.New(agent.Config{Name: "work"})
	if err != nil {
		fmt.Println(err)
		return
	}
	root, err := loopagent.New(loopagent.Config{
		AgentConfig:   agent.Config{Name: "loop", SubAgents: []agent.Agent{work}},
		MaxIterations: 2,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := runner.NewInMemory("example", root)
	if err != nil {
		fmt.Println(err)
		return
	}
	msg := genai.NewContentFromText("Go", genai.RoleUser)
	for _, err := range r.Run(context.Background(), "ana", "s1", msg, agent.RunConfig{Observer: o}) {
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	for _, s := range spans.GetSpans() { // in the order of their ends
		fmt.Println(s.Name)
	}
	// Output:
	// invoke_agent work
	// iteration loop
	// invoke_agent work
	// iteration loop
	// invoke_agent loop
	// invoke_workflow loop
}

// A program that comes from ADK sets up telemetry once. Every run of the process is traced from then on.
func ExampleNew() {
	ctx := context.Background()
	spans := tracetest.NewInMemoryExporter() // in place of one that sends them
	p, err := telemetry.New(ctx, telemetry.WithSpanProcessors(sdktrace.NewSimpleSpanProcessor(spans)))
	if err != nil {
		fmt.Println(err)
		return
	}
	p.SetGlobalOtelProviders()
	defer observe.SetDefault(nil) // for the other examples

	work, err := agent.New(agent.Config{Name: "work"})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := runner.NewInMemory("example", work)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, err := range r.Run(ctx, "ana", "s1", genai.NewContentFromText("Go", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	for _, s := range spans.GetSpans() {
		fmt.Println(s.Name)
	}
	if err := p.Shutdown(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// invoke_agent work
	// invoke_workflow work
}
