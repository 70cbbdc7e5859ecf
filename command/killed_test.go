// SPDX-License-Identifier: Apache-2.0

//go:build linux

package command

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/session/mark"
)

var seed = flag.Uint64("seed", 0, "what the tests that kill runs draw from; 0 is another one each time")

// LOOP 23, 30, 31, 33, G7, G8, E5: whatever ends the process of a run, and wherever its
// log is taken, the run comes to its end when it is resumed. From outside it is seen
// that no effect happens under two IDs, that what must not happen twice does not, and
// that no more is asked of models than the budget allows.
func TestKilledRunsKeepTheirPromises(t *testing.T) {
	known := adopt(t)
	k := newAttack(t, "refrain", t.TempDir(), *seed)
	k.known = known
	began := time.Now()
	k.life("whole", 100, nil)
	k.took = time.Since(began)
	if n := k.w.askedBy("whole"); n < 24 || n > 36 {
		t.Errorf("an uninterrupted run asks its models %d times", n)
	}
	for i := 1; k.stopped < *kills/2 && !t.Failed(); i++ {
		k.life(fmt.Sprint("r", i), 8+k.dice.IntN(30), k.dice)
	}
	t.Logf("%d stops in %d runs, of which %v", k.stopped, k.runs, k.counts)
}

// attack runs the clerk's loop, and stops it.
type attack struct {
	*refrains
	w       *witness
	dice    *rand.Rand
	took    time.Duration
	stopped int
	runs    int
	counts  map[string]int
}

func newAttack(t testing.TB, binary, dir string, seed uint64) *attack {
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	w := newWitness(t, dir)
	return &attack{
		refrains: &refrains{
			TB: t, dir: dir, binary: binary, store: "sqlite:runs.db", env: []string{"OPENAI_BASE_URL=" + w.url + "/v1"},
		},
		w: w, dice: rand.New(rand.NewPCG(seed, 1)), counts: make(map[string]int),
	}
}

// branch is a run, with what it was moved to by export and import. A fork is another.
type branch struct {
	id, run      string
	calls        int // of its budget
	done         []effect
	asked, kills int
	begun        map[string]string // of a fork: jobs of calls that the old run had begun, with their IDs
	forks, moves int
}

// life begins a run and takes it, and what is made of it, to the end. With dice it is
// stopped on the way.
func (k *attack) life(name string, calls int, dice *rand.Rand) {
	k.Helper()
	writeClerk(k, k.dir, k.w.url, calls)
	branches := []*branch{{id: name, run: name, calls: calls}}
	for i := 0; i < len(branches) && !k.Failed(); i++ {
		b := branches[i]
		k.runs++
		for try := 0; !k.Failed() && !k.drive(b, try, dice); try++ {
			if k.Failed() || dice == nil || k.stand(b.id) == nil {
				continue
			}
			if b.forks == 0 && dice.IntN(5) == 0 {
				if fork := k.fork(b, dice); fork != nil {
					branches = append(branches, fork)
				}
			}
			if b.moves < 2 && dice.IntN(5) == 0 {
				k.move(b, dice)
			}
		}
		k.finish(b)
	}
}

// drive lets a run go on until it ends or is stopped. It reports whether it has come to
// its end.
func (k *attack) drive(b *branch, try int, dice *rand.Rand) (over bool) {
	k.Helper()
	asked := k.w.askedBy(b.run)
	p, how := k.once(b, try, dice)
	k.quiet()
	b.done = append(b.done, k.w.fresh()...)
	b.asked += k.w.askedBy(b.run) - asked
	st := k.stand(b.id)
	switch {
	case st == nil && how != "":
		return false
	case st == nil:
		k.Errorf("%q left no run: exit code %d\n%s", p.args, p.code(), &p.stderr)
	case st.Status == string(mark.RunCompleted):
		return true
	case st.Status == string(mark.RunWaiting):
		k.answer(b.id, st)
		return false
	case st.Status == string(mark.RunFailed):
		k.Errorf("%q (%s): the run has failed: %s; exit code %d\n%s", p.args, how, st.Error, p.code(), &p.stderr)
	case how != "":
		return false
	default:
		k.Errorf("%q: nobody stopped the run, and it is %s; exit code %d\n%s", p.args, st.Status, p.code(), &p.stderr)
	}
	return true
}

// once runs refrain to its end, or stops it.
func (k *attack) once(b *branch, try int, dice *rand.Rand) (p *process, how string) {
	k.Helper()
	args := []string{"resume", b.id}
	if k.stand(b.id) == nil {
		args = []string{"run", fmt.Sprintf("loop%d.yaml", b.calls), "--session", b.id, "--set", "run=" + b.run}
	}
	p = k.start(append(args, "--grace", "50ms", "--exit-zero-on-limit")...)
	if dice != nil && try < 12 {
		// A run with a small budget ends sooner.
		how = k.stop(p, b.id, k.took*time.Duration(min(b.calls, 30))/30*3/4, dice)
	}
	k.end(p)
	if how == "kill" && p.code() < 0 {
		b.kills++
	}
	return p, how
}

// stop ends a process in one way or another, within some time.
func (k *attack) stop(p *process, id string, within time.Duration, dice *rand.Rand) (how string) {
	k.Helper()
	after := time.Duration(dice.Int64N(int64(within)))
	gap := time.Duration(dice.Int64N(int64(40 * time.Millisecond)))
	draw := dice.IntN(100)
	select {
	case <-p.ended:
		return ""
	case <-time.After(after):
	}
	signal := func(s syscall.Signal) { _ = p.Process.Signal(s) }
	switch {
	case draw < 35:
		how = "kill"
		signal(syscall.SIGKILL)
	case draw < 45:
		how = "int"
		signal(syscall.SIGINT)
	case draw < 57:
		how = "int twice"
		signal(syscall.SIGINT)
		time.Sleep(gap)
		signal(syscall.SIGINT)
	case draw < 65:
		how = "term"
		signal(syscall.SIGTERM)
	case draw < 72:
		how = "hup"
		signal(syscall.SIGHUP)
	case draw < 80:
		how = "pause"
		k.verb("pause", id)
	case draw < 92:
		how = "pause --now"
		k.verb("pause", id, "--now")
	case draw < 97:
		how = "cancel"
		k.verb("cancel", id)
	default:
		return ""
	}
	k.stopped++
	k.counts[how]++
	return how
}

// verb runs refrain beside the run that it is about.
func (k *attack) verb(args ...string) {
	k.Helper()
	p := k.do(args...)
	over := []string{"no run ", "there are no runs here", "has completed", "has failed", "has ended", "is paused already"}
	if p.code() != 0 && !oneOf(p.stderr.String(), over...) {
		k.Errorf("%q: exit code %d\n%s", args, p.code(), &p.stderr)
	}
}

func oneOf(text string, parts ...string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// quiet waits until nothing is at work that a process has left behind.
func (k *attack) quiet() {
	k.Helper()
	var left map[int]string
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		if left = below(k.known); len(left) == 0 && k.w.idle() {
			return
		}
	}
	k.Errorf("left behind: %v", left)
}

// finish looks at what a run has come to.
func (k *attack) finish(b *branch) {
	k.Helper()
	if k.Failed() {
		return
	}
	if p := k.do("verify", b.id); p.code() != 0 {
		log := k.do("events", b.id)
		k.Errorf("verify %s: exit code %d\n%s%s\nthe log:\n%s", b.id, p.code(), &p.stdout, &p.stderr, &log.stdout)
	}
	k.w.judge(b.id, b.done)
	for _, e := range b.done {
		if id := b.begun[e.job]; id != "" && (id != e.id || onceOnly[e.name]) {
			k.Errorf("%s: %s had begun when the run was forked, and was done as %s; now again, as %s", b.id, e.job, id, e.id)
		}
	}
	// The process may die between an answer and its event: two models are asked at once.
	if most := b.calls + 2*b.kills; b.asked > most {
		k.Errorf("%s: models were asked %d times; the budget is %d calls, and there were %d kills", b.id, b.asked, b.calls, b.kills)
	}
}
