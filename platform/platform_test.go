// SPDX-License-Identifier: Apache-2.0

package platform_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/platform"
	"github.com/refrain-dev/refrain/session"
)

// Events and sessions that are the same in each run.
func Example() {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ctx := platform.WithTimeProvider(context.Background(), func() time.Time { return noon })
	n := 0
	ctx = platform.WithUUIDProvider(ctx, func() string { n++; return fmt.Sprintf("id-%d", n) })

	ev := session.NewEvent(ctx, "run-1")
	fmt.Println(ev.ID, ev.Timestamp)
	made, err := session.InMemoryService().Create(ctx, &session.CreateRequest{AppName: "app", UserID: "ana"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(made.Session.ID(), made.Session.LastUpdateTime())
	// Output:
	// id-1 2026-01-01 12:00:00 +0000 UTC
	// id-2 2026-01-01 12:00:00 +0000 UTC
}

// Without a provider, or with one that is nil, the time is that of the machine and an ID is random.
func TestDefaults(t *testing.T) {
	var none context.Context
	empty := platform.WithTaskRunner(platform.WithUUIDProvider(platform.WithTimeProvider(t.Context(), nil), nil), nil)
	for _, ctx := range []context.Context{none, t.Context(), empty} {
		if d := time.Since(platform.Now(ctx)); d < 0 || d > time.Minute {
			t.Errorf("Now is %s off", d)
		}
		if a, b := platform.NewUUID(ctx), platform.NewUUID(ctx); a == b || len(a) != 36 {
			t.Errorf("got the IDs %q and %q", a, b)
		}
		var sum atomic.Int64
		platform.RunTasks(ctx, []func(context.Context){func(context.Context) { sum.Add(1) }, func(context.Context) { sum.Add(2) }})
		if sum.Load() != 3 {
			t.Errorf("the tasks made %d of 3", sum.Load())
		}
		if ev := session.NewEvent(ctx, "e-1"); ev.ID != "" || !ev.Timestamp.IsZero() {
			t.Errorf("a new event has ID %q and time %s before it is appended", ev.ID, ev.Timestamp)
		}
	}
}

// A runner gets all tasks at once, and may give each its own context.
func TestTaskRunner(t *testing.T) {
	type key struct{}
	ctx := platform.WithTaskRunner(t.Context(), func(ctx context.Context, tasks []func(context.Context)) {
		for i := range tasks { // the last one first
			tasks[len(tasks)-1-i](context.WithValue(ctx, key{}, i))
		}
	})
	var got []any
	note := func(ctx context.Context) { got = append(got, ctx.Value(key{})) }
	platform.RunTasks(ctx, []func(context.Context){func(ctx context.Context) { note(ctx); got = append(got, "first") }, note})
	if fmt.Sprint(got) != "[0 1 first]" {
		t.Errorf("got %v", got)
	}
}
