// SPDX-License-Identifier: Apache-2.0

//go:build linux

package temporal_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
	"github.com/refrain-dev/refrain/temporal"
)

var drawn = flag.Uint64("campaign", 0, "what the campaign draws from; 0 is another one each time")

// G7, G8, E4, E5: runs come to the end that they have when nobody disturbs them, whatever happens to
// their workers, the Temporal server and the database. Each effect takes place under one ID, and what
// must not happen twice does not.
func TestCampaign(t *testing.T) {
	k := newCampaign(t)
	k.undisturbed()
	hands, trials := 3, longtest.N(2, 3)
	for range hands {
		k.hire()
	}
	plan := k.plan()
	var shepherds sync.WaitGroup
	var live []*trial
	for len(plan) > 0 && !t.Failed() {
		live = slices.DeleteFunc(live, (*trial).over)
		for len(live) < trials {
			r := k.begin()
			live = append(live, r)
			shepherds.Go(r.shepherd)
		}
		r := live[k.dice.IntN(len(live))]
		if r.passes(1+k.dice.IntN(25)) || r.over() {
			continue
		}
		st := r.standing()
		if plan[0].do(k, r) {
			t.Logf("%s: %s %s, which was %s at %d", time.Now().Format(time.TimeOnly), plan[0].name, r.id, st.Run.Status, st.Seq)
			k.done[plan[0].name]++
			plan = plan[1:]
		}
	}
	shepherds.Wait()
	for _, r := range k.trials {
		r.judge()
	}
	slices.Sort(k.took)
	t.Logf("%d runs; %v; answers: %v; from a kill to the next event, %d times: %v", len(k.trials), k.done, k.answers,
		len(k.took), k.took)
}

// campaign is an attack on a cluster.
type campaign struct {
	*cluster
	db     *database
	folder string // the server's
	dice   *rand.Rand
	crew   map[string]*exec.Cmd // the workers that live
	hired  int
	trials []*trial
	want   sight // of a run without an attack
	done   map[string]int
	took   []time.Duration

	frozen sync.RWMutex // locked while a worker is, which goes on later with what it was about to do

	mu      sync.Mutex
	answers map[string]int
}

func newCampaign(t testing.TB) *campaign {
	folder := t.TempDir()
	c, db := newPostgresCluster(t, folder)
	if *drawn == 0 {
		*drawn = uint64(time.Now().UnixNano())
	}
	t.Logf("-campaign %d", *drawn)
	return &campaign{cluster: c, db: db, folder: folder, dice: rand.New(rand.NewPCG(*drawn, 1)),
		crew: make(map[string]*exec.Cmd), done: make(map[string]int), answers: make(map[string]int)}
}

// move is something that is done to a run or to what drives it. It reports whether it was.
type move struct {
	name  string
	times int
	do    func(*campaign, *trial) bool
}

// plan are the moves of a campaign, in any order.
func (k *campaign) plan() (all []move) {
	for _, m := range []move{
		{"kill", longtest.N(2, 38), (*campaign).kill},
		{"kill all", longtest.N(0, 4), (*campaign).killAll},
		{"freeze", longtest.N(1, 6), (*campaign).freeze},
		{"freeze all", longtest.N(0, 1), (*campaign).freezeAll},
		{"Temporal away", longtest.N(1, 8), (*campaign).temporalAway},
		{"database away", longtest.N(1, 4), (*campaign).databaseAway},
		{"database away for long", longtest.N(0, 1), (*campaign).databaseAwayForLong},
		{"roll over", longtest.N(1, 4), (*campaign).rollOver},
		{"pause", longtest.N(1, 5), (*campaign).pause},
		{"kill and pause", longtest.N(1, 8), (*campaign).killAndPause},
		{"terminate", longtest.N(1, 3), (*campaign).terminate},
	} {
		for range m.times {
			all = append(all, m)
		}
	}
	k.dice.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// hire starts a worker.
func (k *campaign) hire() {
	k.Helper()
	k.hired++
	name := fmt.Sprint("hand", k.hired)
	k.crew[name] = k.process(name)
}

// driver is the worker that drives a run; "" if none does.
func (k *campaign) driver(r *trial) string {
	held, err := k.sup.Driver(k.Context(), r.id)
	if err != nil || held == nil {
		return ""
	}
	_, name, _ := strings.Cut(held.Owner, " by ")
	if k.crew[name] == nil {
		return "" // it was killed before
	}
	return name
}

func (k *campaign) kill(r *trial) bool {
	name := k.driver(r)
	if name == "" {
		return false
	}
	time.Sleep(time.Duration(k.dice.Int64N(int64(200 * time.Millisecond)))) // in the middle of something
	at := time.Now()
	k.end(name, syscall.SIGKILL)
	if st := r.standing(); st.Run.Status == mark.RunRunning && k.dice.IntN(3) > 0 { // else the next attack comes at once
		if again := r.taken(st.Seq); !again.IsZero() {
			k.took = append(k.took, again.Sub(at).Round(10*time.Millisecond))
		}
	}
	k.hire()
	return true
}

// end ends a worker, which frees its name.
func (k *campaign) end(name string, sig syscall.Signal) {
	k.Helper()
	cmd := k.crew[name]
	delete(k.crew, name)
	if err := cmd.Process.Signal(sig); err != nil {
		k.Error(err)
	}
	if err := cmd.Wait(); err != nil && sig != syscall.SIGKILL {
		k.Errorf("worker %s: %v", name, err)
	}
}

func (k *campaign) killAll(*trial) bool {
	n := len(k.crew)
	for name := range k.crew {
		k.end(name, syscall.SIGKILL)
	}
	for range n {
		k.hire()
	}
	return true
}

// freeze stops the worker of a run until somebody else has taken that. Then it goes on where it was.
func (k *campaign) freeze(r *trial) bool {
	name := k.driver(r)
	if name == "" {
		return false
	}
	thaw := k.stopped(name)
	defer thaw()
	for st := r.standing(); st.Run.Status == mark.RunRunning && k.driver(r) == name; st = r.standing() {
		r.next(st.Seq)
	}
	r.passes(1 + k.dice.IntN(5))
	return true
}

// freezeAll stops all workers for longer than a lease lasts.
func (k *campaign) freezeAll(*trial) bool {
	thaw := k.stopped(slices.Sorted(maps.Keys(k.crew))...)
	defer thaw()
	time.Sleep(33 * time.Second)
	return true
}

// stopped freezes workers.
func (k *campaign) stopped(names ...string) (thaw func()) {
	sign := filepath.Join(k.dir, "frozen")
	k.frozen.Lock()
	if err := os.WriteFile(sign, nil, 0o600); err != nil {
		k.Error(err)
	}
	for _, name := range names {
		if err := k.crew[name].Process.Signal(syscall.SIGSTOP); err != nil {
			k.Error(err)
		}
	}
	return func() {
		for _, name := range names {
			if err := k.crew[name].Process.Signal(syscall.SIGCONT); err != nil {
				k.Error(err)
			}
		}
		time.Sleep(500 * time.Millisecond) // nothing tells that what was about to begin has begun
		_ = os.Remove(sign)
		k.frozen.Unlock()
	}
}

// temporalAway kills the Temporal server, which comes back where it was.
func (k *campaign) temporalAway(*trial) bool {
	k.stop()
	time.Sleep(500*time.Millisecond + time.Duration(k.dice.Int64N(int64(longtest.N(2*time.Second, 15*time.Second)))))
	k.serve(k.folder)
	return true
}

func (k *campaign) databaseAway(*trial) bool {
	return k.withoutDatabase(longtest.N(2*time.Second, 10*time.Second))
}

// databaseAwayForLong is longer than leases last, and than the store waits.
func (k *campaign) databaseAwayForLong(*trial) bool { return k.withoutDatabase(40 * time.Second) }

func (k *campaign) withoutDatabase(d time.Duration) bool {
	k.db.do("down")
	time.Sleep(d)
	k.db.do("up")
	return true
}

// rollOver replaces the workers one by one.
func (k *campaign) rollOver(*trial) bool {
	for _, name := range slices.Sorted(maps.Keys(k.crew)) {
		k.hire()
		k.end(name, syscall.SIGTERM)
	}
	return true
}

// pause is a person's, who is heeded: no worker drives the run before that is resumed.
func (k *campaign) pause(r *trial) bool { return k.paused(r, func() {}) }

// killAndPause is pause while the run is nobody's.
func (k *campaign) killAndPause(r *trial) bool {
	name := k.driver(r)
	return name != "" && k.paused(r, func() {
		k.end(name, syscall.SIGKILL)
		k.hire()
	})
}

func (k *campaign) paused(r *trial, first func()) bool {
	do := []string{temporal.Pause, temporal.PauseNow}[k.dice.IntN(2)]
	r.rests.Store(true)
	defer r.rests.Store(false)
	first()
	var err error
	switch {
	case k.dice.IntN(2) == 0:
		_, err = temporal.Ask(k.Context(), k.Client, r.id, temporal.Request{Do: do, Reason: "lunch"}, options)
	case do == temporal.Pause:
		err = k.sup.Pause(k.Context(), r.id, "lunch")
	default:
		err = k.sup.PauseNow(k.Context(), r.id, "lunch")
	}
	if err != nil { // it has ended, or waits
		return !k.unless(err, supervisor.ErrOver, supervisor.ErrPaused)
	}
	st := r.standing()
	for !st.Run.Status.IsFinal() && st.Run.Status == mark.RunRunning || st.Run.HandOver {
		r.next(st.Seq)
		st = r.standing()
	}
	if st.Run.Status != mark.RunIsPaused {
		return false // its end, or a question, came first
	}
	// Now everything has a reason to look at the run: nobody takes it.
	if err := temporal.Wake(k.Context(), k.Client, r.id, options); err != nil {
		k.Error(err)
	}
	k.end(slices.Sorted(maps.Keys(k.crew))[0], syscall.SIGKILL)
	k.hire()
	if now := r.standing(); now.Seq != st.Seq || now.Run.Status != mark.RunIsPaused {
		k.Errorf("run %s was paused by a person, and then it was %+v", r.id, now)
	}
	if _, err := temporal.Ask(k.Context(), k.Client, r.id, temporal.Request{Do: temporal.Resume}, options); err != nil {
		k.Errorf("resume run %s: %v", r.id, err)
	}
	return true
}

// unless reports an error of another kind. It returns true for one of these.
func (k *campaign) unless(err error, known ...error) bool {
	k.Helper()
	for _, kind := range known {
		if errors.Is(err, kind) {
			return true
		}
	}
	k.Error(err)
	return false
}

// terminate ends the workflow of a run: the next one goes on with it.
func (k *campaign) terminate(r *trial) bool {
	if err := k.TerminateWorkflow(k.Context(), r.id, "", "campaign"); err != nil {
		return false // it is over
	}
	if err := temporal.Wake(k.Context(), k.Client, r.id, options); err != nil {
		k.Error(err)
	}
	return true
}

var options = temporal.Options{Heartbeat: 2 * time.Second}

// undisturbed finds out what is wanted of every run.
func (k *campaign) undisturbed() {
	k.Helper()
	r := k.trial()
	r.alone = k.supervisor("nobody else")
	if _, err := r.alone.Start(k.Context(), r.request()); err != nil {
		k.Fatal(err)
	}
	r.shepherd()
	r.judge()
	if k.want = r.saw; len(k.want.jobs) != 21 || len(k.want.iterations) != 9 {
		k.Fatalf("the undisturbed run has done %+v", k.want)
	}
}
