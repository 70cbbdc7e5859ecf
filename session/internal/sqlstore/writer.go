// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// job is one change that somebody waits for.
type job struct {
	ctx context.Context
	// change may run several times, each in a transaction of its own. It is told
	// whether an earlier one may have been committed.
	change func(tx *tx, unsure bool) error
	unsure bool
	taken  atomic.Bool // by a worker, or by the caller who gave it up
	wait   patience
	err    error
	done   chan struct{}
}

// grace is how long a caller whose context has ended waits for a commit that is
// under way: a moment later its outcome is known.
const grace = 2 * time.Second

// write runs a change in a transaction, together with others that wait.
func (s *Store) write(ctx context.Context, change func(tx *tx, unsure bool) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := s.enter(); err != nil {
		return err
	}
	j := &job{ctx: ctx, change: change, wait: s.patience(), done: make(chan struct{})}
	select {
	case s.jobs <- j:
	case <-ctx.Done():
		s.calls.Done()
		return context.Cause(ctx)
	}
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
	}
	if j.taken.CompareAndSwap(false, true) {
		return context.Cause(ctx)
	}
	select {
	case <-j.done:
		return j.err
	case <-time.After(grace):
		return unknown(context.Cause(ctx))
	}
}

func unknown(err error) error {
	return fmt.Errorf("%w; it is unknown whether the change was stored: get the session again to see", err)
}

// work is one worker: it takes what waits and writes it.
func (s *Store) work() {
	tx := &tx{store: s}
	defer tx.disconnect()
	for j := range s.jobs {
		batch := s.take(nil, j)
		for more := true; more && len(batch) < s.batch; {
			select {
			case j, more = <-s.jobs:
				if more {
					batch = s.take(batch, j)
				}
			default:
				more = false
			}
		}
		tx.commit(batch)
	}
}

// take adds a job to a batch unless its caller is gone.
func (s *Store) take(batch []*job, j *job) []*job {
	if !j.taken.CompareAndSwap(false, true) {
		s.calls.Done()
		return batch
	}
	return append(batch, j)
}

func (s *Store) finish(j *job, err error) {
	j.err = err
	close(j.done)
	s.calls.Done()
}

// tx is a worker's connection, and the transaction under way on it.
type tx struct {
	store *Store
	ctx   context.Context // of the try under way

	conn  *sql.Conn // nil: not connected
	stmts map[string]*sql.Stmt
}

// commit writes a batch, and tells its callers. It tries until each job is
// stored, refused, or has waited for too long.
func (t *tx) commit(batch []*job) {
	for len(batch) > 0 {
		err := t.try(batch)
		if err == nil {
			for _, j := range batch {
				t.store.finish(j, j.err)
			}
			return
		}
		if t.store.dialect.Classify(err) == Final && len(batch) > 1 {
			for _, j := range batch { // one of them spoils it for the others
				t.commit([]*job{j})
			}
			return
		}
		batch = t.patient(batch, err)
		if len(batch) > 0 {
			batch[0].wait.pause(batch[0].ctx)
		}
	}
}

// patient tells those callers who have waited for too long, and returns the
// jobs that go on.
func (t *tx) patient(batch []*job, err error) []*job {
	return slices.DeleteFunc(batch, func(j *job) bool {
		end := j.wait.over(j.ctx, err)
		if end != nil && j.unsure {
			end = unknown(end)
		}
		if end != nil {
			t.store.finish(j, end)
		}
		return end != nil
	})
}

// try writes a batch in one transaction. The jobs' own refusals are in them; an
// error is the whole transaction's, and nothing is written.
func (t *tx) try(batch []*job) (err error) {
	ctx := context.Background()
	if d := t.store.dialect.Timeout; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	t.ctx = ctx
	if err := t.connect(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			t.rollback()
		}
	}()
	if _, err := t.exec(t.store.dialect.Begin); err != nil {
		return err
	}
	for _, j := range batch {
		j.err = j.change(t, j.unsure)
		if j.err != nil && !isRefusal(j.err) {
			return j.err
		}
	}
	if _, err := t.exec("COMMIT"); err != nil {
		if t.store.dialect.Classify(err) == Lost {
			for _, j := range batch {
				j.unsure = j.unsure || j.err == nil // one that was refused wrote nothing
			}
		}
		return err
	}
	return nil
}

func (t *tx) connect() error {
	if t.conn != nil {
		return nil
	}
	conn, err := t.store.writer.Conn(t.ctx)
	if err != nil {
		return err
	}
	t.conn, t.stmts = conn, make(map[string]*sql.Stmt)
	return nil
}

// rollback ends the transaction. Where that does not work, the connection is
// given up, which ends it too.
func (t *tx) rollback() {
	if _, err := t.exec("ROLLBACK"); err != nil {
		t.disconnect()
	}
}

func (t *tx) disconnect() {
	if t.conn == nil {
		return
	}
	for _, stmt := range t.stmts {
		stmt.Close()
	}
	_ = t.conn.Raw(func(any) error { return driver.ErrBadConn }) // so that it is not used again
	_ = t.conn.Close()
	t.conn, t.stmts = nil, nil
}

// exec runs a statement, and says how many rows it changed.
func (t *tx) exec(text string, args ...any) (int64, error) {
	stmt, err := t.stmt(text)
	if err != nil {
		return 0, err
	}
	res, err := stmt.ExecContext(t.ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// query runs a statement that yields rows.
func (t *tx) query(text string, args ...any) (*sql.Rows, error) {
	stmt, err := t.stmt(text)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(t.ctx, args...)
}

// row reads one row, and reports whether there is one.
func (t *tx) row(text string, args []any, dest ...any) (bool, error) {
	stmt, err := t.stmt(text)
	if err != nil {
		return false, err
	}
	err = stmt.QueryRowContext(t.ctx, args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

func (t *tx) stmt(text string) (*sql.Stmt, error) {
	if stmt := t.stmts[text]; stmt != nil {
		return stmt, nil
	}
	stmt, err := t.conn.PrepareContext(t.ctx, t.store.dialect.sql(text))
	if err != nil {
		return nil, err
	}
	t.stmts[text] = stmt
	return stmt, nil
}
