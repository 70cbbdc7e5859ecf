// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/values/sleep"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
)

// Cleaner removes runs whose time is over.
type Cleaner struct {
	Remover
	// Rules returns the present rules. If it returns an error, nothing is removed.
	Rules func() (Rules, error)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Each, if it is set, gets each run that was removed, and with an error each that could not be.
	Each func(x *Expired, err error)
}

// List returns the runs that Clean would remove now, in its order.
func (c *Cleaner) List(ctx context.Context) ([]*Expired, error) {
	rules, err := c.Rules()
	if err != nil || rules.shortest() == 0 {
		return nil, err
	}
	return c.expired(ctx, rules)
}

func (c *Cleaner) expired(ctx context.Context, rules Rules) ([]*Expired, error) {
	all, err := runlog.ListAll(ctx, c.Service, c.AppName, c.UserID)
	if err != nil {
		return nil, fmt.Errorf("list the runs: %w", err)
	}
	now := time.Now
	if c.Now != nil {
		now = c.Now
	}
	return rules.Expired(all, now()), nil
}

// atOnce is how many runs Clean looks at again with one list of all runs. Their removal takes less than leaseTime.
const atOnce = 500

// Clean removes the runs whose time is over now. A run that could not be removed is left for the next time; the error joins why. A run that
// another process removes at this moment is no error.
func (c *Cleaner) Clean(ctx context.Context) error {
	rules, err := c.Rules()
	if err != nil {
		return err
	}
	return c.cleanBy(ctx, rules)
}

func (c *Cleaner) cleanBy(ctx context.Context, rules Rules) error {
	if rules.shortest() == 0 {
		return nil
	}
	list, err := c.expired(ctx, rules)
	if err != nil {
		return err
	}
	var failed []error
	for some := range slices.Chunk(list, atOnce) {
		err := c.clean(ctx, rules, some)
		failed = append(failed, err)
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failed...)
}

// clean removes some runs. It takes their leases before it looks again which of them may go. So a fork that is not in that list finds the
// lease, or no run, and is given up: see [supervisor.Supervisor.Fork].
func (c *Cleaner) clean(ctx context.Context, rules Rules, some []*Expired) error {
	leases := make(map[string]*lease.Lease)
	defer func() {
		for _, l := range leases {
			c.release(ctx, l)
		}
	}()
	for _, x := range some {
		l, err := c.take(ctx, x.ID)
		if _, held := errors.AsType[*lease.HeldError](err); held || errors.Is(err, session.ErrNotFound) {
			continue // a process resumes or removes it
		}
		if err != nil {
			return err
		}
		leases[x.ID] = l
	}
	now, err := c.expired(ctx, rules)
	if err != nil {
		return err
	}
	var failed []error
	left := make(map[string]bool) // the runs of which a fork has stayed
	for _, x := range now {
		l := leases[x.ID]
		if l != nil && !left[x.ID] {
			err := c.remove(ctx, x.ID)
			if c.Each != nil {
				c.Each(x, err)
			}
			if err == nil {
				continue
			}
			failed = append(failed, fmt.Errorf("remove run %s: %w", x.ID, err))
		}
		left[x.parent] = true
	}
	return errors.Join(failed...)
}

// Times between two passes of Run.
const (
	often  = time.Second
	seldom = 10 * time.Minute
)

// Run cleans again and again, until ctx ends. report gets what went wrong; the error of Rules only when it is another one than at the
// last pass.
func (c *Cleaner) Run(ctx context.Context, report func(error)) {
	known := ""
	for ctx.Err() == nil {
		rules, err := c.Rules()
		repeated := err != nil && err.Error() == known
		if known = ""; err != nil {
			known = err.Error()
		} else {
			err = c.cleanBy(ctx, rules)
		}
		if err != nil && !repeated && ctx.Err() == nil {
			report(err)
		}
		wait := seldom
		if shortest := rules.shortest(); shortest > 0 {
			wait = min(wait, max(shortest/10, often))
		}
		_ = sleep.For(ctx, wait)
	}
}
