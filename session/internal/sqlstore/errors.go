// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
)

// refusal is an error that is an answer of the store, such as ErrConflict, and not a failure of the database. The
// refused change wrote nothing, so its transaction can still be committed for other changes.
type refusal struct{ err error }

func (r refusal) Error() string { return r.err.Error() }
func (r refusal) Unwrap() error { return r.err }

func refuse(err error) error { return refusal{err} }

func isRefusal(err error) bool {
	_, ok := errors.AsType[refusal](err)
	return ok
}

// explain returns a refusal unchanged, and the dialect's explanation of any other error.
func (s *Store) explain(err error) error {
	if err == nil || isRefusal(err) {
		return err
	}
	return s.dialect.Explain(err)
}

// patience is the time limit and the pauses of the attempts of one call.
type patience struct {
	store *Store
	until time.Time
	delay time.Duration // the pause before the next attempt
	most  time.Duration // the limit of delay
}

func (s *Store) patience() patience {
	return patience{store: s, until: time.Now().Add(s.wait), delay: time.Millisecond}
}

// over returns the error for the caller after an attempt failed with err. It returns nil if the call should try
// again.
func (p *patience) over(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	class := p.store.dialect.Classify(err)
	p.most = 500 * time.Millisecond
	if class == Retryable { // keep the pauses short, because other calls overtake a call that pauses for long
		p.most = 20 * time.Millisecond
	}
	switch {
	case cause != nil && errors.Is(err, ctx.Err()):
		return cause
	case cause != nil:
		return fmt.Errorf("%w, while waiting: %w", cause, p.store.explain(err))
	case isRefusal(err) || class == Final:
		return p.store.explain(err)
	case p.store.done.Err() != nil:
		return session.ErrClosed
	case time.Now().Add(p.delay).After(p.until):
		return fmt.Errorf("gave up after %v: %w", p.store.wait, p.store.explain(err))
	}
	return nil
}

// pause waits before another attempt. Each pause takes twice as long as the one before, up to the limit.
func (p *patience) pause(ctx context.Context) {
	t := time.NewTimer(p.delay)
	defer t.Stop()
	p.delay = min(2*p.delay, p.most)
	select {
	case <-ctx.Done():
	case <-p.store.done.Done():
	case <-t.C:
	}
}

// valid returns an error for a name that a database cannot store.
func valid(names ...string) error {
	for _, name := range names {
		if !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
			return fmt.Errorf("%w: %q is not text: it has a byte that is no UTF-8, or a zero", session.ErrInvalid, name)
		}
	}
	return nil
}

// complete returns an error for a key without an app name, user ID or session ID, or with an invalid one.
func complete(key lease.Key) error {
	if key.AppName == "" || key.UserID == "" || key.SessionID == "" {
		return fmt.Errorf("%w: app name, user ID and session ID are required, got %q, %q, %q", session.ErrInvalid,
			key.AppName, key.UserID, key.SessionID)
	}
	return valid(key.AppName, key.UserID, key.SessionID)
}

// missing returns the refusal for a session that does not exist. It wraps ErrNotFound.
func missing(key lease.Key) error {
	return refuse(fmt.Errorf("session %q of user %q: %w", key.SessionID, key.UserID, session.ErrNotFound))
}
