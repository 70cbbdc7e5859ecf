// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/internal/testkit/committest"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// A database commits at most twice in an iteration of two steps that only compute. That is
// counted by the database, whatever the runner asks of its store.
func TestTransactionsOfAnIteration(t *testing.T) {
	committest.Start()
	dir := t.TempDir()
	after := func(iterations uint) (n int64) {
		name := fmt.Sprint(iterations)
		inBubble(t, name, func(t *testing.T) {
			svc, err := sqlite.Open(t.Context(), filepath.Join(dir, name), sqlite.Config{Relaxed: true})
			if err != nil {
				t.Fatal(err)
			}
			defer svc.Close()
			before := committest.Commits()
			root := cycle(t, loopagent.Config{MaxIterations: iterations}, "loop", setter(t, "a", "iteration"), setter(t, "b", "state.a + 1"))
			drain(t, ask(t.Context(), newRunner(t, durable(root, svc)), "go"))
			n = committest.Commits() - before
		})
		return n
	}
	if few, many := after(10), after(110); many-few > 2*100 || few == 0 {
		t.Errorf("100 iterations take %d transactions, want at most 200", many-few)
	}
}

// reads is a store that reads the older events of a session when they are looked at, as
// databases do, and counts the events that it reads.
type reads struct {
	session.Service
	n int64
}

// newest is the number of events that come with a session.
const newestUnfinished = 64

func (r *reads) Get(ctx context.Context, req *session.GetRequest) (*session.GetResponse, error) {
	resp, err := r.Service.Get(ctx, req)
	if err != nil {
		return nil, err
	}
	whole := resp.Session.(*session.View)
	cfg := session.ViewConfig{
		AppName: whole.AppName(), UserID: whole.UserID(), SessionID: whole.ID(), LastSeq: whole.LastSeq(),
		State: make(map[string]any), Updated: whole.LastUpdateTime(),
		Load: func(first, last int64) (evs []*session.Event, err error) {
			for seq := first; seq <= last; seq++ {
				c := *whole.Log().At(int(seq - 1))
				evs = append(evs, &c)
			}
			r.n += int64(len(evs))
			return evs, nil
		},
	}
	maps.Insert(cfg.State, whole.State().All())
	cfg.Older = int(max(0, cfg.LastSeq-newestUnfinished))
	cfg.Events, err = cfg.Load(int64(cfg.Older+1), cfg.LastSeq)
	return &session.GetResponse{Session: session.NewView(cfg)}, err
}

// A run that is resumed reads its log once, although the log does not fit into what a view
// keeps in memory.
func TestResumeReadsTheLogOnce(t *testing.T) {
	iterations := longtest.N(uint(500), 3_000)
	long := strings.Repeat("word ", 4_000)
	root := func() agent.Agent {
		return cycle(t, loopagent.Config{MaxIterations: iterations}, "loop", speaker(t, "a", long), speaker(t, "b", "two"))
	}
	store := &reads{Service: session.InMemoryService()}
	id := ""
	for ev, err := range ask(t.Context(), newRunner(t, durable(root(), store)), "go") {
		if err != nil {
			t.Fatal(err)
		}
		if id = ev.InvocationID; ev.Author == "b" && ev.Iteration == int(iterations)-1 {
			break
		}
	}
	length := get(t, store.Service).(*session.View).LastSeq()
	store.n = 0
	if _, err := resume(t, store, root(), id); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d events of %d", store.n, length)
	if store.n > length+newestUnfinished {
		t.Errorf("a resumed run reads %d events of a log of %d, want at most %d", store.n, length, length+newestUnfinished)
	}
}
