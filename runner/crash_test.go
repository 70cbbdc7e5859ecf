// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/internal/history/progress/verify"
	"github.com/refrain-dev/refrain/internal/seal/statekey"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/store"
)

// outcome is what a run comes to, whether it was cut off on the way or not.
type outcome struct {
	Err        string
	State      map[string]any
	Iterations map[session.Address][]loop.IterationRecord
	Stops      map[session.Address][]loop.StopRecord
	Ended      map[session.Address]int // how often a step came to its end
	Said       map[session.Address][]string
}

// process is one that runs a tree on the sessions of a store.
type process struct {
	testing.TB
	*world
	*runner.Runner
	store session.Service
	id    string // of the run
}

func startProcess(t testing.TB, seed uint64, store session.Service) *process {
	t.Helper()
	root, w := grow(t, seed)
	return &process{TB: t, world: w, store: store, Runner: newRunner(t, runner.Config{Agent: root, SessionService: swaying{store}, Durable: true})}
}

// swaying is a store that lets others run before and behind each append, so that
// whatever can come between does: a sibling that fails, a cancellation.
type swaying struct{ session.Service }

func (s swaying) AppendEvent(ctx context.Context, to session.Session, ev *session.Event) error {
	sway()
	defer sway()
	return s.Service.AppendEvent(ctx, to, ev)
}

// AppendEvents is AppendEvent for several.
func (s swaying) AppendEvents(ctx context.Context, to session.Session, evs []*session.Event) error {
	sway()
	defer sway()
	return s.Service.(store.BulkAppender).AppendEvents(ctx, to, evs)
}

// Commits is now and then true: then the runner stores several events at once.
func (s swaying) Commits() bool { return rand.IntN(2) == 0 }

// sway lets others run, or not.
func sway() {
	for range rand.IntN(4) * rand.IntN(4) {
		runtime.Gosched()
	}
}

// lock locks the goroutine to its thread, or not, as code with cgo does. An agent may leave it so.
func lock() {
	if rand.IntN(8) == 0 {
		for range 1 + rand.IntN(5) {
			runtime.LockOSThread()
		}
	}
}

// consumer is a goroutine that ranges over a run, which it must not leave.
type consumer string

func here() consumer {
	var b [64]byte
	name, _, _ := strings.Cut(string(b[:runtime.Stack(b[:], false)]), "[")
	return consumer(name)
}

// hears is the body of a loop over a run, which locks its thread now and then.
func (c consumer) hears(t testing.TB) {
	if now := here(); now != c {
		t.Errorf("the body of the loop over a run is in %s, want %s", now, c)
	}
	if lock(); rand.IntN(4) == 0 {
		runtime.UnlockOSThread()
	}
}

// first runs the tree in a new session.
func (p *process) first() (err error) {
	p.Helper()
	at, me := rand.IntN(30), here()
	for ev, e := range p.Run(p.Context(), "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
		me.hears(p)
		if err = e; ev != nil {
			if p.id = ev.InvocationID; at == 0 {
				p.intrude(p.id)
			}
			at--
		}
	}
	return err
}

// again resumes the run, and demands that what it yields is what is new.
func (p *process) again(id string) (fresh []*session.Event, err error) {
	p.Helper()
	seq, at, me := p.log()[len(p.log())-1].Seq, rand.IntN(10), here()
	for ev, e := range p.Resume(p.Context(), "ana", "s1", id, agent.RunConfig{}) {
		me.hears(p)
		if err = e; ev != nil {
			if seq++; ev.Seq != seq {
				p.Fatalf("Resume yields event %d, want %d, the next one", ev.Seq, seq)
			}
			if fresh = append(fresh, ev); len(fresh) == at {
				p.intrude(id)
			}
		}
	}
	return fresh, err
}

// log is all that was stored.
func (p *process) log() []*session.Event {
	return slices.Collect(get(p, p.store).(*session.View).Log().All())
}

// outcome reads off the log what the run came to.
func (p *process) outcome(err error) outcome {
	p.Helper()
	view := get(p, p.store)
	o := outcome{
		State: maps.Collect(view.State().All()), Iterations: make(map[session.Address][]loop.IterationRecord),
		Stops: make(map[session.Address][]loop.StopRecord), Ended: make(map[session.Address]int), Said: make(map[session.Address][]string),
	}
	if err != nil {
		o.Err = err.Error()
	}
	for ev := range view.Events().All() {
		if ev.Mark == nil {
			if ev.Text() != "" && !strings.HasPrefix(ev.Author, "loop") { // its result is said already
				o.Said[ev.Address] = append(o.Said[ev.Address], ev.Text())
			}
			continue
		}
		switch ev.Mark.Kind {
		case mark.KindStepFinished:
			o.Ended[ev.Address]++
		case mark.KindIterationFinished:
			o.Iterations[ev.Address] = append(o.Iterations[ev.Address], decode[loop.IterationRecord](p, ev.Mark))
		case mark.KindLoopStopped:
			o.Stops[ev.Address] = append(o.Stops[ev.Address], decode[loop.StopRecord](p, ev.Mark))
		}
	}
	return o
}

func decode[T any](t testing.TB, m *mark.Mark) (v T) {
	t.Helper()
	if err := m.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// crashed is a store in which the log ends behind so many events. Every other
// time they have been through JSON, as in a database.
func crashed(t testing.TB, initial map[string]any, log []*session.Event, k int) session.Service {
	t.Helper()
	store := session.InMemoryService()
	made, err := store.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "s1", State: initial})
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range log[:k] {
		c := *ev
		if k%2 == 0 {
			c = session.Event{}
			data, err := json.Marshal(ev)
			if err == nil {
				err = json.Unmarshal(data, &c)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := store.AppendEvent(t.Context(), made.Session, &c); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// times leaves out what need not be twice the same: times, the seal over them, and
// the size of a state that branches are writing to.
var times = cmp.Options{
	cmpopts.IgnoreFields(loop.StopRecord{}, "Elapsed", "Events", "Digest", "StateSize"),
	cmpopts.IgnoreFields(loop.IterationRecord{}, "StateSize"),
}

// checkFold demands that every fold of the log comes to the state: that of all
// events, and that of those which count. And that every stop record agrees with
// the events that it is about.
func (p *process) checkFold(initial map[string]any) {
	p.Helper()
	view := get(p, p.store).(*session.View)
	for _, seal := range verify.Of(view.Log().All()).Loops() {
		if seal.Problem != "" {
			p.Errorf("the stop record of %s, event %d: %s", seal.Loop, seal.Seq, seal.Problem)
		}
	}
	want := statekey.OwnState(view.State())
	for what, events := range map[string]session.Events{"all events": view.Log(), "the events that count": view.Events()} {
		got := make(map[string]any)
		for k, v := range initial {
			if statekey.Own(k) {
				got[k] = v
			}
		}
		for ev := range events.All() {
			for k, v := range ev.Actions.StateDelta {
				switch {
				case !statekey.Own(k):
				case v == nil:
					delete(got, k)
				default:
					got[k] = v
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			p.Errorf("the fold of %s (-state +fold):\n%s", what, diff)
		}
	}
}

// checkWork demands that whatever ran came to its end, once, and that no model was
// asked for what was in the log.
func (p *process) checkWork(fresh []*session.Event) {
	p.Helper()
	ended, answers := make(map[session.Address]int), 0
	for _, ev := range fresh {
		switch {
		case ev.Mark != nil && ev.Mark.Kind == mark.KindStepFinished && strings.HasPrefix(ev.Address.Agent(), "leaf"):
			ended[ev.Address]++
		case ev.Content != nil && ev.Content.Role == genai.RoleModel && strings.HasPrefix(ev.Author, "llm") && ev.UsageMetadata != nil:
			answers++
		}
	}
	for at, n := range p.ran {
		if ended[at] < n {
			p.Errorf("%s ran %d times and came to its end %d times", at, n, ended[at])
		}
	}
	if p.asked != answers {
		p.Errorf("the model was asked %d times for %d answers", p.asked, answers)
	}
}

// LOOP 30: a run that is cut off anywhere, and resumed, and cut off again,
// comes to what it comes to without that.
func TestResumeFromAnywhere(t *testing.T) {
	points, trees, looked := 0, 0, 0
	initial := map[string]any{"k0": "before", "text": "first", "user:name": "Ana"}
	for seed := range seeds(t) {
		p := startProcess(t, seed, crashed(t, initial, nil, 0))
		want := p.outcome(p.first())
		p.checkFold(nil)
		log := p.log()
		if len(log) > 90 && seed%50 > 0 { // big ones take long and show little
			continue
		}
		trees++
		dice := rand.New(rand.NewPCG(seed, 6))
		for _, k := range cuts(dice, len(log)) {
			points++
			name := fmt.Sprintf("seed %d, %d of %d events", seed, k, len(log))
			if !t.Run(name, func(t *testing.T) { looked += resumeFrom(t, seed, initial, p, log, k, want, dice) }) {
				t.Fatalf("the log of %s:\n%s", name, strings.Join(brief(log), "\n"))
			}
		}
	}
	t.Logf("%d trees, cut off at %d points; %d times it was found out what became of a payment", trees, points, looked)
}

// cuts are the points at which a log is cut: all, or some of a long one.
func cuts(dice *rand.Rand, n int) []int {
	all := dice.Perm(n - 1)
	all = all[:min(len(all), 14)]
	for i := range all {
		all[i]++ // without the user's message there is no run
	}
	return slices.Sorted(slices.Values(all))
}

var (
	manyTrees = flag.Uint64("trees", longtest.N[uint64](20, 360), "how many random trees are cut off and resumed")
	firstTree = flag.Uint64("first-tree", 0, "the seed of the first of them")
)

// seeds are those of the trees.
func seeds(t *testing.T) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for seed := *firstTree; seed < *firstTree+*manyTrees && yield(seed); seed++ {
		}
	}
}

func resumeFrom(t *testing.T, seed uint64, initial map[string]any, before *process, log []*session.Event, k int, want outcome, dice *rand.Rand) (looked int) {
	id := before.id
	for round := range 2 {
		p := startProcess(t, seed, crashed(t, initial, log, k))
		p.atCrash(&before.ledger, log[:k], dice)
		before = p
		fresh, err := p.again(id)
		got := p.outcome(err)
		check := func(got, want outcome, what string) {
			t.Helper()
			if diff := cmp.Diff(want, got, times); diff != "" {
				t.Errorf("%s (-whole +resumed):\n%s", what, diff)
			}
		}
		check(got, want, fmt.Sprintf("cut off %d times", round+1))
		p.checkFold(initial)
		p.checkWork(fresh)
		if t.Failed() {
			t.Fatalf("the log when it was cut off:\n%s\nand then:\n%s", strings.Join(brief(log[:k]), "\n"), strings.Join(brief(fresh), "\n"))
		}
		looked += p.looked
		if k%2 == 0 {
			return looked
		}
		// Once more, in the middle of what was new.
		log = p.log()
		k += 1 + dice.IntN(len(log)-k)
		if k >= len(log) {
			return looked
		}
	}
	return looked
}

func brief(evs []*session.Event) []string {
	var all []string
	for _, ev := range evs {
		line := fmt.Sprintf("%d %s#%d: %s", ev.Seq, ev.Address, ev.Attempt, ev.Text())
		if ev.Mark != nil {
			line = fmt.Sprintf("%d %s#%d %s %s", ev.Seq, ev.Address, ev.Attempt, ev.Mark.Kind, ev.Mark.Data)
		}
		if len(ev.Actions.StateDelta) > 0 {
			line += fmt.Sprint(" ", ev.Actions.StateDelta)
		}
		all = append(all, line)
	}
	return all
}
