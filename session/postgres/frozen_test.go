// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/postgres"
)

// freezer is a network between a store and the server over which nothing more comes when an event was
// inserted, in the middle of the transaction.
type freezer struct {
	frozen, thawed chan struct{}
	once           sync.Once
}

// between returns the DSN of the server behind it.
func (f *freezer) between(t *testing.T) string {
	t.Helper()
	return between(t, f.pass)
}

func (f *freezer) pass(client net.Conn, wg *sync.WaitGroup) {
	defer client.Close()
	server, err := net.Dial("unix", filepath.Join(cluster.dir, ".s.PGSQL.5432"))
	if err != nil {
		return
	}
	defer server.Close()
	wg.Go(func() {
		defer client.Close()
		_, _ = io.Copy(client, server)
	})
	buf := make([]byte, 1<<16)
	for holds := false; ; {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if holds {
			f.once.Do(func() { close(f.frozen) })
			<-f.thawed
			holds = false
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
		if bytes.Contains(buf[:n], []byte("INSERT INTO state")) {
			select {
			case <-f.frozen:
			default:
				holds = true
			}
		}
	}
}

// G8: a process that is frozen in the middle of a transaction, or whose machine is gone, does not keep the
// session to itself: the server ends the transaction. What the process was about to write is refused
// when somebody else has the lease.
func TestFrozenProcessDoesNotHoldASession(t *testing.T) {
	if cluster.missing != "" {
		t.Skip(cluster.missing)
	}
	t.Parallel()
	const schema = "frozen"
	other := open(t, postgres.Config{Schema: schema})
	s := create(t, other, "s1")
	f := &freezer{frozen: make(chan struct{}), thawed: make(chan struct{})}
	svc, err := postgres.Open(t.Context(), f.between(t), postgres.Config{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	defer svc.Close()
	held, err := svc.Acquire(t.Context(), lease.KeyOf(s), "frozen", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	appended := make(chan error)
	go func() { appended <- svc.AppendEvent(lease.With(t.Context(), held), get(t, other, "s1"), numbered(1)) }()
	<-f.frozen
	holder, err := other.Holder(t.Context(), lease.KeyOf(s))
	if err != nil || holder == nil {
		t.Fatalf("who holds it: %v, %v", holder, err)
	}
	if _, err := other.TakeOver(t.Context(), holder, "other", time.Hour); err != nil {
		t.Fatal(err)
	}
	close(f.thawed)
	if err := <-appended; !errors.Is(err, lease.ErrLost) {
		t.Errorf("what was frozen ends with %v", err)
	}
	wantCount(t, get(t, other, "s1"), 0)
}
