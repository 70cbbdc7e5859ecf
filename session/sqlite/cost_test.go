// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"encoding/json"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/testkit/committest"
	"github.com/refrain-dev/refrain/internal/testkit/heaptest"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// An append is one transaction, with its state, and so are several events that are
// appended together.
func TestAppendIsOneTransaction(t *testing.T) {
	committest.Start()
	svc := open(t, filepath.Join(t.TempDir(), "refrain.db"), sqlite.Config{})
	s := create(t, svc, "s1")
	before := committest.Commits()
	for range 50 {
		if err := svc.AppendEvent(t.Context(), s, said()); err != nil {
			t.Fatal(err)
		}
	}
	if n := committest.Commits() - before; n != 50 {
		t.Errorf("50 appends take %d transactions, want 50", n)
	}
	var evs []*session.Event
	for range 50 {
		evs = append(evs, said())
	}
	before = committest.Commits()
	if err := svc.AppendEvents(t.Context(), s, evs); err != nil {
		t.Fatal(err)
	}
	if n := committest.Commits() - before; n != 1 {
		t.Errorf("an append of 50 events takes %d transactions, want 1", n)
	}
}

// spent is what an event allocates.
type spent struct{ allocs, bytes float64 }

// perEvent measures what do allocates for n events: the least of three, since the runtime
// may be at work too.
func perEvent(n int, do func()) (least spent) {
	for i := range 4 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		s := spent{float64(after.Mallocs-before.Mallocs) / float64(n), float64(after.TotalAlloc-before.TotalAlloc) / float64(n)}
		switch i {
		case 0: // warms up
		case 1:
			least = s
		default:
			least = spent{min(least.allocs, s.allocs), min(least.bytes, s.bytes)}
		}
	}
	return least
}

// To read a session takes little more than encoding/json takes for its events; and its newest
// events cost the same, whatever is before them.
func TestLoadCost(t *testing.T) {
	const short, recent, often = 100, 20, 50
	long := longtest.N(2_000, 10_000)
	svc := open(t, filepath.Join(t.TempDir(), "refrain.db"), sqlite.Config{Relaxed: true})
	for _, n := range []int{short, long} {
		var evs []*session.Event
		for range n {
			evs = append(evs, said())
		}
		if err := svc.AppendEvents(t.Context(), create(t, svc, "s"+strconv.Itoa(n)), evs); err != nil {
			t.Fatal(err)
		}
	}
	look := func(n, newest int) func() {
		return func() {
			req := &session.GetRequest{AppName: app, UserID: ana, SessionID: "s" + strconv.Itoa(n), NumRecentEvents: newest}
			resp, err := svc.Get(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			for ev := range resp.Session.Events().All() {
				if ev.Author != "critic" || len(ev.Text()) < 40 {
					t.Fatalf("event %+v", ev)
				}
			}
		}
	}
	data, err := json.Marshal(said())
	if err != nil {
		t.Fatal(err)
	}
	type plain session.Event // without our UnmarshalJSON
	byHand := perEvent(long, func() {
		for range long {
			if err := json.Unmarshal(data, new(plain)); err != nil {
				t.Fatal(err)
			}
		}
	})
	all := perEvent(long, look(long, 0))
	t.Logf("an event of %d: %.2f; by encoding/json %.2f", long, all, byHand)
	if all.allocs > 2*byHand.allocs || all.bytes > 2*byHand.bytes {
		t.Errorf("an event of %d takes %.2f to read, by encoding/json %.2f", long, all, byHand)
	}
	newest := func(n int) spent {
		return perEvent(often*recent, func() {
			for range often {
				look(n, recent)()
			}
		})
	}
	few, many := newest(short), newest(long)
	t.Logf("one of the newest %d: %.2f of %d, %.2f of %d", recent, few, short, many, long)
	if many.allocs > 1.25*few.allocs || many.bytes > 1.25*few.bytes {
		t.Errorf("one of the newest %d events of %d takes %.2f to read, of %d %.2f", recent, long, many, short, few)
	}
}

// The view of a session does not hold its log, nor does that of one that was just made.
func TestViewLetsGoOfWhatIsStored(t *testing.T) {
	const n, size = 200, 20_000
	svc := open(t, filepath.Join(t.TempDir(), "refrain.db"), sqlite.Config{})
	for range 5000 { // views share their memory
		t.Cleanup(new(session.View).Pending().Share())
	}
	sessions := 0
	made := func() any {
		sessions++
		v := create(t, svc, "s"+strconv.Itoa(sessions)).(*session.View)
		for range n {
			ev := said()
			ev.Content = genai.NewContentFromText(strings.Repeat("x", size), genai.RoleModel)
			if err := svc.AppendEvent(t.Context(), v, ev); err != nil {
				t.Fatal(err)
			}
		}
		return v
	}
	if held := heaptest.Held(made); held > n*size/4 {
		t.Errorf("the view of a new session with %d bytes of texts holds %d", n*size, held)
	}
	evs := made().(*session.View).Events()
	if got := evs.Len(); got != n || evs.At(0).Text() != strings.Repeat("x", size) {
		t.Errorf("the view shows %d events, want all %d", got, n)
	}
}
