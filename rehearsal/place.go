// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"fmt"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/session"
)

// place is where in a run a stand-in plays.
type place struct {
	addr   session.Address
	loops  map[string]int // the loops around, with their iterations
	within string         // the nearest of them
	number string         // the iterations, the outermost first: 2.3
	sample int            // of a judge, from 1
}

// first is the place with the first sample.
func (p place) first() place {
	p.sample = 1
	return p
}

// iteration is that of the nearest loop; 1 outside loops.
func (p place) iteration() int { return max(1, p.loops[p.within]) }

// speech is what an agent says in a place. No two places have the same.
func speech(a *definition.Agent, at place) string {
	if at.number == "" {
		return fmt.Sprintf("Words of %s.", a.Name)
	}
	return fmt.Sprintf("Words of %s, iteration %s.", a.Name, at.number)
}
