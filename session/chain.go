// SPDX-License-Identifier: Apache-2.0

package session

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"sync"
)

// Chain is a hash chain over the events of a log from the first event of a run on. Each hash covers the hash before it and
// the canonical JSON of the next event, so the last hash covers all events and their order. The zero value is the chain of
// no events.
type Chain struct {
	Events int64 // how many events the chain covers
	Last   int64 // the Seq of the last of them

	sum    [sha256.Size]byte
	hasher hash.Hash // reused for each event; nil in a chain of no events
}

// ChainPrefix is the beginning of [Chain.String].
const ChainPrefix = "chain:"

// Add adds the next event. It fails for an event that JSON cannot hold.
func (c *Chain) Add(ev *Event) error {
	data, err := ev.AppendCanonical(nil)
	if err == nil {
		c.AddData(ev.Seq, data)
	}
	return err
}

// AddData adds the next event by its Seq and its [Event.AppendCanonical].
func (c *Chain) AddData(seq int64, data []byte) {
	c.sum = c.next(data)
	c.Events, c.Last = c.Events+1, seq
}

// next returns the hash that follows the last one.
func (c *Chain) next(data []byte) (sum [sha256.Size]byte) {
	if c.hasher == nil {
		c.hasher = sha256.New()
	}
	c.hasher.Reset()
	c.hasher.Write(c.sum[:])
	c.hasher.Write(data)
	c.hasher.Sum(sum[:0])
	return sum
}

// Copy returns a chain that can be continued separately.
func (c *Chain) Copy() Chain { return Chain{Events: c.Events, Last: c.Last, sum: c.sum} }

// String returns the last hash, as [ChainPrefix] and 64 hexadecimal digits.
func (c *Chain) String() string { return ChainPrefix + hex.EncodeToString(c.sum[:]) }

// runChain is the chain of the run that a view belongs to. A view and the views rewound from it share their runChain, and
// each event that one of them gets is added once.
type runChain struct {
	mu         sync.Mutex
	invocation string // the run; "" until a caller asks for a chain
	first      int64  // the Seq of the run's first event
	chain      Chain
	started    bool  // Chain was called, so new events are added
	err        error // of the first event that has no JSON
	buf        []byte
}

// SetRunStart tells the view the sequence number of the first event of a run, which need not be in the log yet, so that
// [View.Chain] need not search for it. A runner calls it.
func (v *View) SetRunStart(invocation string, first int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := v.sharedChain()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.invocation != invocation || c.first != first {
		c.reset(invocation, first)
	}
}

// AddToChain adds an event of the log, which may be an outline, to the chain of a run, if it is the next one. A runner that
// reads the log from the run's first event on calls it for each event, so that [View.Chain] reads nothing.
func (v *View) AddToChain(invocation string, ev *Event) {
	v.mu.Lock()
	c, log := v.sharedChain(), Log{window: v.log.window}
	v.mu.Unlock()
	if c.start(invocation, ev.Seq) == ev.Seq {
		c.add(log.Full(ev))
	}
}

// start makes the chain that of a run whose first event has the sequence number first, if it is that of another run. It
// returns the Seq of the first event that the chain lacks.
func (c *runChain) start(invocation string, first int64) (next int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.invocation != invocation {
		c.reset(invocation, first)
	}
	c.started = true
	return c.chain.Last + 1
}

// isOf reports whether the chain is that of a run.
func (c *runChain) isOf(invocation string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.invocation == invocation
}

func (c *runChain) reset(invocation string, first int64) {
	c.invocation, c.first, c.chain, c.started, c.err = invocation, first, Chain{Last: first - 1}, false, nil
}

// sharedChain returns the chain of the view, and makes it if there is none. It makes a new one if the present one has events
// that the view lacks, such as the events of a batch that a rewound view has shown and that could not be stored. v.mu is held.
func (v *View) sharedChain() *runChain {
	if v.chain == nil {
		v.chain = new(runChain)
	}
	old := v.chain
	old.mu.Lock()
	defer old.mu.Unlock()
	if old.chain.Last > v.seq.Load() {
		v.chain = new(runChain)
		v.chain.reset(old.invocation, old.first)
	}
	return v.chain
}

// Chain returns the chain over the events of the log from the first event of a run on, including superseded events and
// those that a rewound view does not show yet. The first call reads these events. The view adds later events as they are
// appended, so further calls read nothing. Chain fails if the store cannot read an event, and if JSON cannot hold one.
func (v *View) Chain(invocation string) (Chain, error) {
	v.mu.Lock()
	c, log, last := v.sharedChain(), Log{window: v.log.window}, v.seq.Load()
	v.mu.Unlock()
	first := int64(0)
	if !c.isOf(invocation) {
		first = firstOf(&log, invocation, last)
	}
	c.readTo(&log, c.start(invocation, first), last)
	if err := log.err(); err != nil {
		return Chain{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && c.chain.Last < last {
		c.err = fmt.Errorf("hash the events of run %q: the view lacks event %d", c.invocation, c.chain.Last+1)
	}
	return c.chain.Copy(), c.err
}

// firstOf returns the Seq of the first event of a run, or the next Seq if the log has no event of the run.
func firstOf(log *Log, invocation string, last int64) int64 {
	for ev := range log.Outline() {
		if ev.InvocationID == invocation {
			return ev.Seq
		}
	}
	return last + 1
}

// readTo adds the events of the log from the Seq next to the Seq last. Others may add events meanwhile: it does not hold c.mu
// while it reads from the store.
func (c *runChain) readTo(log *Log, next, last int64) {
	for i := max(0, log.Len()-int(last-next+1)); i < log.Len(); i++ {
		ev := log.Full(log.At(i))
		c.mu.Lock()
		if ev.Seq > c.chain.Last {
			c.takeEvent(ev)
		}
		c.mu.Unlock()
	}
}

// takeEvent adds an event. c.mu is held.
func (c *runChain) takeEvent(ev *Event) {
	if c.err != nil {
		return
	}
	if c.buf, c.err = ev.AppendCanonical(c.buf[:0]); c.err == nil {
		c.chain.AddData(ev.Seq, c.buf)
	}
	if cap(c.buf) > 64<<10 { // of a long text
		c.buf = nil
	}
}

// add adds an event that was appended to a view, if it is the next one. Chain reads an event that is not. The receiver may
// be nil.
func (c *runChain) add(ev *Event) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started && ev.Seq == c.chain.Last+1 && ev.Omitted == 0 {
		c.takeEvent(ev)
	}
}
