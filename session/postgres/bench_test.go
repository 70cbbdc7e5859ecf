// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/postgres"
)

// BenchmarkAppend is the throughput of all writers. FSYNC=on in the environment
// has the server wait for the disk.
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 16} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			svc := open(b, postgres.Config{})
			held := make([]session.Session, writers)
			for i := range held {
				held[i] = create(b, svc, "s"+strconv.Itoa(i))
			}
			n := 0
			for b.Loop() {
				n++
				var wg sync.WaitGroup
				for _, s := range held {
					wg.Go(func() {
						ev := &session.Event{Author: "writer"}
						ev.Actions.StateDelta = map[string]any{"n": n}
						if err := svc.AppendEvent(b.Context(), s, ev); err != nil {
							b.Error(err)
						}
					})
				}
				wg.Wait()
			}
			b.ReportMetric(float64(n*writers)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchmarkOpenSession opens a session, and reads its state and its last event.
func BenchmarkOpenSession(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("events=%d", n), func(b *testing.B) {
			svc := open(b, postgres.Config{})
			s := create(b, svc, "s1")
			for range n {
				if err := svc.AppendEvent(b.Context(), s, &session.Event{Author: "writer"}); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if evs := get(b, svc, "s1").Events(); evs.At(evs.Len()-1).Seq != int64(n) {
					b.Fatal(evs.Len())
				}
			}
		})
	}
}
