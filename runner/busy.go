// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/store"
)

// BusyError reports that another run is running in the session, in this process. The other run
// continues. errors.Is finds [session.ErrConflict] in it.
type BusyError struct {
	// SessionID is the session, and RunID the invocation ID of the run in it.
	SessionID, RunID string
}

// Error names the session and the run, and advises to wait or to cancel the run.
func (e *BusyError) Error() string {
	return fmt.Sprintf("session %q: run %q is running in it, and a session has one run at a time: wait for its end, "+
		"or cancel it", e.SessionID, e.RunID)
}

// Is reports whether target is [session.ErrConflict].
func (e *BusyError) Is(target error) bool { return target == session.ErrConflict }

// activeRuns has the runs of this process, by session. A run in another process is found by a conflict in the
// session's log, or by the session's lease.
var activeRuns = struct {
	mu   sync.Mutex
	runs map[sessionKey]string
}{runs: make(map[sessionKey]string)}

// sessionKey identifies the session that a run occupies.
type sessionKey struct {
	service       session.Service
	app, user, id string
}

// claim reserves the session for a run until free is called. It fails with a [*BusyError] if another run has the
// session. If ctx has a lease on the session, only the lease counts, so that a process that takes over the lease need
// not wait until the former holder has noticed. If other processes can reach the session, claim takes its lease. Then
// it can fail with a [*lease.HeldError], and in holds the lease.
func (r *Runner) claim(ctx context.Context, s session.Session, run string) (in context.Context, free func(), err error) {
	if l := lease.From(ctx); l != nil && l.Key == lease.KeyOf(s) {
		return ctx, func() {}, nil
	}
	leave, err := r.claimInProcess(s, run)
	if err != nil {
		return nil, nil, err
	}
	leaser, leases := r.cfg.SessionService.(lease.Leaser)
	if c, ok := r.cfg.SessionService.(store.Committer); !leases || !ok || !c.Commits() {
		return ctx, leave, nil
	}
	in, release, err := takeLease(ctx, leaser, lease.KeyOf(s))
	if err != nil {
		leave()
		return nil, nil, err
	}
	return in, func() { release(); leave() }, nil
}

// claimInProcess reserves the session for a run of this process until leave is called.
func (r *Runner) claimInProcess(s session.Session, run string) (leave func(), err error) {
	if !reflect.ValueOf(r.cfg.SessionService).Comparable() {
		return func() {}, nil
	}
	at := sessionKey{r.cfg.SessionService, s.AppName(), s.UserID(), s.ID()}
	activeRuns.mu.Lock()
	defer activeRuns.mu.Unlock()
	if first, busy := activeRuns.runs[at]; busy {
		return nil, &BusyError{SessionID: at.id, RunID: first}
	}
	activeRuns.runs[at] = run
	return func() {
		activeRuns.mu.Lock()
		defer activeRuns.mu.Unlock()
		delete(activeRuns.runs, at)
	}, nil
}

// leaseTTL is how long a session still belongs to a process that has died. A process that lives renews its lease
// earlier.
const leaseTTL = 15 * time.Second

// takeLease takes the lease of a session and keeps it until release is called. in ends with [lease.ErrLost] when
// the lease is lost.
func takeLease(ctx context.Context, leaser lease.Leaser, key lease.Key) (in context.Context, release func(), err error) {
	l, err := lease.Take(ctx, leaser, key, lease.Process(), leaseTTL)
	if err != nil {
		return nil, nil, err
	}
	in, lose := context.WithCancelCause(lease.With(ctx, l))
	over, stop := context.WithCancel(context.WithoutCancel(ctx))
	var keeps sync.WaitGroup
	keeps.Go(func() {
		gone := func(err error) bool { return errors.Is(err, session.ErrNotFound) }
		if err := lease.Keep(over, leaser, l, leaseTTL, leaseTTL/3, gone); err != nil {
			lose(err)
		}
	})
	return in, func() {
		stop()
		keeps.Wait()
		lose(nil)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTTL)
		defer cancel()
		_ = leaser.Release(ctx, l) // if that fails, the lease ends by itself
	}, nil
}
