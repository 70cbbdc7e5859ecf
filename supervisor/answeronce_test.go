// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/sqlite"
	"github.com/refrain-dev/refrain/session/store"
)

// mortalStore is a store that accepts a number of appends and then fails, as if the process was killed between two appends.
type mortalStore struct {
	leasing
	left atomic.Int64
}

type leasing interface {
	session.Service
	lease.Leaser
	store.Watcher
}

var errKilled = errors.New("killed")

func (d *mortalStore) AppendEvent(ctx context.Context, s session.Session, ev *session.Event) error {
	if d.left.Add(-1) < 0 {
		return errKilled
	}
	return d.leasing.AppendEvent(ctx, s, ev)
}

// mortalBulkStore appends several events at once.
type mortalBulkStore struct{ *mortalStore }

func (d mortalBulkStore) AppendEvents(ctx context.Context, s session.Session, evs []*session.Event) error {
	if d.left.Add(-1) < 0 {
		return errKilled
	}
	return d.leasing.(store.BulkAppender).AppendEvents(ctx, s, evs)
}

// A process that is killed after the first write of an answer leaves a run that does not wait for anybody, and that can
// be resumed: the status follows from the answer.
func TestAnswerIsKilledBetweenItsWrites(t *testing.T) {
	for name, open := range map[string]func(*testing.T) session.Service{
		"memory": func(*testing.T) session.Service { return session.InMemoryService() },
		"sqlite": func(t *testing.T) session.Service {
			svc, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "runs.db"), sqlite.Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { svc.Close() })
			return svc
		},
	} {
		for _, bulk := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				real := open(t)
				d := &mortalStore{leasing: real.(leasing)}
				d.left.Store(1 << 20)
				var svc session.Service = d
				if bulk {
					svc = mortalBulkStore{d}
				}
				tree := asks(t, "left", 0)
				sup := process(t, svc, tree)
				run := start(t, sup)
				wait(t, run)
				asked, err := sup.Questions(t.Context(), run.ID())
				if err != nil || len(asked) != 1 {
					t.Fatalf("the questions are %v, %v", asked, err)
				}
				d.left.Store(1)
				_, err = sup.Answer(t.Context(), run.ID(), mark.Answer{ID: asked[0].ID, Value: []byte(`"yes"`)})
				if err != nil && !errors.Is(err, errKilled) {
					t.Fatal(err)
				}

				got := session.RunOf(view(t, real, run.ID()))
				if got.Status != mark.RunIsPaused || !got.HandOver {
					t.Errorf("the run is %s, and goes on: %v", got.Status, got.HandOver)
				}
				wait(t, resume(t, process(t, real, tree, named("two")), run.ID()))
				if got := final(t, real, run.ID())["left"]; got != `"yes"` {
					t.Errorf("the answer is %v", got)
				}
			})
		}
	}
}
