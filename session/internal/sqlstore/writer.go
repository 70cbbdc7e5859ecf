// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// job is one change of the database. Its caller waits until it is written or refused.
type job struct {
	ctx context.Context
	// change may run several times, each time in another transaction. unsure is true if an earlier transaction may
	// have been committed.
	change func(tx *tx, unsure bool) error
	unsure bool
	wait   patience

	err      error
	finished bool          // err is the result
	done     chan struct{} // closed when the job is finished; nil if its caller did not have to wait
	turn     chan *tx      // receives a connection if the waiting caller is to write the job itself
}

// grace is how long a caller whose context has ended still waits for its transaction, because the result is usually
// known a moment later.
const grace = 2 * time.Second

// write runs a change in a transaction. A caller that finds a free connection writes its change itself, together with the
// changes of callers that wait. So no goroutine has to be woken if one caller writes alone.
func (s *Store) write(ctx context.Context, change func(tx *tx, unsure bool) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.calls.Done()
	j := &job{ctx: ctx, change: change, wait: s.patience()}
	t := s.writers.join(j)
	if t == nil {
		var err error
		if t, err = s.writers.await(j); t == nil {
			return err
		}
	}
	t.lead(j)
	return j.err
}

// unknownCommit returns the error for a change of which it is unknown whether it was committed.
func unknownCommit(err error) error {
	return fmt.Errorf("%w; it is unknown whether the change was stored: get the session again to see", err)
}

// queue is the list of the free connections that write, and of the jobs that wait for a connection.
type queue struct {
	mu      sync.Mutex
	free    []*tx
	waiting []*job
}

// join returns a free connection. If there is none, it adds the job to the waiting ones and returns nil.
func (q *queue) join(j *job) *tx {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.free); n > 0 {
		t := q.free[n-1]
		q.free = q.free[:n-1]
		return t
	}
	j.done, j.turn = make(chan struct{}), make(chan *tx, 1)
	q.waiting = append(q.waiting, j)
	return nil
}

// await waits until another caller has finished the job, and returns the job's error. Or it returns a connection, with
// which the caller must write the job itself. If the job's context ends, it returns an error.
func (q *queue) await(j *job) (*tx, error) {
	select {
	case <-j.done:
		return nil, j.err
	case t := <-j.turn:
		return t, nil
	case <-j.ctx.Done():
	}
	cause := context.Cause(j.ctx)
	if q.leave(j) {
		return nil, cause
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-j.done:
		return nil, j.err
	case t := <-j.turn:
		q.release(t)
		return nil, cause
	case <-late.C:
		return nil, unknownCommit(cause)
	}
}

// leave removes a job from the waiting ones. It returns false if a writer has already taken the job.
func (q *queue) leave(j *job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, j)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	return true
}

// take moves waiting jobs to a batch, until the batch has most jobs.
func (q *queue) take(batch []*job, most int) []*job {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(most-len(batch), len(q.waiting))
	batch = append(batch, q.waiting[:n]...)
	q.waiting = slices.Delete(q.waiting, 0, n)
	return batch
}

// release gives a connection to the job that has waited longest, or makes it free if no job waits.
func (q *queue) release(t *tx) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.free = append(q.free, t)
		return
	}
	q.waiting[0].turn <- t
	q.waiting = slices.Delete(q.waiting, 0, 1)
}

// tx is a connection that writes, with its present transaction.
type tx struct{ conn }

// lead writes a job together with waiting jobs, and returns when the job is finished. If other jobs are not finished
// then, a goroutine goes on writing them, because their callers wait.
func (t *tx) lead(j *job) {
	s := t.store
	rest := t.round(s.writers.take([]*job{j}, s.batch))
	for len(rest) > 0 && !j.finished {
		j.wait.pause(j.ctx)
		rest = t.round(rest)
	}
	if len(rest) == 0 {
		s.writers.release(t)
		return
	}
	s.workers.Go(func() {
		for len(rest) > 0 {
			rest[0].wait.pause(rest[0].ctx)
			rest = t.round(rest)
		}
		s.writers.release(t)
	})
}

// round tries to write a batch once. It finishes the jobs that were stored or refused, or that cannot be tried
// again. It returns the other jobs. If the batch fails with a Final error, round writes each of its jobs alone.
func (t *tx) round(batch []*job) (rest []*job) {
	err := t.try(batch)
	if err == nil {
		for _, j := range batch {
			j.finish(j.err)
		}
		return nil
	}
	if t.store.dialect.Classify(err) == Final && len(batch) > 1 {
		for _, j := range batch { // one job makes the whole transaction fail
			rest = append(rest, t.round([]*job{j})...)
		}
		return rest
	}
	for _, j := range batch {
		end := j.wait.over(j.ctx, err)
		switch {
		case end == nil:
			rest = append(rest, j)
			continue
		case j.unsure:
			end = unknownCommit(end)
		}
		j.finish(end)
	}
	return rest
}

func (j *job) finish(err error) {
	j.err, j.finished = err, true
	if j.done != nil {
		close(j.done)
	}
}

// try writes a batch in one transaction. It stores a refusal in the err of its job. If it returns an error, nothing was
// written, or it is unknown, and then the jobs are marked as unsure.
func (t *tx) try(batch []*job) (err error) {
	ctx := context.Background()
	if d := t.store.dialect.Timeout; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
		defer context.AfterFunc(batch[0].ctx, func() { time.AfterFunc(grace, cancel) })()
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
		if ctx.Err() != nil || t.store.dialect.Classify(err) == ConnectionLost {
			for _, j := range batch {
				j.unsure = j.unsure || j.err == nil // a refused job wrote nothing
			}
		}
		return err
	}
	if t.store.dialect.Committed != nil {
		t.store.dialect.Committed()
	}
	return nil
}
