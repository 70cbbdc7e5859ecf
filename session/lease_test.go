// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/store"
)

// LOOP 33: only one process drives a run. A second is told which one does.
func ExampleLeaser() {
	ctx := context.Background()
	svc := session.InMemoryService() // sqlite.Open and postgres.Open work across processes
	made, err := svc.Create(ctx, &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
	if err != nil {
		log.Fatal(err)
	}
	leaser, key := svc.(lease.Leaser), lease.KeyOf(made.Session)

	first, err := leaser.Acquire(ctx, key, "refrain pid 4711 on laptop", time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	_, err = leaser.Acquire(ctx, key, "refrain pid 4712 on laptop", time.Minute)
	held, ok := errors.AsType[*lease.HeldError](err)
	if !ok {
		log.Fatal(err)
	}
	fmt.Println("held by", held.Owner)

	// Somebody saw that pid 4711 is dead. Should it wake up, it writes no more.
	second, err := leaser.TakeOver(ctx, held, "refrain pid 4712 on laptop", time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	err = svc.AppendEvent(lease.With(ctx, first), made.Session, session.NewEvent(ctx, "run-1"))
	fmt.Println("4711 lost it:", errors.Is(err, lease.ErrLost))
	err = svc.AppendEvent(lease.With(ctx, second), made.Session, session.NewEvent(ctx, "run-1"))
	fmt.Println("4712 goes on:", err == nil)
	// Output:
	// held by refrain pid 4711 on laptop
	// 4711 lost it: true
	// 4712 goes on: true
}

func ExampleWatcher() {
	ctx := context.Background()
	svc := session.InMemoryService()
	made, err := svc.Create(ctx, &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		for _, author := range []string{"writer", "critic", "editor"} {
			ev := session.NewEvent(ctx, "run-1")
			ev.Author = author
			if err := svc.AppendEvent(ctx, made.Session, ev); err != nil {
				log.Fatal(err)
			}
		}
	}()
	for ev, err := range svc.(store.Watcher).Watch(ctx, lease.KeyOf(made.Session), 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(ev.Seq, ev.Author)
		if ev.Seq == 3 {
			break
		}
	}
	// Output:
	// 1 writer
	// 2 critic
	// 3 editor
}

// LOOP 33: a holder that dies does not hold for ever, and one that renews does.
func TestLeaseLastsAsLongAsItIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := session.InMemoryService()
		key := lease.KeyOf(create(t, svc))
		leaser := svc.(lease.Leaser)
		l, err := leaser.Acquire(t.Context(), key, "pid 1", 15*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			time.Sleep(14 * time.Second)
			if _, err := leaser.Acquire(t.Context(), key, "pid 2", time.Second); err == nil {
				t.Fatal("a lease that is renewed was taken")
			}
			if l, err = leaser.Renew(t.Context(), l, 15*time.Second); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(15*time.Second - 1)
		_, err = leaser.Acquire(t.Context(), key, "pid 2", time.Second)
		held, ok := errors.AsType[*lease.HeldError](err)
		if !ok || !held.Until.Equal(l.Until) {
			t.Errorf("a moment before its end: got %v", err)
		}
		time.Sleep(1 * time.Nanosecond)
		if _, err := leaser.Acquire(t.Context(), key, "pid 2", time.Second); err != nil {
			t.Errorf("at its end: got %v", err)
		}
	})
}

// A second writer takes the lease of the session. While a run holds it, the writer waits: an append would succeed, but
// would end the run with session.ErrConflict.
func ExampleLeaser_secondWriter() {
	ctx := context.Background()
	svc := session.InMemoryService()
	made, err := svc.Create(ctx, &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
	if err != nil {
		log.Fatal(err)
	}
	leaser, key := svc.(lease.Leaser), lease.KeyOf(made.Session)
	note := func(text string) error {
		mine, err := leaser.Acquire(ctx, key, "import job", time.Minute)
		if err != nil {
			return err
		}
		defer leaser.Release(ctx, mine)
		got, err := svc.Get(ctx, &session.GetRequest{AppName: key.AppName, UserID: key.UserID, SessionID: key.SessionID})
		if err != nil {
			return err
		}
		ev := session.NewEvent(ctx, "import-1")
		ev.Author, ev.Actions.StateDelta["note"] = "import", text
		return svc.AppendEvent(lease.With(ctx, mine), got.Session, ev)
	}
	run, err := leaser.Acquire(ctx, key, "a run", time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	held, waits := errors.AsType[*lease.HeldError](note("too early"))
	fmt.Println("waits:", waits, "for", held.Owner)
	if err := leaser.Release(ctx, run); err != nil {
		log.Fatal(err)
	}
	fmt.Println("appended:", note("hello") == nil)
	// Output:
	// waits: true for a run
	// appended: true
}
