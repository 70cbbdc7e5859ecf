// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// bank takes payments by POST, each in its time, and knows by GET which there were.
type bank struct {
	*testing.T
	slow time.Duration

	mu     sync.Mutex
	paid   map[string]string     // by key
	doing  map[string]*sync.Cond // under way
	looked int
}

func (b *bank) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodGet {
		b.look(w, strings.TrimPrefix(req.URL.Path, "/payments/"))
		return
	}
	key := req.Header.Get("Idempotency-Key")
	b.mu.Lock()
	b.doing[key] = sync.NewCond(&b.mu)
	b.mu.Unlock()
	text, err := io.ReadAll(req.Body)
	time.Sleep(b.slow) // whoever asked may be gone meanwhile
	b.mu.Lock()
	defer b.mu.Unlock()
	b.doing[key].Broadcast()
	delete(b.doing, key)
	if err != nil {
		return // it did not come through
	}
	if _, twice := b.paid[key]; twice {
		b.Errorf("%s was paid twice: %s", text, key)
	}
	b.paid[key] = "paid " + string(text)
	_, _ = io.WriteString(w, b.paid[key])
}

func (b *bank) look(w http.ResponseWriter, key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.doing[key] != nil {
		b.doing[key].Wait()
	}
	b.looked++
	if paid, ok := b.paid[key]; ok {
		_, _ = io.WriteString(w, paid)
		return
	}
	w.WriteHeader(http.StatusNotFound)
}

const payLoop = `
name: shop
max_iterations: 5
state: {all: []}
sub_agents:
  - name: pay
    url: BANK/payments
    method: POST
    body: "{{iteration}}"
    effect: {at_most_once: true, reconcile: {url: "BANK/payments/{{call_id}}"}}
    output_key: receipt
  - {name: note, set: {all: 'state.all + [state.receipt]'}}
  - {name: tell, text: "{{all}}", output_key: loop_output}
`

// E5, G7: a payment that must not be made twice is made once, and its receipt is not
// lost, whenever the process is killed, also while it finds out what became of one; and
// nobody is asked.
func TestKilledPaymentsAreMadeOnce(t *testing.T) {
	t.Parallel()
	b := &bank{T: t, slow: 40 * time.Millisecond, paid: make(map[string]string), doing: make(map[string]*sync.Cond)}
	server := httptest.NewServer(b)
	defer server.Close()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "loop.yaml"), []byte(strings.ReplaceAll(payLoop, "BANK", server.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = `["paid 1","paid 2","paid 3","paid 4","paid 5"]`
	dice := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 2))
	began := time.Now()
	if killed := killedRun(t, dir, "whole", 0, dice, want); killed > 0 {
		t.Fatal("nobody kills it")
	}
	took := time.Since(began)
	killed, runs := 0, 1
	for killed < *kills/2 {
		killed += killedRun(t, dir, "r"+strconv.Itoa(runs), took, dice, want)
		runs++
	}
	if n := len(b.paid); n != 5*runs {
		t.Errorf("%d payments in %d runs, want 5 in each", n, runs)
	}
	t.Logf("%d kills in %d runs; %d times it was found out what became of a payment", killed, runs, b.looked)
}

// killedRun runs the definition to its end, and kills the process up to so long after
// each start; 0: never. It returns how often it did.
func killedRun(t *testing.T, dir, id string, within time.Duration, dice *rand.Rand, want string) (killed int) {
	t.Helper()
	args := []string{"run", "loop.yaml", "--session", id}
	for {
		var stdout, stderr bytes.Buffer
		cmd := exec.Command("refrain", append(args, "--progress", "quiet", "--exit-zero-on-limit", "--store", "sqlite:pay.db")...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
		cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "REFRAIN_PROGRESS=", "REFRAIN_STORE=", "REFRAIN_MODEL=")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stop := func() bool { return true }
		if within > 0 {
			stop = time.AfterFunc(time.Duration(dice.Int64N(int64(within))), func() { _ = cmd.Process.Signal(syscall.SIGKILL) }).Stop
		}
		err := cmd.Wait()
		stop()
		exit, failed := errors.AsType[*exec.ExitError](err)
		switch {
		case !failed:
			if got := strings.TrimSpace(stdout.String()); got != want && got != "" { // it was killed when it had said so
				t.Fatalf("run %s says %s, want %s", id, got, want)
			}
			return killed
		case exit.Sys().(syscall.WaitStatus).Signaled():
			killed++
			within += within / 8 // it comes to its end on a machine that has become slow, too
			args = []string{"resume", id}
		case strings.Contains(stderr.String(), "the run has ended: it completed"): // killed behind its end
			return killed
		case strings.Contains(stderr.String(), "no run ") || strings.Contains(stderr.String(), "there are no runs here") ||
			strings.Contains(stderr.String(), "in session "):
			args = []string{"run", "loop.yaml", "--session", id} // killed before it was in the log
		default:
			t.Fatalf("%s: %v\n%s", fmt.Sprint(args), err, &stderr)
		}
	}
}
