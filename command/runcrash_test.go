// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/seal/statekey"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

var kills = flag.Int("kills", longtest.N(5, 25), "how often TestKilledRunsComeToTheSame kills a process, with each store; other tests do it less often")

// crashLoop is three loops in one another, with branches in the innermost: models
// and commands with an effect. Each command notes its call's ID.
const crashLoop = `
name: outer
model: scripted/script.yaml
max_iterations: 2
state: {joins: 0, log: []}
score: {key: quality, target: 9}
sub_agents:
  - {name: plan, instructions: "Plan pass {{iteration}}.", output_key: plan, can_exit_loop: false}
  - name: middle
    max_iterations: 2
    sub_agents:
      - name: inner
        max_iterations: 2
        sub_agents:
          - name: both
            type: parallel
            sub_agents:
              - {name: left, command: [sh, effect.sh, left], output_key: left}
              - {name: right, command: [sh, effect.sh, right], output_key: right}
          - {name: join, set: {joins: state.joins + 1, log: 'state.log + [state.left + state.right]'}}
      - {name: judge, instructions: "Judge {{joins}}.", output_key: quality, can_exit_loop: false}
  - {name: note, command: [sh, effect.sh, note], output_key: noted}
  - {name: tell, text: "{{plan}}; {{joins}} joins; {{quality}}"}
`

const crashEffect = `printf '%s %s\n' "$1" "$REFRAIN_CALL_ID" >> effects
sleep 0.02
printf %s "$1"
`

const crashScript = `
name: scripted
answers:
  - {agent: plan, match_request: "Plan pass 1", text: the first plan, repeat: true, delay: 10ms, usage: {prompt: 60, output: 40}}
  - {agent: plan, match_request: "Plan pass 2", text: the second plan, repeat: true, delay: 10ms, usage: {prompt: 60, output: 40}}
  - {agent: judge, match_request: "Judge 2\\.", text: "5", repeat: true, delay: 10ms, usage: {prompt: 60, output: 40}}
  - {agent: judge, match_request: "Judge 4\\.", text: "6", repeat: true, delay: 10ms, usage: {prompt: 60, output: 40}}
  - {agent: judge, match_request: "Judge 6\\.", text: "7", repeat: true, delay: 10ms, usage: {prompt: 60, output: 40}}
  - {agent: judge, match_request: "Judge 8\\.", text: "8", repeat: true, delay: 10ms, usage: {prompt: 60, output: 40}}
`

// G7, G8, E4, C25: whenever a process is killed, the run comes to the same when it is
// resumed. What had ended is not done again; a command that was cut off is, with the
// same call ID.
func TestKilledRunsComeToTheSame(t *testing.T) {
	for name, open := range map[string]func(*testing.T) string{
		"sqlite": func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "runs.db") }, "postgres": crashPostgres,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newCrashes(t, open(t))
			whole := w.run("whole", 0)
			began := time.Now()
			w.run("warm", 0)
			took := time.Since(began)
			if n := whole.calls["left"]; n != 8 || whole.answer != "the second plan; 8 joins; 8\n" {
				t.Fatalf("uninterrupted: %d calls of left, and the answer %q", n, whole.answer)
			}
			runs := 0
			for w.killed < *kills {
				runs++
				got := w.run("r"+strconv.Itoa(runs), took)
				if diff := cmp.Diff(whole, got, crashTimes); diff != "" {
					t.Fatalf("run %d, after %d kills in all (-whole +killed):\n%s", runs, w.killed, diff)
				}
			}
			t.Logf("%d kills in %d runs, %d of them before the run was in the log; %d calls were made again, with their IDs", w.killed, runs, w.early, w.again)
		})
	}
}

// crashed is what a run has come to.
type crashed struct {
	answer     string
	state      map[string]any
	iterations map[session.Address][]loop.IterationRecord
	stops      map[session.Address]loop.StopRecord
	calls      map[string]int // effects by name
}

var crashTimes = cmp.Options{
	cmp.AllowUnexported(crashed{}),
	cmpopts.IgnoreFields(loop.StopRecord{}, "Elapsed", "Events", "Digest", "StateSize"),
	cmpopts.IgnoreFields(loop.IterationRecord{}, "StateSize"),
	cmpopts.IgnoreSliceElements(func(c loop.ConditionRecord) bool { return c.Name == "timeout" }), // how long it took
}

// crashes runs refrain, and kills it.
type crashes struct {
	*testing.T
	dir, store           string
	dice                 *rand.Rand
	killed, early, again int
}

func newCrashes(t *testing.T, store string) *crashes {
	w := &crashes{T: t, dir: t.TempDir(), store: store, dice: rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))}
	for name, text := range map[string]string{"loop.yaml": crashLoop, "effect.sh": crashEffect, "script.yaml": crashScript} {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// run runs the definition to its end, and kills the process up to so long after each
// start; 0: never.
func (w *crashes) run(id string, within time.Duration) *crashed {
	w.Helper()
	_ = os.Remove(filepath.Join(w.dir, "effects"))
	args := []string{"run", "loop.yaml", "--session", id}
	kills := 0
	for {
		var stdout, stderr bytes.Buffer
		cmd := exec.Command("refrain", append(args, "--progress", "plain", "--exit-zero-on-limit", "--store", w.store)...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = w.dir, &stdout, &stderr
		cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "REFRAIN_PROGRESS=", "REFRAIN_STORE=", "REFRAIN_MODEL=")
		if err := cmd.Start(); err != nil {
			w.Fatal(err)
		}
		if within > 0 {
			after := time.Duration(w.dice.Int64N(int64(within)))
			kill := time.AfterFunc(after, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
			defer kill.Stop()
		}
		err := cmd.Wait()
		exit, failed := errors.AsType[*exec.ExitError](err)
		switch {
		case !failed:
			return w.outcome(id, stdout.String(), kills)
		case exit.Sys().(syscall.WaitStatus).Signaled():
			w.killed++
			kills++
			within += within / 8 // it comes to its end on a machine that has become slow, too
			args = []string{"resume", id}
		case strings.Contains(stderr.String(), "no run ") || strings.Contains(stderr.String(), "there are no runs here") ||
			strings.Contains(stderr.String(), "in session "):
			w.early++ // it was killed before the run was in the log
			args = []string{"run", "loop.yaml", "--session", id}
		case strings.Contains(stderr.String(), "the run has ended: it completed"):
			return w.outcome(id, "", kills) // it was killed behind its end
		default:
			w.Fatalf("%v: %v\n%s", args, err, &stderr)
		}
	}
}

func (w *crashes) outcome(id, answer string, kills int) *crashed {
	w.Helper()
	e := &term.Env{Getenv: func(string) string { return "" }, Stderr: os.Stderr}
	store, closeStore, err := runstore.MakeService(context.Background(), e, w.store)
	if err != nil {
		w.Fatal(err)
	}
	defer closeStore()
	got, err := store.Get(context.Background(), &session.GetRequest{AppName: runstore.AppName, UserID: runstore.UserName, SessionID: id})
	if err != nil {
		w.Fatal(err)
	}
	view := session.ViewOf(got.Session)
	c := &crashed{
		answer: answer, state: statekey.OwnState(view.State()), iterations: make(map[session.Address][]loop.IterationRecord),
		stops: make(map[session.Address]loop.StopRecord), calls: make(map[string]int),
	}
	said := ""
	for ev := range view.Events().All() {
		if ev.Author != "user" && ev.Text() != "" {
			said = ev.Text()
		}
		if ev.Mark == nil {
			continue
		}
		switch ev.Mark.Kind {
		case mark.KindIterationFinished:
			c.iterations[ev.Address] = append(c.iterations[ev.Address], decodeMark[loop.IterationRecord](w, ev))
		case mark.KindLoopStopped:
			c.stops[ev.Address] = decodeMark[loop.StopRecord](w, ev)
		}
	}
	if c.answer == "" {
		c.answer = said + "\n"
	}
	if run := session.RunOf(view); run.Status != mark.RunCompleted || run.Stop != "max_iterations" {
		w.Errorf("the log says of the run: %+v", run)
	}
	w.effects(c, kills)
	return c
}

func decodeMark[T any](t testing.TB, ev *session.Event) (v T) {
	t.Helper()
	if err := ev.Mark.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// effects counts the calls, and demands that none was made again but after a kill.
func (w *crashes) effects(c *crashed, kills int) {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, "effects"))
	if err != nil {
		w.Fatal(err)
	}
	times := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		name, id, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || !strings.HasPrefix(id, "call-") {
			w.Fatalf("a command without a call ID: %q", line)
		}
		if times[line]++; times[line] == 1 {
			c.calls[name]++
		}
	}
	again := 0
	for _, n := range times {
		again += n - 1
	}
	if again > 2*kills { // two branches can be cut off at once
		w.Errorf("%d calls were made again after %d kills", again, kills)
	}
	w.again += again
}

// crashPostgres starts a server of the test's own.
func crashPostgres(t *testing.T) string {
	dir, err := os.MkdirTemp("", "rpg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // the server is another user
		t.Fatal(err)
	}
	script, err := filepath.Abs("../.ci/postgres")
	if err != nil {
		t.Fatal(err)
	}
	cluster := filepath.Join(dir, "c")
	cmd := exec.Command(script, "start", cluster, strconv.Itoa(os.Getpid()))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 3 && os.Getenv("REFRAIN_CI") == "" {
		t.Skip(stderr.String())
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	t.Cleanup(func() { _ = exec.Command(script, "stop", cluster).Run() })
	dsn := strings.TrimSpace(string(out))
	if !strings.HasPrefix(dsn, "postgres") {
		dsn = "postgres:" + dsn
	}
	return dsn
}
