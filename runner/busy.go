// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
)

// BusyError reports that another run is running in the session, in this process. The other run
// continues. errors.Is finds [session.ErrConflict] in it.
type BusyError struct {
	// SessionID is the session, and RunID the invocation ID of the run in it.
	SessionID, RunID string
}

// Error names the session and the run, and says what to do.
func (e *BusyError) Error() string {
	return fmt.Sprintf("session %q: run %q is running in it, and a session has one run at a time: wait for its end, "+
		"or cancel it", e.SessionID, e.RunID)
}

// Is reports whether target is [session.ErrConflict].
func (e *BusyError) Is(target error) bool { return target == session.ErrConflict }

// underWay has the runs of this process, by session. Other processes are excluded by the session's
// log, and those of a supervisor by its lease.
var underWay = struct {
	mu   sync.Mutex
	runs map[seat]string
}{runs: make(map[seat]string)}

// seat identifies the session that a run occupies.
type seat struct {
	service       session.Service
	app, user, id string
}

// claim takes the session for a run until free is called. It fails with a [*BusyError]. If ctx has
// a lease on the session, the lease alone decides, so that a process that takes the lease over need
// not wait until the former holder has noticed.
func (r *Runner) claim(ctx context.Context, s session.Session, run string) (free func(), err error) {
	if l := lease.From(ctx); l != nil && l.Key == lease.KeyOf(s) {
		return func() {}, nil
	}
	if !reflect.ValueOf(r.cfg.SessionService).Comparable() {
		return func() {}, nil
	}
	at := seat{r.cfg.SessionService, s.AppName(), s.UserID(), s.ID()}
	underWay.mu.Lock()
	defer underWay.mu.Unlock()
	if first, busy := underWay.runs[at]; busy {
		return nil, &BusyError{SessionID: at.id, RunID: first}
	}
	underWay.runs[at] = run
	return func() {
		underWay.mu.Lock()
		defer underWay.mu.Unlock()
		delete(underWay.runs, at)
	}, nil
}
