// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"os"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/session"
)

// StartLog creates a session with the events of a log, all of them in one transaction. See store.LogStarter.
func (s *Store) StartLog(ctx context.Context, req *session.CreateRequest, evs iter.Seq2[*session.Event, error]) error {
	if req == nil || req.AppName == "" || req.UserID == "" {
		return fmt.Errorf("start session: %w: app name and user ID are required", session.ErrInvalid)
	}
	key, err := newKey(ctx, req)
	if err != nil {
		return fmt.Errorf("start session: %w", err)
	}
	c, err := s.newCreation(ctx, key, req.State)
	if err == nil {
		err = s.startLog(ctx, c, evs)
	}
	if err != nil {
		return fmt.Errorf("start session %q: %w", key.SessionID, err)
	}
	return nil
}

// startLog encodes all events before it begins the transaction.
func (s *Store) startLog(ctx context.Context, c *creation, evs iter.Seq2[*session.Event, error]) error {
	if err := c.entry.lock(ctx); err != nil {
		return err
	}
	defer c.entry.unlock()
	rows, err := newSpool(appending{entry: c.entry, key: c.key, nonce: newNonce()})
	if err != nil {
		return err
	}
	defer rows.close()
	for ev, err := range evs {
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err == nil {
			err = rows.add(ev)
		}
		if err != nil {
			return err
		}
	}
	if rows.row.seq == 0 {
		return fmt.Errorf("%w: an event is required", session.ErrInvalid)
	}
	err = s.write(ctx, func(tx *tx, _ bool) error {
		stored, err := c.insert(tx)
		if err != nil || stored {
			return err
		}
		return rows.write(tx)
	})
	if err == nil {
		s.hub.wake(c.entry.id.Load())
	}
	return err
}

// spool is a temporary file with the rows of a log, so that the transaction takes no longer than its inserts. In the file,
// a row is its time, the lengths of its data and its texts, the data, and the texts.
type spool struct {
	row   appending        // the row of the last event
	state map[string]value // the sum of all deltas
	file  *os.File
	out   *bufio.Writer
}

func newSpool(row appending) (*spool, error) {
	f, err := os.CreateTemp("", "refrain-log-")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name()) // fails on systems that cannot remove an open file; close removes it then
	return &spool{row: row, state: make(map[string]value), file: f, out: bufio.NewWriterSize(f, 1<<16)}, nil
}

func (p *spool) close() {
	_ = p.file.Close()
	_ = os.Remove(p.file.Name())
}

// add writes the row of the next event to the file, unless the event is partial. It does not change the event.
func (p *spool) add(ev *session.Event) error {
	switch {
	case ev == nil:
		return fmt.Errorf("%w: an event is nil", session.ErrInvalid)
	case ev.Partial:
		return nil
	case ev.Seq != 0 && ev.Seq != p.row.seq+1:
		return fmt.Errorf("event %d of a new session: %w", p.row.seq+1, session.ErrConflict)
	}
	own := *ev
	own.Actions.StateDelta = maps.Clone(ev.Actions.StateDelta)
	p.row.seq++
	p.row.texts = nil
	err := own.Actions.Normalize()
	if err == nil {
		err = p.row.encode(&own)
	}
	if err != nil {
		return fmt.Errorf("event %d of a new session: %w", p.row.seq, err)
	}
	for _, v := range p.row.state {
		v.json = slices.Clone(v.json) // v.json shares a buffer with the other values of the event
		p.state[v.key] = v
	}
	head := binary.AppendVarint(nil, p.row.at.UnixMicro())
	for _, part := range [][]byte{p.row.data, p.row.texts} {
		head = binary.AppendUvarint(head, uint64(len(part)))
	}
	for _, part := range [][]byte{head, p.row.data, p.row.texts} {
		if _, err := p.out.Write(part); err != nil {
			return fmt.Errorf("keep the rows of a log in a file: %w", err)
		}
	}
	return nil
}

// write inserts the rows, and the sum of their deltas, into the session that the same transaction has created.
func (p *spool) write(tx *tx) error {
	if err := p.out.Flush(); err != nil {
		return fmt.Errorf("keep the rows of a log in a file: %w", err)
	}
	in := bufio.NewReaderSize(io.NewSectionReader(p.file, 0, math.MaxInt64), 1<<16)
	row, id := p.row, int64(0)
	for row.seq = 1; row.seq <= p.row.seq; row.seq++ {
		if err := row.read(in); err != nil {
			return fmt.Errorf("read the rows of a log from a file: %w", err)
		}
		var err error
		if row.seq == 1 {
			id, _, err = row.insert(tx)
		} else {
			_, err = tx.exec(insertNext, id, row.seq, row.at.UnixMicro(), row.nonce, row.data, row.texts)
		}
		if err != nil {
			return err
		}
	}
	var state []value
	for _, key := range slices.Sorted(maps.Keys(p.state)) {
		state = append(state, p.state[key])
	}
	return tx.setState(row.key, id, state)
}

// read reads the next row of a spool.
func (a *appending) read(in *bufio.Reader) error {
	at, err := binary.ReadVarint(in)
	if err != nil {
		return err
	}
	a.at, a.data, a.texts = time.UnixMicro(at), nil, nil
	var lengths [2]uint64
	for i := range lengths {
		if lengths[i], err = binary.ReadUvarint(in); err != nil {
			return err
		}
	}
	for i, part := range []*[]byte{&a.data, &a.texts} {
		if lengths[i] == 0 {
			continue
		}
		*part = make([]byte, lengths[i])
		if _, err := io.ReadFull(in, *part); err != nil {
			return err
		}
	}
	return nil
}
