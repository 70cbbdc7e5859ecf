// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/scheduler"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
)

const quick = "name: quick\nset: {n: 1}\n"

// asks is a definition whose runs wait for a person, so they stay open.
const asks = "name: asks\ntype: human\nask: answer\nquestion: Which?\n"

// place is a folder and a store that several servers serve, with a clock that the test sets.
type place struct {
	*testing.T
	dir, db string
	clock   atomic.Int64
	log     syncBuffer
}

type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func newPlace(t *testing.T, schedules, now string) *place {
	p := &place{T: t, dir: t.TempDir(), db: filepath.Join(t.TempDir(), "runs.db")}
	p.set(now)
	p.write("quick.yaml", quick)
	p.write("asks.yaml", asks)
	p.write("schedules.yaml", schedules)
	return p
}

func (p *place) write(name, text string) {
	p.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
}

// set sets the clock.
func (p *place) set(now string) {
	p.Helper()
	t, err := time.Parse(time.RFC3339, now)
	if err != nil {
		p.Fatal(err)
	}
	p.clock.Store(t.UnixNano())
}

// node is a server of a place.
type node struct {
	*scheduler.Scheduler
	runs  *operations.Runs
	store session.Service
}

// serve opens the store and makes a server, which starts nothing by itself.
func (p *place) serve() *node {
	p.Helper()
	store, err := sqlite.Open(p.Context(), p.db, sqlite.Config{})
	if err != nil {
		p.Fatal(err)
	}
	runs, err := operations.New(operations.Config{Service: store, AppName: "app", UserID: "ana", Dir: p.dir,
		Log: slog.New(slog.NewTextHandler(&p.log, nil))})
	if err != nil {
		p.Fatal(err)
	}
	n := &node{scheduler.New(scheduler.Config{Runs: runs, Now: func() time.Time { return time.Unix(0, p.clock.Load()).UTC() }}), runs, store}
	p.Cleanup(func() {
		n.Close()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = runs.Close(ctx)
		_ = runs.Folder.Close()
		_ = store.Close()
	})
	return n
}

// look lets each server look once, all at the same time.
func (p *place) look(nodes ...*node) {
	var work sync.WaitGroup
	for _, n := range nodes {
		work.Go(func() { n.Look(p.Context()) })
	}
	work.Wait()
}

// started returns the IDs of all runs of the store.
func (p *place) started(n *node) []string {
	p.Helper()
	ids := []string{}
	all, err := n.runs.Sessions(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	for _, s := range all {
		ids = append(ids, s.ID())
	}
	slices.Sort(ids)
	return ids
}

func (p *place) want(n *node, ids ...string) {
	p.Helper()
	if diff := cmp.Diff(append([]string{}, ids...), p.started(n)); diff != "" {
		p.Errorf("runs (-want +got): %s\n%s", diff, p.log.String())
	}
}

func TestTwoServersStartEachTimeOnce(t *testing.T) {
	var file strings.Builder
	file.WriteString("schedules:\n")
	for i := range 20 {
		fmt.Fprintf(&file, "  - {name: s%d, definition: quick, every: 1s}\n", i)
	}
	p := newPlace(t, file.String(), "2026-11-30T10:00:00Z")
	a, b := p.serve(), p.serve()
	p.look(a, b)
	p.want(a)
	var want []string
	for second := 1; second <= 5; second++ {
		p.set(fmt.Sprintf("2026-11-30T10:00:%02dZ", second))
		if second == 3 { // the clock of both is turned back afterwards, and the times come again
			p.look(a, b)
			p.set("2026-11-30T10:00:01Z")
		}
		p.look(a, b)
		p.set(fmt.Sprintf("2026-11-30T10:00:%02dZ", second))
		for i := range 20 {
			want = append(want, fmt.Sprintf("s%d@20261130T10000%dZ", i, second))
		}
		for range 50 { // each run has ended, or the next time would be skipped
			open, err := a.runs.Supervisor.ListOpen(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(open) == 0 {
				break
			}
			for _, r := range open {
				_, _ = b.runs.Supervisor.Wait(t.Context(), r.ID)
			}
		}
	}
	slices.Sort(want)
	p.want(b, want...)
}

func TestAServerThatWasDownStartsTheNewestMissedTime(t *testing.T) {
	p := newPlace(t, "schedules:\n  - {name: hourly, definition: quick, cron: '0 * * * *', catch_up: 2h}\n"+
		"  - {name: strict, definition: quick, cron: '0 * * * *', catch_up: 0s}\n", "2026-11-30T10:30:00Z")
	first := p.serve()
	p.look(first)
	p.want(first) // 10:00 was before anybody knew of the schedule
	first.Close()

	p.set("2026-11-30T14:30:00Z")
	second, third := p.serve(), p.serve()
	p.look(second, third)
	p.want(second, "hourly@20261130T140000Z")
	p.look(second, third)
	p.want(second, "hourly@20261130T140000Z")

	if _, err := second.runs.Supervisor.Wait(t.Context(), "hourly@20261130T140000Z"); err != nil { // else the next time is skipped
		t.Fatal(err)
	}
	p.set("2026-11-30T14:40:00Z") // another rule begins now
	p.write("schedules.yaml", "schedules:\n  - {name: hourly, definition: quick, cron: '20 * * * *', catch_up: 2h}\n")
	p.look(second)
	p.set("2026-11-30T15:20:00Z")
	p.look(second)
	p.want(second, "hourly@20261130T140000Z", "hourly@20261130T152000Z")
}

func TestOverlap(t *testing.T) {
	p := newPlace(t, "schedules:\n  - {name: s, definition: asks, every: 1h, overlap: skip}\n"+
		"  - {name: q, definition: asks, every: 1h, overlap: queue}\n"+
		"  - {name: c, definition: asks, every: 1h, overlap: cancel_previous}\n", "2026-11-30T10:30:00Z")
	n := p.serve()
	p.look(n)
	p.set("2026-11-30T11:00:00Z")
	p.look(n)
	first := []string{"c@20261130T110000Z", "q@20261130T110000Z", "s@20261130T110000Z"}
	p.want(n, first...)
	for _, id := range first {
		if _, err := n.runs.Supervisor.Wait(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	for _, now := range []string{"2026-11-30T12:00:00Z", "2026-11-30T13:00:00Z", "2026-11-30T13:00:02Z"} {
		p.set(now)
		p.look(n)
		p.look(n)
	}
	_, progress, err := n.Read(t.Context(), "s")
	if err != nil || progress.Last == nil || progress.Last.Outcome != scheduler.Skipped || progress.Last.Run != "s@20261130T110000Z" || progress.Last.Why != "waiting" {
		t.Errorf("the last time of s: %+v, %v", progress.Last, err)
	}
	got := p.started(n)
	if slices.Contains(got, "s@20261130T120000Z") || slices.Contains(got, "q@20261130T120000Z") || !slices.Contains(got, "c@20261130T120000Z") {
		t.Errorf("runs %q", got)
	}
	if row, err := n.runs.Row(t.Context(), "c@20261130T110000Z"); err != nil || row.Status != "canceled" {
		t.Errorf("the earlier run of c is %v, %v", row, err)
	}
	if err := n.runs.Cancel(t.Context(), "q@20261130T110000Z", ""); err != nil {
		t.Fatal(err)
	}
	p.set("2026-11-30T13:30:00Z")
	p.look(p.serve()) // what waits survives a restart
	if got := p.started(n); slices.Contains(got, "q@20261130T120000Z") || !slices.Contains(got, "q@20261130T130000Z") {
		t.Errorf("of the times of q that waited, the newest has not started: %q", got)
	}
}

func TestAPausedScheduleStartsNothingOnAnyServer(t *testing.T) {
	p := newPlace(t, "schedules:\n  - {name: s, definition: quick, every: 1h}\n", "2026-11-30T10:30:00Z")
	a, b := p.serve(), p.serve()
	p.look(a, b)
	if changed, err := a.Pause(t.Context(), "s", "ana", time.Unix(0, p.clock.Load())); err != nil || !changed {
		t.Fatal(changed, err)
	}
	p.set("2026-11-30T11:00:00Z")
	p.look(a, b)
	p.set("2026-11-30T11:10:00Z")
	if changed, err := b.Continue(t.Context(), "s", time.Unix(0, p.clock.Load())); err != nil || !changed {
		t.Fatal(changed, err)
	}
	p.look(a, b, p.serve())
	p.want(a)
	p.set("2026-11-30T12:00:00Z")
	p.look(a, b)
	p.want(a, "s@20261130T120000Z")
}

func TestMistakesDoNotStopTheOtherSchedules(t *testing.T) {
	p := newPlace(t, "schedules:\n  - {name: s, definition: quick, every: 1h}\n  - {name: gone, definition: quik, every: 1h}\n", "2026-11-30T10:30:00Z")
	n := p.serve()
	p.look(n)
	p.write("schedules.yaml", "schedules:\n  - {name: s, definition: quick, evry: 1h}\n")
	p.set("2026-11-30T11:00:00Z")
	p.look(n)
	p.want(n, "s@20261130T110000Z")
	_, progress, err := n.Read(t.Context(), "gone")
	if err != nil || progress.Last == nil || progress.Last.Outcome != scheduler.Failed || !strings.Contains(progress.Last.Why, `did you mean \"quick\"?`) &&
		!strings.Contains(progress.Last.Why, `did you mean "quick"?`) {
		t.Errorf("the last time of gone: %+v, %v", progress.Last, err)
	}
	for _, want := range []string{"schedules.yaml:2:34: error: unknown field", `did you mean \"every\"?`, "a schedule can start no run"} {
		if !strings.Contains(strings.ReplaceAll(p.log.String(), `\\\"`, `\"`), want) {
			t.Errorf("the log does not say %s:\n%s", want, p.log.String())
		}
	}
	if problems := n.Problems(); len(problems) != 1 {
		t.Errorf("problems %v", problems)
	}
}

// A file that cannot be read is logged once, and its schedules go on.
func TestFileThatCannotBeReadIsLogged(t *testing.T) {
	p := newPlace(t, "schedules: [{name: often, definition: quick, every: 1m}]\n", "2026-11-30T10:00:30Z")
	n := p.serve()
	p.look(n)
	file := filepath.Join(p.dir, "schedules.yaml")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	p.set("2026-11-30T10:01:00Z")
	p.look(n)
	p.look(n)
	if n := strings.Count(p.log.String(), "the file of schedules cannot be read"); n != 1 {
		t.Errorf("it is logged %d times:\n%s", n, &p.log)
	}
	if _, err := n.runs.Brief(t.Context(), "often@20261130T100100Z", 1); err != nil {
		t.Errorf("the schedule does not go on: %v", err)
	}
}

// A file that vanishes is logged once. Its schedules stop, with a problem, and go on when it is back.
func TestFileThatVanishes(t *testing.T) {
	const text = "schedules: [{name: often, definition: quick, every: 1m, catch_up: 0s}]\n"
	p := newPlace(t, text, "2026-11-30T10:00:30Z")
	n := p.serve()
	p.look(n)
	if err := os.Remove(filepath.Join(p.dir, "schedules.yaml")); err != nil {
		t.Fatal(err)
	}
	p.set("2026-11-30T10:01:00Z")
	p.look(n)
	p.look(n)
	p.want(n)
	if n := strings.Count(p.log.String(), "it has vanished"); n != 1 {
		t.Errorf("it is logged %d times:\n%s", n, &p.log)
	}
	if list, problems := n.Schedules(); len(list) != 0 || len(problems) != 1 {
		t.Errorf("schedules %v, problems %v", list, problems)
	}
	p.write("schedules.yaml", text)
	p.set("2026-11-30T10:02:00Z")
	p.look(n)
	p.want(n, "often@20261130T100200Z")
	if problems := n.Problems(); len(problems) != 0 {
		t.Errorf("problems %v", problems)
	}
}
