// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"fmt"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// BenchmarkResume takes up a run that was cut off in the last step of so many.
func BenchmarkResume(b *testing.B) {
	for _, steps := range []int{100, 10_000} {
		b.Run(fmt.Sprint(steps), func(b *testing.B) {
			grow := func() agent.Agent {
				root, err := loopagent.New(loopagent.Config{
					AgentConfig:   agent.Config{Name: "loop", SubAgents: []agent.Agent{speaker(b, "a", "one"), speaker(b, "b", "two")}},
					MaxIterations: uint(steps / 2),
				})
				if err != nil {
					b.Fatal(err)
				}
				return root
			}
			store := session.InMemoryService()
			r := newRunner(b, durable(grow(), store))
			id, finished := "", 0
			for ev, err := range r.Run(b.Context(), "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
				if err != nil {
					b.Fatal(err)
				}
				id = ev.InvocationID
				if ev.Mark != nil && ev.Mark.Kind == mark.KindStepFinished {
					if finished++; finished == steps-1 {
						break
					}
				}
			}
			log := get(b, store).(*session.View).Log()
			var events []*session.Event
			for ev := range log.All() {
				events = append(events, ev)
			}
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				store := crashed(b, nil, events, len(events))
				r := newRunner(b, durable(grow(), store))
				b.StartTimer()
				n := 0
				for _, err := range r.Resume(b.Context(), "ana", "s1", id, agent.RunConfig{}) {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
				if n > 12 {
					b.Fatalf("%d new events", n)
				}
			}
			b.ReportMetric(float64(len(events)), "events")
		})
	}
}
