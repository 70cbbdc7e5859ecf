// SPDX-License-Identifier: Apache-2.0

//go:build linux

package command

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/session/mark"
)

var soak = flag.Duration("soak", 0, "how long TestSoak runs; 0 leaves it out. See make soak")

// LOOP 23, 30, 31, 33, G7, G8: over one store runs are started, killed, signaled,
// paused, canceled, forked and moved at random, by the real program, several at a time.
// Afterwards each of them comes to its end when it is resumed, its log is as it was
// written, the database is whole, and nothing is left of any process.
func TestSoak(t *testing.T) {
	if *soak == 0 {
		t.Skip("make soak, or go test ./command -run Soak -soak 60s")
	}
	known := adopt(t)
	dir := t.TempDir()
	binary := filepath.Join(dir, "refrain")
	if out, err := exec.Command("go", "build", "-o", binary, "../cmd/refrain").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s := &soaking{attack: newAttack(t, binary, dir, *seed), forks: make(map[string]int), kills: make(map[string]int)}
	s.took, s.known = 2*time.Second, known
	t.Setenv("OPENAI_BASE_URL", s.w.url+"/v1")
	for _, calls := range soakBudgets {
		writeClerk(t, dir, s.w.url, calls)
	}
	s.long() // what a process opens once and keeps
	descriptors, goroutines := s.descriptors(), runtime.NumGoroutine()

	until := time.Now().Add(*soak)
	var wg sync.WaitGroup
	for i := range 4 {
		w := s.worker(i)
		wg.Go(func() { w.work(until) })
	}
	wg.Go(func() {
		for time.Now().Before(until) && !t.Failed() {
			s.long()
		}
	})
	wg.Wait()
	s.quiet()
	s.settle()
	s.nothingIsLeft(descriptors, goroutines)
	t.Logf("%d runs, %d stops, of which %v", len(s.runs), s.stopped, s.counts)
}

// soakBudgets are the model calls that runs may make.
var soakBudgets = []int{10, 16, 100}

// soaking is what the workers share.
type soaking struct {
	*attack

	mu    sync.Mutex
	runs  []*soaked
	made  int
	forks map[string]int // by the name of the run
	kills map[string]int // likewise
}

// soaked is a run. Whoever moves it to another ID, or answers for it, has it alone.
type soaked struct {
	id, run string
	calls   int

	mu sync.RWMutex
}

func (r *soaked) branch() *branch { return &branch{id: r.id, run: r.run, calls: r.calls} }

// begin is a run that has not begun.
func (s *soaking) begin(dice *rand.Rand) *soaked {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	name := fmt.Sprint("s", s.made)
	r := &soaked{id: name, run: name, calls: soakBudgets[dice.IntN(len(soakBudgets))]}
	s.runs = append(s.runs, r)
	return r
}

// any is any of the runs.
func (s *soaking) any(dice *rand.Rand) *soaked {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.runs) == 0 {
		return nil
	}
	n := len(s.runs)
	if n > 8 && dice.IntN(4) > 0 { // rather a new one: old ones have mostly ended
		return s.runs[n-1-dice.IntN(8)]
	}
	return s.runs[dice.IntN(n)]
}

// soaker is one worker. Its dice follow from the seed.
type soaker struct {
	*attack
	all *soaking
}

func (s *soaking) worker(i int) *soaker {
	own := *s.attack
	own.dice, own.counts, own.stopped = rand.New(rand.NewPCG(s.dice.Uint64(), uint64(i))), make(map[string]int), 0
	return &soaker{attack: &own, all: s}
}

// work does one thing after another.
func (s *soaker) work(until time.Time) {
	for time.Now().Before(until) && !s.Failed() {
		draw := s.dice.IntN(100)
		r := s.all.any(s.dice)
		switch {
		case draw < 30 || r == nil:
			s.drive(s.all.begin(s.dice))
		case draw < 75:
			s.drive(r)
		case draw < 80:
			s.look(r)
		case draw < 86:
			s.beside(r)
		case draw < 93:
			s.fork(r)
		default:
			s.move(r)
		}
	}
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	s.all.stopped += s.stopped
	for what, n := range s.counts {
		s.all.counts[what] += n
	}
}

// drive lets a run go on, beside whoever else does, and answers what it asks.
func (s *soaker) drive(r *soaked) {
	r.mu.RLock()
	b := r.branch()
	p, how := s.once(b, 0, s.dice)
	st := s.stand(r.id)
	r.mu.RUnlock()
	s.all.mu.Lock()
	s.all.kills[r.run] += b.kills
	s.all.mu.Unlock()
	switch {
	case st == nil && how == "" && p.code() != term.ExitOK:
		s.Errorf("%q left no run: exit code %d\n%s", p.args, p.code(), &p.stderr)
	case st != nil && st.Status == string(mark.RunFailed):
		s.Errorf("%q ended (%s) with a run that has failed: %s\n%s", p.args, how, st.Error, &p.stderr)
	case st != nil && st.Status == string(mark.RunWaiting):
		s.resolve(r)
	}
}

func (s *soaker) resolve(r *soaked) {
	if !r.mu.TryLock() {
		return
	}
	defer r.mu.Unlock()
	if st := s.stand(r.id); st != nil && st.Status == string(mark.RunWaiting) {
		s.answer(r.id, st)
	}
}

// look looks at runs, in ways that change nothing.
func (s *soaker) look(r *soaked) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if s.stand(r.id) == nil {
		return
	}
	looks := [][]string{{"runs"}, {"show", r.id}, {"events", r.id}, {"runs", "--status", "interrupted", "--json"}}
	args := looks[s.dice.IntN(len(looks))]
	if p := s.do(args...); p.code() != 0 {
		s.Errorf("%q: exit code %d\n%s", args, p.code(), &p.stderr)
	}
}

// beside stops a run that somebody else may drive.
func (s *soaker) beside(r *soaked) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	args := [][]string{{"pause", r.id}, {"pause", r.id, "--now"}, {"cancel", r.id}}[s.dice.IntN(3)]
	s.verb(args...)
	s.counts["beside"]++
}

func (s *soaker) fork(r *soaked) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if s.stand(r.id) == nil {
		return
	}
	b := s.attack.fork(r.branch(), s.dice)
	if b == nil {
		return
	}
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	s.all.forks[r.run]++
	s.all.runs = append(s.all.runs, &soaked{id: b.id, run: b.run, calls: b.calls})
}

// move takes a run that nobody drives to another ID, and removes the old one.
func (s *soaker) move(r *soaked) {
	if !r.mu.TryLock() {
		return
	}
	defer r.mu.Unlock()
	if st := s.stand(r.id); st == nil || st.Status == string(mark.RunRunning) || strings.Count(r.id, "-") > 3 {
		return
	}
	old, b := r.id, r.branch()
	s.attack.move(b, s.dice)
	if b.id == old {
		return
	}
	if p := s.do("rm", old, "--yes"); p.code() != 0 {
		s.Errorf("rm %s: exit code %d\n%s", old, p.code(), &p.stderr)
	}
	r.id = b.id
}

// long takes a whole run in this process, which lives on.
func (s *soaking) long() {
	r := s.begin(rand.New(rand.NewPCG(1, uint64(s.made))))
	var stderr bytes.Buffer
	file := filepath.Join(s.dir, fmt.Sprintf("loop%d.yaml", r.calls))
	args := []string{
		"run", file, "--root", s.dir, "--session", r.id, "--set", "run=" + r.run, "--progress", "quiet", "--store", s.absolute(),
	}
	code := run(s.Context(), nil, args, os.Getenv, strings.NewReader(""), &bytes.Buffer{}, &stderr)
	switch code {
	case term.ExitOK, term.ExitLimit, term.ExitWaits, term.ExitInterrupted: // others may stop it
	default:
		if !oneOf(stderr.String(), " is driven by ", "resume or cancel it first") { // a worker was faster
			s.Errorf("in this process, %q: exit code %d\n%s", args, code, &stderr)
		}
	}
}
