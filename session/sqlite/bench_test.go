// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// said is an event as agents have them, of about 400 bytes.
func said() *session.Event {
	ev := &session.Event{InvocationID: "e-1", Author: "critic", Address: "story/refine[3]/critic", Iteration: 3, Attempt: 1}
	ev.Content = genai.NewContentFromText("The critic says: shorten the last line, and let the cat come home before it rains.", genai.RoleModel)
	ev.Actions.StateDelta = map[string]any{"critique": "shorten the last line"}
	return ev
}

// floor is the least that keeping an event can cost: one line of JSON at the end
// of a file, and the way to the disk.
type floor struct{ file *os.File }

func newFloor(b *testing.B) *floor {
	f, err := os.Create(filepath.Join(b.TempDir(), "events.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	return &floor{f}
}

func (f *floor) append(b *testing.B) {
	data, err := json.Marshal(said())
	if err == nil {
		_, err = f.file.Write(append(data, '\n'))
	}
	if err == nil {
		err = f.file.Sync()
	}
	if err != nil {
		b.Fatal(err)
	}
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// BenchmarkDurableAppend takes turns, so that both meet the same disk: what one
// append costs, and how many times as much as one to a file. With writers it is
// the throughput of all.
func BenchmarkDurableAppend(b *testing.B) {
	for _, writers := range []int{1, 16} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			const turn = 64 // appends in one turn
			svc := open(b, filepath.Join(b.TempDir(), "refrain.db"), sqlite.Config{})
			file := newFloor(b)
			held := make([]session.Session, writers)
			for i := range held {
				held[i] = create(b, svc, "s"+strconv.Itoa(i))
			}
			var ours, floors []time.Duration
			for b.Loop() {
				start := time.Now()
				for range turn {
					file.append(b)
				}
				floors = append(floors, time.Since(start)/turn)
				start = time.Now()
				var wg sync.WaitGroup
				for _, s := range held {
					wg.Go(func() {
						for range turn / writers {
							if err := svc.AppendEvent(b.Context(), s, said()); err != nil {
								b.Error(err)
							}
						}
					})
				}
				wg.Wait()
				ours = append(ours, time.Since(start)/turn)
			}
			b.ReportMetric(float64(median(ours))/1e3, "us/append")
			b.ReportMetric(float64(median(floors))/1e3, "us/file-append")
			b.ReportMetric(float64(median(ours))/float64(median(floors)), "x-file")
		})
	}
}

// prepared is a database with sessions of several lengths.
func prepared(b *testing.B, lengths ...int) *sqlite.Service {
	svc := open(b, filepath.Join(b.TempDir(), "refrain.db"), sqlite.Config{Relaxed: true})
	var wg sync.WaitGroup
	for _, n := range lengths {
		s := create(b, svc, "s"+strconv.Itoa(n))
		wg.Go(func() {
			for range n {
				if err := svc.AppendEvent(b.Context(), s, said()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return svc
}

// BenchmarkAppendToLongSession takes turns too: an append to a session of
// 100 000 events must cost what one to a session of 100 does.
func BenchmarkAppendToLongSession(b *testing.B) {
	const turn, short, long = 50, 100, 100_000
	svc := prepared(b, short, long)
	a, z := get(b, svc, "s"+strconv.Itoa(short)), get(b, svc, "s"+strconv.Itoa(long))
	took := make(map[session.Session][]time.Duration)
	for b.Loop() {
		for _, s := range []session.Session{a, z} {
			start := time.Now()
			for range turn {
				if err := svc.AppendEvent(b.Context(), s, said()); err != nil {
					b.Fatal(err)
				}
			}
			took[s] = append(took[s], time.Since(start)/turn)
		}
	}
	b.ReportMetric(float64(median(took[a]))/1e3, "us/append-short")
	b.ReportMetric(float64(median(took[z]))/1e3, "us/append-long")
	b.ReportMetric(float64(median(took[z]))/float64(median(took[a])), "x-short")
}

// BenchmarkOpenSession opens a session, and reads its state and its last event.
func BenchmarkOpenSession(b *testing.B) {
	svc := prepared(b, 100, 100_000)
	for _, n := range []int{100, 100_000} {
		b.Run(fmt.Sprintf("events=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := get(b, svc, "s"+strconv.Itoa(n))
				if evs := s.Events(); evs.Len() < n || evs.At(evs.Len()-1).Seq < int64(n) {
					b.Fatal(evs.Len())
				}
			}
		})
	}
	b.Run("recent=20", func(b *testing.B) {
		for b.Loop() {
			if _, err := svc.Get(b.Context(), &session.GetRequest{AppName: app, UserID: ana, SessionID: "s100000", NumRecentEvents: 20}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("all=10000", func(b *testing.B) {
		for b.Loop() {
			resp, err := svc.Get(b.Context(), &session.GetRequest{AppName: app, UserID: ana, SessionID: "s100000", NumRecentEvents: 10_000})
			if err != nil {
				b.Fatal(err)
			}
			for range resp.Session.Events().All() {
			}
		}
	})
}
