// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/session"
)

// fence surrounds a step that may be abandoned while it still runs. After the fence is closed, the step and the code
// that it runs can still read, but change nothing.
type fence struct {
	outer   *fence // the next fence outside this one, or nil
	run     *runContext
	session session.Session // the session of the run for code inside the fence

	mu          sync.RWMutex
	err         error           // the argument of close; nil before that
	ctx         context.Context // when it ends with the cause deadlineErr, the fence is closed
	deadlineErr error
}

// newFence returns a fence around the steps that run under inv.
func newFence(inv *invocation) *fence {
	f := &fence{outer: inv.fence, run: inv.run}
	f.session = stepSession{inv.run.Session, f, nil}
	return f
}

// isInside reports whether f is other, or in it.
func (f *fence) isInside(other *fence) bool {
	for ; f != nil; f = f.outer {
		if f == other {
			return true
		}
	}
	return false
}

// close closes the fence, with err for later writes, unless it is closed. It waits for a write under way, which is
// short.
func (f *fence) close(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

// closeOn makes the fence closed, with the error late, from the moment that ctx ends with late as its cause. If late
// is nil, the end of ctx does not close it.
func (f *fence) closeOn(ctx context.Context, late error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ctx, f.deadlineErr = ctx, late
}

func (f *fence) closed() bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.cause() != nil
}

// cause returns the error with which the fence is closed, or nil. The caller holds mu.
func (f *fence) cause() error {
	if f.err == nil && f.deadlineErr != nil && f.ctx.Err() != nil && context.Cause(f.ctx) == f.deadlineErr {
		return f.deadlineErr
	}
	return f.err
}

// write calls do. If the fence or one around it is closed, it returns the error of that fence instead.
func (f *fence) write(do func() error) error {
	if f == nil {
		return do()
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	if err := f.cause(); err != nil {
		return err
	}
	return f.outer.write(do)
}

// WithFence returns a context for code that may be abandoned while it still runs, such as a callback. The code sees the
// loops around it as they are now. After a call of close it can still read, but each write fails with err.
func (p Place) WithFence() (fenced agent.InvocationContext, close func(err error)) {
	inv := parentInvocation(p.ctx)
	c := inv.copy(p.ctx)
	c.loop, c.fence = inv.loop.snapshot(), newFence(inv)
	return c, c.fence.close
}

type fencedArtifacts struct {
	agent.Artifacts
	fence *fence
}

// Save saves an artifact unless the fence is closed. It does not lock the fence while it saves, because a store may
// take long.
func (a fencedArtifacts) Save(ctx context.Context, name string, data *genai.Part) (*artifact.SaveResponse, error) {
	if err := a.fence.write(func() error { return nil }); err != nil {
		return nil, err
	}
	return a.Artifacts.Save(ctx, name, data)
}

// SaveVersion saves an artifact as Save does, in place of a version; 0 makes the next version. It returns [errors.ErrUnsupported] if the
// artifacts cannot replace a version.
func (a fencedArtifacts) SaveVersion(ctx context.Context, name string, data *genai.Part, version int64) (*artifact.SaveResponse, error) {
	if err := a.fence.write(func() error { return nil }); err != nil {
		return nil, err
	}
	s, ok := a.Artifacts.(interface {
		SaveVersion(ctx context.Context, name string, data *genai.Part, version int64) (*artifact.SaveResponse, error)
	})
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return s.SaveVersion(ctx, name, data, version)
}
