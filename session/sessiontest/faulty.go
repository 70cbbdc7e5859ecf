// SPDX-License-Identifier: Apache-2.0

package sessiontest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/store"
)

// ErrFault is the error of each call that a service of [Faulty] fails.
var ErrFault = errors.New("sessiontest: the store failed on purpose")

// Faults says how often a service of [Faulty] fails.
type Faults struct {
	// Seed makes the faults the same each time, for one caller at a time.
	Seed uint64
	// Before and After are the probabilities, from 0 to 1, that a call fails before or after it
	// has been carried out. The caller cannot tell which from the error.
	Before, After float64
}

// Faulty returns a service that sometimes fails with [ErrFault], like a service behind an
// unreliable network. A failed call may have been carried out or not; the session and the event
// that AppendEvent got are unchanged in both cases. It is a store.Starter, whose Start is
// [store.Start] with svc, and a lease.Leaser and a store.Watcher if svc is.
//
//	svc := sessiontest.Faulty(session.InMemoryService(), sessiontest.Faults{Seed: 1, After: 0.1})
func Faulty(svc session.Service, f Faults) session.Service {
	return &faulty{svc: svc, faults: f, rand: rand.New(rand.NewPCG(f.Seed, 0))}
}

type faulty struct {
	svc    session.Service
	faults Faults

	mu   sync.Mutex
	rand *rand.Rand
}

// call does something or fails, or both.
func (f *faulty) call(do func() error) error {
	f.mu.Lock()
	before, after := f.rand.Float64() < f.faults.Before, f.rand.Float64() < f.faults.After
	f.mu.Unlock()
	if before {
		return ErrFault
	}
	if err := do(); err != nil || !after {
		return err
	}
	return ErrFault
}

func (f *faulty) Create(ctx context.Context, req *session.CreateRequest) (resp *session.CreateResponse, err error) {
	err = f.call(func() (err error) { resp, err = f.svc.Create(ctx, req); return err })
	return dropIf(err, resp), err
}

// Start gives the service copies of the events.
func (f *faulty) Start(ctx context.Context, req *session.StartRequest) (resp *session.StartResponse, err error) {
	stored, err := req.PlainEvents()
	if err != nil {
		return nil, err
	}
	copied := *req
	copied.Events = nil
	for _, ev := range stored {
		c := *ev
		copied.Events = append(copied.Events, &c)
	}
	err = f.call(func() (err error) { resp, err = store.Start(ctx, f.svc, &copied); return err })
	if err != nil {
		return nil, err
	}
	for i, ev := range stored {
		c := copied.Events[i]
		ev.Seq, ev.ID, ev.Timestamp = c.Seq, c.ID, c.Timestamp
	}
	return resp, nil
}

func (f *faulty) Get(ctx context.Context, req *session.GetRequest) (resp *session.GetResponse, err error) {
	err = f.call(func() (err error) { resp, err = f.svc.Get(ctx, req); return err })
	return dropIf(err, resp), err
}

func (f *faulty) List(ctx context.Context, req *session.ListRequest) (resp *session.ListResponse, err error) {
	err = f.call(func() (err error) { resp, err = f.svc.List(ctx, req); return err })
	return dropIf(err, resp), err
}

func (f *faulty) Delete(ctx context.Context, req *session.DeleteRequest) error {
	return f.call(func() error { return f.svc.Delete(ctx, req) })
}

// AppendEvent gives the service a copy of the event, and a session that only has
// names, so that its own are as they were if the call fails.
func (f *faulty) AppendEvent(ctx context.Context, s session.Session, ev *session.Event) error {
	v, ok := s.(*session.View)
	if !ok || ev == nil || ev.Partial {
		return f.svc.AppendEvent(ctx, s, ev)
	}
	stored := *ev
	stored.Seq = cmp.Or(stored.Seq, v.LastSeq()+1)
	if stored.Seq > v.LastSeq()+1 {
		return f.svc.AppendEvent(ctx, s, ev) // the service knows what the session missed
	}
	if err := f.call(func() error { return f.svc.AppendEvent(ctx, nameOnly{v}, &stored) }); err != nil {
		return err
	}
	ev.Seq, ev.ID, ev.Timestamp = stored.Seq, stored.ID, stored.Timestamp
	v.Apply(ev)
	return nil
}

// nameOnly is a session that services do not know.
type nameOnly struct{ session.Session }

func (f *faulty) Acquire(ctx context.Context, key lease.Key, owner string,
	ttl time.Duration) (l *lease.Lease, err error) {
	return f.lease(func(inner lease.Leaser) (*lease.Lease, error) { return inner.Acquire(ctx, key, owner, ttl) })
}

func (f *faulty) TakeOver(ctx context.Context, held *lease.HeldError, owner string,
	ttl time.Duration) (*lease.Lease, error) {
	return f.lease(func(inner lease.Leaser) (*lease.Lease, error) { return inner.TakeOver(ctx, held, owner, ttl) })
}

func (f *faulty) Renew(ctx context.Context, l *lease.Lease, ttl time.Duration) (*lease.Lease, error) {
	return f.lease(func(inner lease.Leaser) (*lease.Lease, error) { return inner.Renew(ctx, l, ttl) })
}

func (f *faulty) Holder(ctx context.Context, key lease.Key) (held *lease.HeldError, err error) {
	inner, ok := f.svc.(lease.Leaser)
	if !ok {
		return nil, fmt.Errorf("%T is no lease.Leaser", f.svc)
	}
	err = f.call(func() (err error) { held, err = inner.Holder(ctx, key); return err })
	return dropIf(err, held), err
}

func (f *faulty) Release(ctx context.Context, l *lease.Lease) error {
	_, err := f.lease(func(inner lease.Leaser) (*lease.Lease, error) { return nil, inner.Release(ctx, l) })
	return err
}

func (f *faulty) lease(do func(lease.Leaser) (*lease.Lease, error)) (l *lease.Lease, err error) {
	inner, ok := f.svc.(lease.Leaser)
	if !ok {
		return nil, fmt.Errorf("%T is no lease.Leaser", f.svc)
	}
	err = f.call(func() (err error) { l, err = do(inner); return err })
	return dropIf(err, l), err
}

// Watch breaks off now and then.
func (f *faulty) Watch(ctx context.Context, key lease.Key, after int64) iter.Seq2[*session.Event, error] {
	return func(yield func(*session.Event, error) bool) {
		inner, ok := f.svc.(store.Watcher)
		if !ok {
			yield(nil, fmt.Errorf("%T is no store.Watcher", f.svc))
			return
		}
		for ev, err := range inner.Watch(ctx, key, after) {
			if f.call(func() error { return nil }) != nil {
				yield(nil, ErrFault)
				return
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

// dropIf keeps an answer from who gets an error.
func dropIf[T any](err error, answer *T) *T {
	if err != nil {
		return nil
	}
	return answer
}
