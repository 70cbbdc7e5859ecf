// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// What a list of runs and a row of it allocate does not grow with the state of the runs.
func TestRowsAreReadWithoutTheState(t *testing.T) {
	bytes := func(size int) int64 {
		store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), fmt.Sprint(size)), sqlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		made, err := store.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "r"})
		if err != nil {
			t.Fatal(err)
		}
		ev, err := session.NewRunEvent(mark.Run{ID: "e", Name: "large", Status: mark.RunCompleted}, "user", mark.KindRunStarted, mark.RunStarted{})
		if err != nil {
			t.Fatal(err)
		}
		ev.Actions.StateDelta["text"] = strings.Repeat("x", size)
		if err := store.AppendEvent(t.Context(), made.Session, ev); err != nil {
			t.Fatal(err)
		}
		return testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				all, err := runlog.List(b.Context(), store, "app", "ana")
				if err != nil || len(all) != 1 || session.RunOf(all[0]) == nil {
					b.Fatal(all, err)
				}
				row, err := runlog.RowOf(b.Context(), store, all[0], nil)
				if err != nil || row.Name != "large" {
					b.Fatal(row, err)
				}
			}
		}).AllocedBytesPerOp()
	}
	small, large := bytes(10), bytes(8<<20)
	if large > small+(64<<10) {
		t.Errorf("a row allocates %d bytes with a state of 8 MiB, and %d without", large, small)
	}
}
