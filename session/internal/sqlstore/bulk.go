// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
)

// AppendEvents adds several events and their deltas in one transaction. See
// store.BulkAppender.
func (s *Store) AppendEvents(ctx context.Context, of session.Session, evs []*session.Event) error {
	if of == nil || slices.Contains(evs, nil) {
		return fmt.Errorf("append events: %w: session and events are required", session.ErrInvalid)
	}
	partial := func(ev *session.Event) bool { return ev.Partial }
	if slices.ContainsFunc(evs, partial) {
		evs = slices.DeleteFunc(slices.Clone(evs), partial)
	}
	if len(evs) == 0 {
		return nil
	}
	key := lease.KeyOf(of)
	if err := complete(key); err != nil {
		return fmt.Errorf("append events: %w", err)
	}
	if err := s.append(ctx, key, of, evs); err != nil {
		return fmt.Errorf("append to session %q: %w", key.SessionID, err)
	}
	return nil
}

// Commits returns true. See store.Committer.
func (s *Store) Commits() bool { return true }

// batch is the list of events that one transaction appends. All its events have the same nonce, because they are
// stored together or not at all.
type batch struct {
	all   []appending // copies of the first one, except the fields that encode sets, and seq
	state []value     // the sum of all deltas, sorted by key
}

// encode encodes the rows of all events. It does not change the events.
func (b *batch) encode(evs []*session.Event) error {
	last := make(map[string]value)
	for i, ev := range evs {
		if i > 0 {
			b.all = append(b.all, b.all[0])
			if b.all[i].seq += int64(i); ev.Seq != 0 && ev.Seq != b.all[i].seq {
				return session.ErrConflict
			}
		}
		a := &b.all[i]
		if err := a.encode(ev); err != nil {
			return err
		}
		for _, v := range a.state {
			last[v.key] = v
		}
	}
	for _, k := range slices.Sorted(maps.Keys(last)) {
		b.state = append(b.state, last[k])
	}
	return nil
}

// write inserts all events and the sum of their deltas.
func (b *batch) write(tx *tx, _ bool) error {
	first := &b.all[0]
	id, stored, err := first.insert(tx)
	if err != nil || stored { // an earlier attempt stored the batch, but its answer was lost
		return err
	}
	for _, a := range b.all[1:] {
		// No other writer can insert these numbers first, because the first event has locked the end of the log.
		if _, err := tx.exec(insertNext, id, a.seq, a.at.UnixMicro(), a.nonce, a.data, a.texts); err != nil {
			return err
		}
	}
	return tx.setState(first.key, id, b.state)
}

// applied sets the Seq, the ID and the Timestamp of the stored events, and adds the events to the view. v can be
// nil.
func (b *batch) applied(evs []*session.Event, v *session.View) {
	for i, ev := range evs {
		a := &b.all[i]
		if v != nil && v.LastSeq() >= a.seq {
			continue // the caller has already applied the event, and other goroutines may read it
		}
		ev.Seq, ev.ID, ev.Timestamp = a.seq, a.id, a.at
		if v != nil {
			v.Apply(ev)
		}
	}
}
