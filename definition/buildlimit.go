// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"errors"
	"fmt"
)

// limit finds the loop that limits from outside are for, and what it then is.
func (b *builder) limit(d *Definition) error {
	if b.cfg.MaxIterations == nil && b.cfg.Timeout == nil {
		return nil
	}
	what, field := "max iterations", "max_iterations"
	if b.cfg.MaxIterations == nil {
		what, field = "a timeout is", "timeout"
	}
	var loops []*Agent
	for a := range d.Root.All {
		if a.Type == TypeLoop {
			loops = append(loops, a)
		}
	}
	switch {
	case len(loops) == 0:
		return errors.New(what + " given, but there is no loop")
	case d.Root.Type != TypeLoop && len(loops) > 1:
		return fmt.Errorf("%s given, but there are %d loops and none is the root; set %s in the file", what, len(loops), field)
	}
	l := *loops[0].Loop
	if n := b.cfg.MaxIterations; n != nil {
		l.MaxIterations = *n
	}
	if t := b.cfg.Timeout; t != nil {
		if *t < 0 {
			return fmt.Errorf("the timeout given is negative: %s", *t)
		}
		l.Timeout, l.meant = *t, true
		l.clamp()
	}
	if endless(&l, loops[0]) {
		return fmt.Errorf("%s [%s] (%s)", endlessMessage(loops[0]), CodeEndless, endlessHint)
	}
	b.limited, b.limits = loops[0], l
	return nil
}
