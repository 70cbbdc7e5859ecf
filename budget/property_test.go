// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

// prices of the models "a" and "b" are whole billionths a token, so that sums
// come out even; "c" has none.
var prices = budget.Prices{"a": {Input: 3, Output: 15}, "b": {Input: 0.5, Output: 2, CachedInput: 0.125}}

// node is a budget of a random tree with what it is expected to be.
type node struct {
	*budget.Meter
	parent *node
	limits budget.Limits

	mu       sync.Mutex
	used     budget.Usage // but for cost
	cost     int64        // in billionths
	unpriced bool
}

func (n *node) costed() bool { return n != nil && (n.limits.Cost != nil || n.parent.costed()) }

// book takes note of a commit.
func (n *node) book(u budget.Usage, cost int64, priced bool) {
	u.Cost = nil
	for at := n; at != nil; at = at.parent {
		at.mu.Lock()
		at.used.Calls += u.Calls
		at.used.InputTokens += u.InputTokens
		at.used.OutputTokens += u.OutputTokens
		at.cost += cost
		at.unpriced = at.unpriced || !priced
		at.mu.Unlock()
	}
}

func randomTree(rng *rand.Rand) []*node {
	limits := func() (l budget.Limits) {
		if rng.IntN(2) == 0 {
			l.Calls = 1 + rng.Int64N(30)
		}
		if rng.IntN(2) == 0 {
			l.Tokens = 1 + rng.Int64N(6000)
		}
		if rng.IntN(4) == 0 {
			l.Cost = new(float64(rng.IntN(50_000_000)) / 1e9)
		}
		return l
	}
	l := limits()
	nodes := []*node{{Meter: budget.New(l, prices), limits: l}}
	for range rng.IntN(8) {
		p, l := nodes[rng.IntN(len(nodes))], limits()
		nodes = append(nodes, &node{Meter: p.Child(l), parent: p, limits: l})
	}
	return nodes
}

// worker is a branch that makes calls, with its own luck.
type worker struct {
	*testing.T
	rng   *rand.Rand
	nodes []*node
	open  []func() // what it has under way
	holds []*budget.Hold
}

var errFailed = errors.New("failed")

func (w *worker) run() {
	defer func() { // a failure or the end of the context: what is open is closed
		if p := recover(); p != nil && p != errFailed {
			panic(p)
		}
		for _, end := range w.open {
			end()
		}
		for _, h := range w.holds {
			h.Release()
			if w.rng.IntN(2) == 0 {
				h.Release()
			}
		}
	}()
	for range 1 + w.rng.IntN(12) {
		n := w.nodes[w.rng.IntN(len(w.nodes))]
		runtime.Gosched()
		switch w.rng.IntN(20) {
		case 0:
			panic(errFailed)
		case 1:
			return // canceled
		case 2, 3:
			h := n.Hold(w.rng.Float64() / 2)
			w.holds = append(w.holds, h)
			w.call(n, h.Budget())
		case 4:
			if i := len(w.holds) - 1; i >= 0 {
				w.holds[i].Release()
				w.holds = w.holds[:i]
			}
		case 5:
			if len(w.open) > 0 {
				i := w.rng.IntN(len(w.open))
				w.open[i]()
			}
		default:
			w.call(n, n.Meter)
		}
	}
}

// call asks for a call under a budget that is n's or one for the last call of
// n, and mostly ends it at once.
func (w *worker) call(n *node, b *budget.Meter) {
	req := budget.Request{Model: []string{"a", "b", "p/b", "c"}[w.rng.IntN(4)], InputTokens: w.rng.Int64N(400), OutputTokens: w.rng.Int64N(400)}
	if w.rng.IntN(2) == 0 {
		req.MinOutputTokens = 1 + w.rng.Int64N(100)
	}
	if w.rng.IntN(2) == 0 { // the provider keeps what it is asked
		req.CachedTokens = w.rng.Int64N(req.InputTokens + 1)
		req.CacheWrite = w.rng.IntN(2) == 0
		req.CacheWrite1h = req.CacheWrite && w.rng.IntN(2) == 0
	}
	price, priced := prices.Of(req.Model)
	room, err := b.Reserve(req)
	if err != nil {
		_, unpriced := errors.AsType[*budget.UnknownPriceError](err)
		if unpriced != (n.costed() && !priced) || !unpriced && !errors.Is(err, budget.ErrExceeded) {
			w.Errorf("%+v: %v", req, err)
		}
		return
	}
	if room.InputTokens != req.InputTokens || room.OutputTokens > req.OutputTokens || room.OutputTokens < req.OutputTokens &&
		room.OutputTokens < req.MinOutputTokens {
		w.Errorf("%+v: got room for %d, %d", req, room.InputTokens, room.OutputTokens)
	}
	used := budget.Usage{Calls: 1, InputTokens: w.rng.Int64N(room.InputTokens + 1), OutputTokens: w.rng.Int64N(room.OutputTokens + 1)}
	whole := w.rng.IntN(2) == 0 // as much as was reserved
	if whole {
		used.InputTokens, used.OutputTokens = room.InputTokens, room.OutputTokens
	}
	w.cached(req, &used, whole)
	cost := int64(math.Round(1e9 * price.Cost(used)))
	commit, ended := w.rng.IntN(4) > 0, false
	end := func() {
		if !ended && commit {
			n.book(used, cost, priced)
		}
		ended = true
		if commit {
			room.Commit(used)
		}
		room.Release()
		room.Commit(used) // too late
	}
	if w.open = append(w.open, end); w.rng.IntN(4) > 0 {
		end()
	}
}

// cached divides the input that was used: at least as much as was expected comes from the cache, and some of the rest
// is written into it, or all of it, if the call may do that.
func (w *worker) cached(req budget.Request, u *budget.Usage, all bool) {
	u.CachedTokens = min(req.CachedTokens, u.InputTokens)
	if !all {
		u.CachedTokens += w.rng.Int64N(u.InputTokens - u.CachedTokens + 1)
	}
	rest := u.InputTokens - u.CachedTokens
	switch {
	case req.CacheWrite1h && all:
		u.CacheWrite1hTokens = rest
	case req.CacheWrite && all:
		u.CacheWriteTokens = rest
	case req.CacheWrite:
		u.CacheWriteTokens = w.rng.Int64N(rest + 1)
	}
}

// check says what is wrong with a budget at any time.
func (n *node) check() error {
	u := n.Used()
	switch l := n.limits; {
	case l.Calls != 0 && u.Calls > l.Calls:
		return fmt.Errorf("%d calls of %d", u.Calls, l.Calls)
	case l.Tokens != 0 && u.Tokens() > l.Tokens:
		return fmt.Errorf("%d tokens of %d", u.Tokens(), l.Tokens)
	case l.Cost != nil && u.Cost != nil && *u.Cost > *l.Cost:
		return fmt.Errorf("%v of %v", *u.Cost, *l.Cost)
	case l.Cost != nil && u.Cost == nil && u.Calls > 0:
		return errors.New("a cost that is limited is unknown")
	}
	return nil
}

// checkDone says what is wrong when nothing is under way: whatever was reserved
// or held is there again, and each budget has used what was committed below it.
func (n *node) checkDone() error {
	u := n.Used()
	want := n.used
	if want.Calls > 0 && !n.unpriced {
		want.Cost = new(float64(n.cost) / 1e9)
	}
	if u.Calls != want.Calls || u.InputTokens != want.InputTokens || u.OutputTokens != want.OutputTokens || show(u.Cost) != show(want.Cost) {
		return fmt.Errorf("used %+v, cost %s; want %+v, cost %s", u, show(u.Cost), want, show(want.Cost))
	}
	calls, tokens, cost := int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64)
	for at := n; at != nil; at = at.parent {
		if l := at.limits.Calls; l != 0 {
			calls = min(calls, l-at.used.Calls)
		}
		if l := at.limits.Tokens; l != 0 {
			tokens = min(tokens, l-at.used.Tokens())
		}
		if l := at.limits.Cost; l != nil {
			cost = min(cost, int64(math.Round(*l*1e9))-at.cost)
		}
	}
	r := n.Remaining()
	got := [3]int64{math.MaxInt64, math.MaxInt64, math.MaxInt64}
	if r.Calls != nil {
		got[0] = *r.Calls
	}
	if r.Tokens != nil {
		got[1] = *r.Tokens
	}
	if r.Cost != nil {
		got[2] = int64(math.Round(*r.Cost * 1e9))
	}
	if got != [3]int64{calls, tokens, cost} {
		return fmt.Errorf("%v remain, want %v", got, [3]int64{calls, tokens, cost})
	}
	return nil
}

func show(f *float64) string {
	if f == nil {
		return "unknown"
	}
	return fmt.Sprint(*f)
}

// F10, LOOP 23: whatever nested budgets, parallel branches, failures and
// cancellations do, no budget is exceeded at any time; and when all is done
// nothing stays reserved or held, and each budget has used what those below it
// have. Each case is its seed.
func TestNoPathExceedsABudget(t *testing.T) {
	cases := longtest.N[uint64](1000, 10_000)
	refused := 0
	for seed := range cases {
		rng := rand.New(rand.NewPCG(seed, 23))
		nodes := randomTree(rng)
		var wg sync.WaitGroup
		for i := range 1 + rng.IntN(4) {
			w := &worker{T: t, nodes: nodes, rng: rand.New(rand.NewPCG(seed, uint64(i)))}
			wg.Go(w.run)
		}
		if seed%8 == 0 {
			for range 20 { // while they work
				for _, n := range nodes {
					if err := n.check(); err != nil {
						t.Errorf("seed %d: %v", seed, err)
					}
				}
			}
		}
		wg.Wait()
		for i, n := range nodes {
			if err := errors.Join(n.check(), n.checkDone()); err != nil {
				t.Fatalf("seed %d, budget %d, limits %+v: %v", seed, i, n.limits, err)
			}
			if n.Err() != nil {
				refused++
			}
		}
	}
	if refused == 0 {
		t.Error("no budget was ever spent: the cases are too tame")
	}
}
