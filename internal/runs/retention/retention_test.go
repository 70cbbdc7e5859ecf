// SPDX-License-Identifier: Apache-2.0

package retention_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/retention"
	"github.com/refrain-dev/refrain/internal/runs/schedule"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/sqlite"
	"github.com/refrain-dev/refrain/session/store"
	"github.com/refrain-dev/refrain/supervisor"
)

// add stores a session with the last record of a run.
func add(t *testing.T, service session.Service, id string, status mark.RunStatus, parent string) {
	t.Helper()
	run := mark.Run{ID: "i" + id, Name: "story", Status: status, Started: time.Now()}
	if parent != "" {
		run.Parent = &mark.RunParent{SessionID: parent, Seq: 1}
	}
	ev, err := session.NewRunEvent(run, "refrain", mark.KindRunEnded, mark.RunEnded{Status: status})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Start(t.Context(), service, &session.StartRequest{
		CreateRequest: session.CreateRequest{AppName: "app", UserID: "ana", SessionID: id}, Events: []*session.Event{ev}}); err != nil {
		t.Fatal(err)
	}
}

// cleaner returns a cleaner for which all runs ended some days ago.
func cleaner(service session.Service, rules retention.Rules, days int) *retention.Cleaner {
	return &retention.Cleaner{Remover: retention.Remover{Service: service, AppName: "app", UserID: "ana"},
		Rules: func() (retention.Rules, error) { return rules, nil },
		Now:   func() time.Time { return time.Now().Add(time.Duration(days) * day) }}
}

const day = 24 * time.Hour

func ids(t *testing.T, c *retention.Cleaner) []string {
	t.Helper()
	list, err := c.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := []string{}
	for _, x := range list {
		all = append(all, x.ID)
	}
	return all
}

// A rule removes runs that have ended, each fork before its base, and nothing that is open, has a fork that stays, or is part of an eval.
func TestWhichRunsGo(t *testing.T) {
	service := session.InMemoryService()
	for _, r := range []struct {
		id     string
		status mark.RunStatus
		parent string
	}{
		{"done", mark.RunCompleted, ""}, {"failed", mark.RunFailed, ""}, {"canceled", mark.RunCanceled, ""},
		{"running", mark.RunRunning, ""}, {"paused", mark.RunIsPaused, ""}, {"waiting", mark.RunWaiting, ""},
		{"base", mark.RunCompleted, ""}, {"middle", mark.RunCompleted, "base"}, {"tip", mark.RunIsPaused, "middle"},
		{"oldbase", mark.RunCompleted, ""}, {"oldfork", mark.RunCompleted, "oldbase"},
		{"ev_1a2b.case1.1", mark.RunCompleted, ""}, {"evbase", mark.RunCompleted, ""}, {"ev_1a2b.case2.1", mark.RunCompleted, "evbase"},
		{"circle1", mark.RunCompleted, "circle2"}, {"circle2", mark.RunCompleted, "circle1"}, // forged
		{"nightly@20261130T020000Z", mark.RunCompleted, ""}, {"hourly@20261130T020000Z", mark.RunFailed, ""},
	} {
		add(t, service, r.id, r.status, r.parent)
	}
	if _, err := service.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "nothing"}); err != nil {
		t.Fatal(err)
	}
	schedules, problems := schedule.Parse("schedules.yaml", []byte("schedules:\n"+
		"  - {name: nightly, definition: a, every: 1h, keep: 1h, catch_up: 7d}\n  - {name: hourly, definition: a, every: 1h, keep_failed: 90d}\n"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	all := []string{"canceled", "done", "failed", "hourly@20261130T020000Z", "nightly@20261130T020000Z", "oldbase", "oldfork"}
	without := func(gone ...string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(id string) bool { return slices.Contains(gone, id) })
	}
	for _, tt := range []struct {
		name string
		rule retention.Rules
		days int
		want []string
	}{
		{"no rule", retention.Rules{}, 1000, []string{}},
		{"too early", retention.Rules{Rule: retention.Rule{Keep: 30 * day}}, 29, []string{}},
		{"one time for all", retention.Rules{Rule: retention.Rule{Keep: 30 * day}}, 31, all},
		{"failed runs stay longer", retention.Rules{Rule: retention.Rule{Keep: 30 * day, KeepFailed: 90 * day}}, 31, without("failed", "hourly@20261130T020000Z")},
		{"only failed runs go", retention.Rules{Rule: retention.Rule{KeepFailed: day}}, 2, []string{"failed", "hourly@20261130T020000Z"}},
		{"schedules have their own", retention.Rules{Rule: retention.Rule{Keep: 30 * day}, Schedules: schedules}, 31, without("hourly@20261130T020000Z")},
		{"a schedule may start it late", retention.Rules{Schedules: schedules}, 6, []string{}},
		{"and then no more", retention.Rules{Schedules: schedules}, 8, []string{"nightly@20261130T020000Z"}},
	} {
		got := ids(t, cleaner(service, tt.rule, tt.days))
		if i, k := slices.Index(got, "oldfork"), slices.Index(got, "oldbase"); i > k {
			t.Errorf("%s: the base goes before the fork: %v", tt.name, got)
		}
		slices.Sort(got)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// A run that a process drives, and the base of a fork that cannot be removed, stay; the next pass removes them.
func TestWhatIsHeldStays(t *testing.T) {
	service := session.InMemoryService()
	add(t, service, "base", mark.RunCompleted, "")
	add(t, service, "fork", mark.RunCompleted, "base")
	add(t, service, "held", mark.RunCompleted, "")
	leaser := service.(lease.Leaser)
	l, err := leaser.Acquire(t.Context(), lease.Key{AppName: "app", UserID: "ana", SessionID: "held"}, "somebody", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	c := cleaner(service, retention.Rules{Rule: retention.Rule{Keep: day}}, 2)
	c.Beside.Remove = func(id string) error {
		if id == "fork" {
			return errors.New("the disk is full")
		}
		return nil
	}
	if err := c.Clean(t.Context()); err == nil || err.Error() != "remove run fork: the disk is full" {
		t.Errorf("got %v", err)
	}
	if got := ids(t, c); len(got) != 3 {
		t.Errorf("left are %v", got)
	}
	c.Beside.Remove = nil
	if err := errors.Join(leaser.Release(t.Context(), l), c.Clean(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, c); len(got) != 0 {
		t.Errorf("left are %v", got)
	}
}

// While two servers remove a run, another forks it: either the fork and the whole base are there then, or neither.
func TestForkWhileItsBaseIsRemoved(t *testing.T) {
	dir, db, files := t.TempDir(), filepath.Join(t.TempDir(), "runs.db"), artifact.InMemoryService()
	if err := os.WriteFile(filepath.Join(dir, "quick.yaml"), []byte("name: quick\nmax_iterations: 1\nsub_agents:\n  - {name: one, set: {n: 1}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() *operations.Runs {
		service, err := sqlite.Open(t.Context(), db, sqlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		runs, err := operations.New(operations.Config{Service: service, AppName: "app", UserID: "ana", Dir: dir, ArtifactService: files,
			Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = errors.Join(runs.Close(context.Background()), runs.Folder.Close(), service.Close()) })
		return runs
	}
	a, b, c := open(), open(), open()
	there := func(id string) bool {
		_, err := c.Brief(t.Context(), id, 1)
		return err == nil
	}
	forked, removed := 0, 0
	moment := time.Duration(0) // how much later than the removal the fork begins; the one that comes first is later the next time
	for i := range longtest.N(40, 400) {
		id := fmt.Sprintf("r_%d", i)
		req := &operations.StartRequest{StartArgs: operations.StartArgs{Definition: "quick"}, ID: id, New: true}
		if _, err := c.Start(t.Context(), req, "", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Supervisor.Wait(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		var work sync.WaitGroup
		for _, runs := range []*operations.Runs{a, b} {
			cleans := cleaner(runs.Service, retention.Rules{Rule: retention.Rule{Keep: day}}, 2)
			cleans.Remover = runs.Remover()
			work.Go(func() {
				time.Sleep(-moment)
				if err := cleans.Clean(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(moment)
		fork, err := c.Supervisor.Fork(t.Context(), id, supervisor.Checkpoint{Seq: 1})
		work.Wait()
		switch {
		case err == nil && !(there(fork) && there(id)):
			t.Fatalf("run %s was forked: the base is there: %v, the fork: %v", id, there(id), there(fork))
		case err == nil:
			forked++
			moment += time.Duration(i%4+1) * time.Millisecond
		case !errors.Is(err, supervisor.ErrNotFound):
			t.Fatal(err)
		case there(id):
			t.Fatalf("run %s is there, and was not forked: %v", id, err)
		default:
			removed++
			moment -= time.Duration(i%3+1) * time.Millisecond
		}
	}
	infos, err := c.Supervisor.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(infos) != 2*forked {
		t.Errorf("%d runs are there after %d forks", len(infos), forked)
	}
	t.Logf("%d were forked and %d removed", forked, removed)
	if forked == 0 || removed == 0 {
		t.Errorf("%d were forked and %d removed: the moments do not meet", forked, removed)
	}
}

// Rules that cannot be read for a long time are reported once, and again after a pass with rules.
func TestUnreadableRulesAreReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		passes, gone := 0, errors.New("the file has vanished")
		c := cleaner(session.InMemoryService(), retention.Rules{}, 0)
		c.Rules = func() (retention.Rules, error) {
			if passes++; passes == 10 {
				stop()
			}
			if passes == 5 {
				return retention.Rules{}, nil
			}
			return retention.Rules{}, gone
		}
		var reports []int
		c.Run(ctx, func(error) { reports = append(reports, passes) })
		if diff := cmp.Diff([]int{1, 6}, reports); diff != "" {
			t.Errorf("the passes with a report (-want +got): %s", diff)
		}
	})
}
