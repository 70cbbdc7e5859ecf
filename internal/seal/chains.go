// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"iter"
	"math"
	"slices"

	"github.com/refrain-dev/refrain/session"
)

// Chains has the chain of the newest run in a log that is read once, after each of its last events. The zero value is ready
// to use.
type Chains struct {
	known      map[string]bool // the invocation IDs so far
	invocation string          // the newest of them
	chain      session.Chain
	recent     []link // the last events, oldest first
}

// link is one event of a chain.
type link struct {
	chain   session.Chain // up to the event
	address session.Address
}

// maxRecent is how many of the last events a Chains has at least. In a parallel agent, events of other branches may stand
// between a loop's last event and its stop record.
const maxRecent = 256

// Add adds the next event of the log, and its canonical JSON.
func (c *Chains) Add(ev *session.Event, data []byte) {
	if c.known == nil {
		c.known = make(map[string]bool)
	}
	if !c.known[ev.InvocationID] {
		c.known[ev.InvocationID] = true
		c.invocation, c.chain, c.recent = ev.InvocationID, session.Chain{}, nil
	}
	c.chain.AddData(ev.Seq, data)
	if len(c.recent) == 2*maxRecent {
		c.recent = slices.Delete(c.recent, 0, maxRecent)
	}
	c.recent = append(c.recent, link{c.chain, ev.Address})
}

// All is the number of events that stands for all events of a run so far.
const All = math.MaxInt64

// At returns the chain over the first n events of a run, or over all if there are fewer. ok is false if c does not have it.
func (c *Chains) At(invocation string, n int64) (_ session.Chain, ok bool) {
	n = min(n, c.chain.Events)
	i := len(c.recent) - 1 - int(c.chain.Events-n)
	if c.invocation != invocation || i < 0 || i >= len(c.recent) {
		return session.Chain{}, false
	}
	return c.recent[i].chain.Copy(), true
}

// Of does what At does, and computes the chain from the events of the session if c does not have it. It fails for events that
// JSON cannot hold.
func (c *Chains) Of(events iter.Seq[*session.Event], invocation string, n int64) (session.Chain, error) {
	if chain, ok := c.At(invocation, n); ok {
		return chain, nil
	}
	chain, _, err := ChainOf(events, invocation, n)
	return chain, err
}

// Stop returns the seal of a loop's stop record that says that it was computed from the first n events of its run. ok is
// false if c does not have them, or if the loop has an event after them.
func (c *Chains) Stop(stop *session.Event, n int64) (seal string, ok bool) {
	chain, ok := c.At(stop.InvocationID, n)
	later := c.recent[max(0, len(c.recent)-int(c.chain.Events-chain.Events)):]
	if !ok || slices.ContainsFunc(later, func(l link) bool { return l.address.Under(stop.Address) }) {
		return "", false
	}
	seal, err := StopOf(chain, stop)
	return seal, err == nil
}

// ChainOf returns the chain over the first n events of a run, which are those of its session from the first one with its
// invocation ID on. If there are fewer, it covers all. later has the addresses of the events after them. ChainOf fails for
// events that JSON cannot hold.
func ChainOf(events iter.Seq[*session.Event], invocation string, n int64) (c session.Chain, later []session.Address, err error) {
	for ev := range events {
		switch {
		case c.Events == 0 && ev.InvocationID != invocation:
		case c.Events >= n:
			later = append(later, ev.Address)
		default:
			if err := c.Add(ev); err != nil {
				return c, nil, err
			}
		}
	}
	return c, later, nil
}
