// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
)

// driven is a run in a store, with whoever drives it.
type driven struct {
	t      *testing.T
	store  session.Service
	view   session.Session
	leaser lease.Leaser
	lease  *lease.Lease
}

func drive(t *testing.T) *driven {
	t.Helper()
	store := session.InMemoryService()
	made, err := store.Create(t.Context(), &session.CreateRequest{AppName: runstore.AppName, UserID: runstore.UserName, SessionID: "r_1"})
	if err != nil {
		t.Fatal(err)
	}
	d := &driven{t: t, store: store, view: made.Session, leaser: store.(lease.Leaser)}
	if d.lease, err = d.leaser.Acquire(t.Context(), runstore.KeyOf("r_1"), "refrain 1 on example", 15*time.Second); err != nil {
		t.Fatal(err)
	}
	d.mark(mark.KindRunStarted, mark.RunRunning, startedHere(t, t.TempDir()))
	return d
}

func (d *driven) mark(kind mark.Kind, status mark.RunStatus, data any) {
	d.t.Helper()
	ev, err := session.NewRunEvent(mark.Run{ID: "i", Name: "story", Status: status}, "refrain", kind, data)
	if err == nil {
		err = d.store.AppendEvent(context.Background(), d.view, ev)
	}
	if err != nil {
		d.t.Error(err)
	}
}

// watch follows the run from its beginning, and returns what it saw.
// standing says how the run stands that its log calls running.
func (d *driven) standing(ctx context.Context) (string, *lease.HeldError, error) {
	return runlog.PresentStatus(ctx, d.store, runstore.KeyOf("r_1"), mark.RunRunning, lease.Dead)
}

func (d *driven) watch(ctx context.Context) (kinds []mark.Kind, alive int, err error) {
	w := NewWatching(&runstore.Run{Run: &runlog.Run{ID: "r_1", Store: d.store}})
	err = w.Follow(ctx, func(ev *session.Event) error {
		kinds = append(kinds, ev.Mark.Kind)
		return nil
	}, func(*lease.HeldError) { alive++ })
	return kinds, alive, err
}

// M16: whoever looks on sees the run end, however long it says nothing.
func TestWatchEndsWithTheRun(t *testing.T) {
	for _, end := range []mark.Kind{mark.KindRunEnded, mark.KindRunPaused} {
		t.Run(string(end), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := drive(t)
				go func() {
					for range 60 {
						time.Sleep(5 * time.Second)
						if _, err := d.leaser.Renew(t.Context(), d.lease, 15*time.Second); err != nil {
							t.Error(err)
						}
					}
					d.mark(end, mark.RunCompleted, nil)
				}()
				kinds, alive, err := d.watch(t.Context())
				if err != nil || len(kinds) != 2 || kinds[1] != end || alive < 290 {
					t.Errorf("saw %v, %d signs of life, and %v", kinds, alive, err)
				}
			})
		})
	}
}

// A driver that dies leaves its lease to run out: then whoever looks on is told,
// and that the run can be resumed.
func TestWatchNoticesThatTheDriverIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := drive(t)
		began := time.Now()
		_, _, err := d.watch(t.Context())
		gone, ok := errors.AsType[*GoneError](err)
		if !ok || gone.Error() != "run r_1 is interrupted: refrain 1 on example has died. Resume with: refrain resume r_1" {
			t.Errorf("ended with %v", err)
		}
		if took := time.Since(began); took < 15*time.Second || took > 20*time.Second {
			t.Errorf("noticed after %v", took)
		}
	})
}

// One that was a process of this machine is known to be gone at once.
func TestWatchNoticesThatAProcessIsGone(t *testing.T) {
	ended := exec.Command(os.Args[0], "-test.run=^$")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	dead := strings.Replace(lease.Process(), strconv.Itoa(os.Getpid()), strconv.Itoa(ended.Process.Pid), 1)
	if !lease.Dead(dead) {
		t.Skip("processes of this machine cannot be told from others")
	}
	synctest.Test(t, func(t *testing.T) {
		d := drive(t)
		if err := d.leaser.Release(t.Context(), d.lease); err != nil {
			t.Fatal(err)
		}
		if _, err := d.leaser.Acquire(t.Context(), runstore.KeyOf("r_1"), dead, time.Hour); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, _, err := d.watch(t.Context())
		if _, ok := errors.AsType[*GoneError](err); !ok || time.Since(began) > 2*time.Second {
			t.Errorf("ended after %v with %v", time.Since(began), err)
		}
		if status, _, err := d.standing(t.Context()); err != nil || status != runlog.StatusInterrupted {
			t.Errorf("it stands as %s, %v", status, err)
		}
	})
}

// Whoever takes a run over in time is followed, too.
func TestWatchGoesOnWithAnotherDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := drive(t)
		go func() {
			time.Sleep(15*time.Second + time.Millisecond)
			if _, err := d.leaser.Acquire(t.Context(), runstore.KeyOf("r_1"), "refrain 2 on example", time.Minute); err != nil {
				t.Error(err)
			}
			time.Sleep(20 * time.Second)
			d.mark(mark.KindRunResumed, mark.RunRunning, nil)
			d.mark(mark.KindRunEnded, mark.RunCompleted, nil)
		}()
		kinds, _, err := d.watch(t.Context())
		if err != nil || len(kinds) != 3 {
			t.Errorf("saw %v and %v", kinds, err)
		}
	})
}

func TestWatchCanBeLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := drive(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(term.ErrInterrupted) })
		if _, _, err := d.watch(ctx); !errors.Is(err, term.ErrInterrupted) {
			t.Errorf("left with %v", err)
		}
	})
}

// The list tells a run that is driven from one that was cut off.
func TestStandingIsByTheLease(t *testing.T) {
	d := drive(t)
	status, held, err := d.standing(t.Context())
	if err != nil || status != "running" || held == nil || held.Owner != "refrain 1 on example" {
		t.Errorf("driven: %s, %v, %v", status, held, err)
	}
	if err := d.leaser.Release(t.Context(), d.lease); err != nil {
		t.Fatal(err)
	}
	if status, held, err = d.standing(t.Context()); err != nil || status != runlog.StatusInterrupted || held != nil {
		t.Errorf("not driven: %s, %v, %v", status, held, err)
	}
	d.mark(mark.KindRunEnded, mark.RunCompleted, nil)
	if status, _, err = d.standing(t.Context()); err != nil || status != "completed" {
		t.Errorf("ended since it was listed: %s, %v", status, err)
	}
}

// startedHere is what a run was started with in a folder.
func startedHere(t *testing.T, dir string) mark.RunStarted {
	t.Helper()
	text, err := json.Marshal(&program.Program{File: "story.yaml", Path: "story.yaml",
		Files: map[string]string{"story.yaml": "name: story\ntext: hello\n"}, Dir: dir, Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	return mark.RunStarted{Name: "story", Program: text}
}

// A past resume is shown again with the events up to it, and each event counts once, though the whole log is there already.
func TestPastEventsAreAddedOnce(t *testing.T) {
	marked := func(seq int64, at session.Address, kind mark.Kind, data any) *session.Event {
		m, err := mark.New(kind, data)
		if err != nil {
			t.Fatal(err)
		}
		return &session.Event{Seq: seq, Address: at, Mark: m, InvocationID: "i"}
	}
	key := runstore.KeyOf("r_1")
	store := session.InMemoryService()
	made, err := store.Create(t.Context(), &session.CreateRequest{AppName: key.AppName, UserID: key.UserID, SessionID: key.SessionID})
	if err != nil {
		t.Fatal(err)
	}
	appended := func(ev *session.Event) *session.Event {
		t.Helper()
		if s := ev.Mark.Supersedes(); s != nil {
			ev.Actions.StateDelta = map[string]any{mark.KeySuperseded: s.String()}
		}
		if err := store.AppendEvent(t.Context(), made.Session, ev); err != nil {
			t.Fatal(err)
		}
		return ev
	}
	for _, ev := range []*session.Event{
		marked(1, "a", mark.KindStepStarted, nil), marked(2, "a/b", mark.KindStepStarted, nil),
		marked(3, "", mark.KindRunResumed, mark.RunResumed{Superseded: mark.SpansOf(2)}),
		marked(4, "a/b", mark.KindStepStarted, nil),
	} {
		appended(ev)
	}
	run, err := runlog.Read(t.Context(), store, key)
	if err != nil {
		t.Fatal(err)
	}
	w := NewWatching(&runstore.Run{Run: run})
	v := &viewer{w: w}
	add := func(ev *session.Event) {
		t.Helper()
		if _, err := v.add(ev); err != nil {
			t.Fatal(err)
		}
	}
	for ev := range run.Current() {
		add(ev)
	}
	v.follows = true
	comes := func(ev *session.Event) {
		t.Helper()
		if err := w.Add(t.Context(), appended(ev)); err != nil {
			t.Fatal(err)
		}
		add(ev)
	}
	comes(marked(5, "a/b", mark.KindStepFinished, mark.StepFinished{}))
	if at, _ := v.fold.Running(); at != "a" {
		t.Errorf("%q runs, and %q does not any more", at, "a/b")
	}
	comes(marked(6, "a/c", mark.KindStepStarted, nil))
	comes(marked(7, "", mark.KindRunResumed, mark.RunResumed{Superseded: mark.SpansOf(6)}))
	if at, _ := v.fold.Running(); at != "a" {
		t.Errorf("%q runs, and its start was superseded", at)
	}
}
