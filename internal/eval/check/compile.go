// SPDX-License-Identifier: Apache-2.0

package check

import "context"

// Check is a compiled check. It is safe for concurrent use.
type Check struct {
	spec Spec
	find func(ctx context.Context, s *Subject) finding
}

// finding is the value of a check with its reason.
type finding struct {
	value  float64
	reason string
	turns  []*float64 // by turn, if the check compares each with its reference
	none   bool       // not evaluated
	broken bool       // failed, whatever the value and "not" are
}

// Compile checks a spec and makes it ready to run. Its error is an [*Error].
func Compile(spec Spec) (*Check, error) {
	return &Check{spec: spec}, nil
}

// Spec returns the spec from which the check was compiled.
func (c *Check) Spec() Spec { return c.spec }

// Run runs the check. A check that cannot be evaluated for want of a reference has neither a value nor a verdict; one
// that fails to run, such as an expression that reads a missing key, has failed.
func (c *Check) Run(ctx context.Context, s *Subject) Result {
	r := Result{Name: c.spec.Label(), Informational: c.spec.Informational, Weight: c.spec.Weight}
	if c.find == nil {
		r.Reason = "not evaluated"
		return r
	}
	f := c.find(ctx, s)
	r.Reason, r.Turns = f.reason, f.turns
	if f.none {
		return r
	}
	v := f.value
	if c.spec.Not {
		v = 1 - v
	}
	if f.broken {
		v = 0
	}
	r.Value, r.Passed = &v, new(!f.broken && v >= c.spec.least()-slack)
	return r
}
