// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/internal/history/progress/verify"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/store"
)

// wired is a store in which each append is a commit. A test says what becomes of each.
type wired struct {
	session.Service
	commit func(n int, evs []*session.Event, do func() error) error // nil: do it

	mu sync.Mutex
	n  int
}

func newWired() *wired { return &wired{Service: session.InMemoryService()} }

func (w *wired) Commits() bool { return true }

func (w *wired) AppendEvent(ctx context.Context, to session.Session, ev *session.Event) error {
	if ev.Partial {
		return nil
	}
	return w.do([]*session.Event{ev}, func() error { return w.Service.AppendEvent(ctx, to, ev) })
}

func (w *wired) AppendEvents(ctx context.Context, to session.Session, evs []*session.Event) error {
	return w.do(evs, func() error { return w.Service.(store.BulkAppender).AppendEvents(ctx, to, evs) })
}

func (w *wired) do(evs []*session.Event, do func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n++; w.commit == nil {
		return do()
	}
	return w.commit(w.n, evs, do)
}

// logOf is all that a store has of the run.
func logOf(t testing.TB, svc session.Service) []*session.Event {
	t.Helper()
	return slices.Collect(get(t, svc).(*session.View).Log().All())
}

// checkShown demands that the log has the events that were shown, as they were.
func checkShown(t testing.TB, svc session.Service, shown []*session.Event) {
	t.Helper()
	log := logOf(t, svc)
	for _, ev := range shown {
		if ev.Seq < 1 || int(ev.Seq) > len(log) {
			t.Fatalf("event %d was shown, and the log has %d", ev.Seq, len(log))
		}
		a, errA := ev.WithoutTemp().AppendCanonical(nil)
		b, errB := log[ev.Seq-1].AppendCanonical(nil)
		if errA != nil || errB != nil || string(a) != string(b) {
			t.Fatalf("event %d was shown as\n%s\nand the log has\n%s (%v, %v)", ev.Seq, a, b, errA, errB)
		}
	}
	for _, seal := range verify.Of(slices.Values(log)).Loops() {
		if seal.Problem != "" {
			t.Errorf("the stop record of %s, event %d: %s", seal.Loop, seal.Seq, seal.Problem)
		}
	}
}

var errDead = fmt.Errorf("the process is dead: %w", session.ErrConflict) // it writes nothing more

// G8, LOOP 30: a process dies at a commit, before it or behind it. What it has done by then stays
// done, and what it has shown is in the log. The next process comes to what the run comes to
// otherwise, and pays nothing twice.
func TestDeathAtACommit(t *testing.T) {
	points := 0
	for seed := range seeds(t) {
		whole := newWired()
		p := startWired(t, seed, whole)
		want := p.outcome(p.through(p.Run(t.Context(), "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{})))
		if len(p.log()) > 90 {
			continue
		}
		dice := rand.New(rand.NewPCG(seed, 8))
		var deaths []death
		for range 2 {
			deaths = append(deaths, death{commit: 2 + dice.IntN(whole.n), lost: dice.IntN(2) == 0}) // the first is the message
		}
		for n := range min(4, len(p.paid)) {
			deaths = append(deaths, death{payment: 1 + n, lost: true})
		}
		for _, d := range deaths {
			points++
			if !t.Run(fmt.Sprintf("seed %d, %+v", seed, d), func(t *testing.T) { d.die(t, seed, want) }) {
				t.Fatalf("the log of seed %d:\n%s", seed, strings.Join(brief(p.log()), "\n"))
			}
		}
	}
	t.Logf("%d deaths", points)
}

// death is the moment at which a process dies: at its nth commit, or at the first commit after its nth
// payment.
type death struct {
	commit, payment int
	lost            bool // what was to be committed
}

func (d death) die(t *testing.T, seed uint64, want outcome) {
	w := newWired()
	var first *wiredProcess
	dead := false
	w.commit = func(n int, _ []*session.Event, do func() error) error {
		first.ledger.mu.Lock()
		dies := !dead && (n == d.commit || d.payment > 0 && len(first.paid) >= d.payment)
		first.ledger.mu.Unlock()
		switch {
		case dies:
			if dead = true; !d.lost {
				_ = do()
			}
			return errDead
		case dead:
			return errDead
		}
		return do()
	}
	first = startWired(t, seed, w)
	err := first.through(first.Run(t.Context(), "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}))
	checkShown(t, w, first.shown)
	log := logOf(t, w)
	if !dead {
		return
	}
	if !errors.Is(err, errDead) {
		t.Errorf("the dead process ends with %v", err)
	}
	w.commit = nil
	next := startWired(t, seed, w)
	first.ledger.mu.Lock()
	next.paid, next.calls = maps.Clone(first.paid), maps.Clone(first.calls)
	first.ledger.mu.Unlock()
	err = next.through(next.Resume(t.Context(), "ana", "s1", log[0].InvocationID, agent.RunConfig{}))
	if strings.Contains(fmt.Sprint(err), "the run has ended") { // it died behind its end
		return
	}
	if diff := cmp.Diff(want, next.outcome(err), times, loggedEvents); diff != "" {
		t.Errorf("(-whole +resumed):\n%s\nthe log of the dead:\n%s\nand then:\n%s", diff, strings.Join(brief(log), "\n"), strings.Join(brief(next.shown), "\n"))
	}
	checkShown(t, w, next.shown)
}

// wiredProcess is a process whose store is wired.
type wiredProcess struct {
	*process
	shown []*session.Event
}

func startWired(t testing.TB, seed uint64, w *wired) *wiredProcess {
	t.Helper()
	root, of := grow(t, seed)
	return &wiredProcess{process: &process{TB: t, world: of, store: w, Runner: newRunner(t, durable(root, w))}}
}

// through takes what a run yields to its end. What is shown is in the store.
func (p *wiredProcess) through(seq func(func(*session.Event, error) bool)) (err error) {
	for ev, e := range seq {
		if err = e; ev != nil && !ev.Partial {
			p.shown = append(p.shown, ev)
		}
	}
	return err
}
