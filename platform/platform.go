// SPDX-License-Identifier: Apache-2.0

// Package platform lets a context decide the current time, new IDs, and how tasks run concurrently. Tests
// use it for events that are the same in each run; a host that has a clock or an executor of its own
// installs it here.
//
//	ctx = platform.WithTimeProvider(ctx, func() time.Time { return noon })
//	ev := session.NewEvent(ctx, "run-1") // at noon
//
// The providers decide the timestamp of the events and marks that a runner appends, the ID of a new event, the ID and
// the time of a new session, the ID of an invocation, and how the tool calls of one turn run. They do not decide when
// a delay, a timeout or a lease ends, nor what is measured for it: the timestamps of the marks step_started,
// step_finished and of rate limits, and times in the data of a mark. Nor do they decide the IDs of marks, nor the
// timestamps of what a supervisor appends.
//
// A test of these runs in a bubble of testing/synctest, whose clock is that of every goroutine in it, and needs no
// provider:
//
//	synctest.Test(t, func(t *testing.T) {
//		for ev, err := range r.Run(t.Context(), "ana", "s-1", message, agent.RunConfig{}) {
//			… // after a delay of an hour, which takes no time
//		}
//	})
package platform

import (
	"context"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/internal/values/uuid"
)

type (
	// TimeProvider returns the current time.
	TimeProvider func() time.Time
	// UUIDProvider returns a new unique ID.
	UUIDProvider func() string
	// TaskRunner calls each task once, and returns when all have returned. It may give a task a context of its
	// own, which it derives from ctx.
	TaskRunner func(ctx context.Context, tasks []func(context.Context))
)

type (
	timeKey  struct{}
	uuidKey  struct{}
	tasksKey struct{}
)

// WithTimeProvider returns a context in which p tells the time. A nil p is the clock of this machine.
func WithTimeProvider(ctx context.Context, p TimeProvider) context.Context {
	return context.WithValue(ctx, timeKey{}, p)
}

// WithUUIDProvider returns a context in which p makes new IDs. A nil p makes random UUIDs.
func WithUUIDProvider(ctx context.Context, p UUIDProvider) context.Context {
	return context.WithValue(ctx, uuidKey{}, p)
}

// WithTaskRunner returns a context in which r runs tasks. A nil r runs each task in a goroutine of its own.
func WithTaskRunner(ctx context.Context, r TaskRunner) context.Context {
	return context.WithValue(ctx, tasksKey{}, r)
}

// Now returns the time from the provider of ctx, or else from the clock of this machine.
func Now(ctx context.Context) time.Time {
	if p := TimeProviderOf(ctx); p != nil {
		return p()
	}
	return time.Now()
}

// NewUUID returns an ID from the provider of ctx, or else a random UUID.
func NewUUID(ctx context.Context) string {
	if p := UUIDProviderOf(ctx); p != nil {
		return p()
	}
	return uuid.New().String()
}

// RunTasks runs tasks with the runner of ctx, or else each task in a goroutine of its own, and returns when
// all have returned. A panic of a task in such a goroutine is not recovered.
func RunTasks(ctx context.Context, tasks []func(context.Context)) {
	if r := valueOf[TaskRunner](ctx, tasksKey{}); r != nil {
		r(ctx, tasks)
		return
	}
	var wg sync.WaitGroup
	for _, task := range tasks {
		wg.Go(func() { task(ctx) })
	}
	wg.Wait()
}

// TimeProviderOf returns the provider of ctx, or nil.
func TimeProviderOf(ctx context.Context) TimeProvider { return valueOf[TimeProvider](ctx, timeKey{}) }

// UUIDProviderOf returns the provider of ctx, or nil.
func UUIDProviderOf(ctx context.Context) UUIDProvider { return valueOf[UUIDProvider](ctx, uuidKey{}) }

func valueOf[F any](ctx context.Context, key any) (f F) {
	if ctx != nil {
		f, _ = ctx.Value(key).(F)
	}
	return f
}
