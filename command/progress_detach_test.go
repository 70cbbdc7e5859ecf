// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/session/mark"
)

// leftLoop notes each step that it makes, with the process that drives it, and waits
// in the first and in the third for a file.
const leftLoop = `
name: left
max_iterations: 2
sub_agents:
  - {name: one, command: [sh, -c, 'echo one $0 >> made; touch at-one-$0; while ! test -e go-one && test -e made; do sleep 0.02; done', "{{iteration}}"]}
  - {name: two, command: [sh, -c, 'echo two $0 >> made; touch at-two-$0; while ! test -e go-two && test -e made; do sleep 0.02; done; echo $PPID >> drivers', "{{iteration}}"]}
  - {name: tell, text: "done in {{iteration}}"}
`

// M16, G8: d leaves the run going: what is under way ends, and another process makes
// the rest, and nothing twice. It does not end with the terminal.
func TestRunGoesOnInTheBackground(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(*atTerminal) // term.Args the key and the end of the step
	}{
		{"the terminal stays", func(*atTerminal) {}},
		{"the terminal is closed at once", func(a *atTerminal) { a.hangUp() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := startAtTerminal(t, leftLoop, nil, "--session", "s1", "--max-iterations", "3", "--exit-zero-on-limit")
			dir := a.cmd.Dir
			at := func(name string) string { return filepath.Join(dir, name) }
			a.shows("d detach")
			a.until("the first step", func() bool { return exists(at("at-one-1")) })
			watches := exec.Command("refrain", "watch", "s1", "--exit-zero-on-limit")
			var seen strings.Builder
			watches.Dir, watches.Env, watches.Stderr = dir, a.cmd.Env, &seen
			if err := watches.Start(); err != nil {
				t.Fatal(err)
			}
			a.press("d")
			a.shows("Leaving after one finishes (up to ")
			tt.end(a)
			touch(t, at("go-one"))
			if code := a.wait(); code != term.ExitOK {
				t.Errorf("exit code %d\n%s", code, a.text())
			}
			if tt.name == "the terminal stays" {
				a.shows("run s1 continues in the background: follow it with refrain watch s1")
				a.restored()
				if s := a.text(); strings.Contains(s, "PAUSED") || strings.Contains(s, "Stopped: ") {
					t.Errorf("the last frame says that the run is paused or stopped, though it continues:\n%s", s)
				}
				a.hangUp()
			}
			a.until("the second step, in the background", func() bool { return exists(at("at-two-1")) })
			if got := refrainIn(t, dir, 0, "runs"); !strings.Contains(got, "running") {
				t.Errorf("it does not go on:\n%s", got)
			}
			touch(t, at("go-two"))
			if got := refrainIn(t, dir, 0, "watch", "s1", "--exit-zero-on-limit", "--progress", "quiet"); got != "done in 3\n" {
				t.Errorf("answer %q", got)
			}
			if err := watches.Wait(); err != nil || !strings.Contains(seen.String(), "run s1 completed") {
				t.Errorf("who looks on all the time saw: %v\n%s", err, &seen)
			}
			made, err := os.ReadFile(at("made"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("one 1\ntwo 1\none 2\ntwo 2\none 3\ntwo 3\n", string(made)); diff != "" {
				t.Errorf("steps (-want +made):\n%s", diff)
			}
			drivers, _ := os.ReadFile(at("drivers"))
			if pids := strings.Fields(string(drivers)); len(pids) != 3 || pids[0] != pids[2] || pids[0] == pidOf(a) {
				t.Errorf("driven by %q; the terminal's process was %s", pids, pidOf(a))
			}
			refrainIn(t, dir, 0, "rm", "s1", "--yes") // nobody holds it
			if exists(at(".refrain/messages/s1.txt")) {
				t.Error("what it had to say is there still")
			}
		})
	}
}

// A run that comes to its end before the pause has simply ended, with its answer.
func TestRunThatEndsBeforeItIsLeft(t *testing.T) {
	a := startAtTerminal(t, `
name: short
max_iterations: 1
sub_agents:
  - {name: tell, text: an answer}
  - {name: wait, command: [sh, -c, 'touch started; while ! test -e go && test -e started; do sleep 0.02; done'], output_key: loop_output}
`, nil)
	a.until("the step", func() bool { return exists(filepath.Join(a.cmd.Dir, "started")) })
	a.press("d")
	a.shows("Leaving after wait finishes")
	touch(t, filepath.Join(a.cmd.Dir, "go"))
	if code := a.wait(); code != term.ExitOK {
		t.Errorf("exit code %d", code)
	}
	if s := a.text(); strings.Contains(s, "in the background: follow") ||
		!strings.Contains(s, " completed stop_reason=max_iterations") && !strings.Contains(s, "Stopped: max_iterations") {
		t.Errorf("it has ended: %s", s[max(0, len(s)-600):])
	}
	a.restored()
}

// Who thinks better of it pauses the run with Ctrl-C: then it stays.
func TestLeavingIsTakenBack(t *testing.T) {
	a := startAtTerminal(t, leftLoop, nil, "--session", "s1")
	a.until("the first step", func() bool { return exists(filepath.Join(a.cmd.Dir, "at-one-1")) })
	a.press("d")
	a.shows("Leaving after one finishes")
	a.press("\x03")
	a.shows("Pausing after one finishes")
	a.press("d")
	a.shows("The run is being paused already")
	touch(t, filepath.Join(a.cmd.Dir, "go-one"))
	if code := a.wait(); code != term.ExitInterrupted {
		t.Errorf("exit code %d", code)
	}
	a.shows("Paused in iteration 1 of 2, after step 1 of 3, one.")
	a.shows("Resume with: refrain resume s1")
	if got := refrainIn(t, a.cmd.Dir, 0, "runs"); !strings.Contains(got, string(mark.RunIsPaused)) {
		t.Errorf("it does not stay:\n%s", got)
	}
}

// Who looks on leaves with d, and the run does not mind.
func TestWatchIsLeft(t *testing.T) {
	a := startAtTerminal(t, leftLoop, nil, "--session", "s1", "--progress", "quiet")
	a.until("the first step", func() bool { return exists(filepath.Join(a.cmd.Dir, "at-one-1")) })
	w := startTerminalIn(t, a.cmd.Dir, nil, "watch", "s1")
	w.shows("d detach")
	w.press("?")
	w.shows("leave the run going")
	w.press("d")
	if code := w.wait(); code != term.ExitOK {
		t.Errorf("exit code %d", code)
	}
	w.shows("run s1 continues: follow it again with refrain watch s1")
	w.restored()
	for _, name := range []string{"go-one", "go-two"} {
		touch(t, filepath.Join(a.cmd.Dir, name))
	}
	if code := a.wait(); code != term.ExitOK || a.stdout.String() != "done in 2\n" {
		t.Errorf("the run: exit code %d, answer %q", code, &a.stdout)
	}
}

// A run that would end with its process cannot be left, nor paused.
func TestRunInMemoryCannotBeLeft(t *testing.T) {
	a := startAtTerminal(t, leftLoop, nil, "--store", "memory")
	a.until("the first step", func() bool { return exists(filepath.Join(a.cmd.Dir, "at-one-1")) })
	a.shows("c cancel")
	a.press("?")
	a.shows("end the run when its step is done; again to end it now")
	if s := a.text(); strings.Contains(s, "detach") || strings.Contains(s, "p pause") {
		t.Errorf("offered: %s", s)
	}
	a.press("?dp\x03")
	a.shows("Stopping after one finishes (up to ")
	a.press("\x03")
	if code := a.wait(); code != term.ExitInterrupted {
		t.Errorf("exit code %d", code)
	}
	a.shows("canceled")
	if s := a.text(); strings.Contains(s, "refrain resume") {
		t.Errorf("nothing can be resumed: %s", s)
	}
}

// hangUp closes the terminal: its processes get a signal, and what they write goes
// nowhere.
func (a *atTerminal) hangUp() {
	a.tty.Close()
	a.far.Close()
}

func pidOf(a *atTerminal) string { return strconv.Itoa(a.cmd.Process.Pid) }

func touch(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// refrainIn runs a command in a folder, and returns what it writes to stdout.
func refrainIn(t *testing.T, dir string, code int, args ...string) string {
	t.Helper()
	cmd := exec.Command("refrain", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "REFRAIN_STORE=", "REFRAIN_PROGRESS=", "GORACE=atexit_sleep_ms=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, _ := cmd.Output()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("refrain %v: exit code %d\n%s", args, got, &stderr)
	}
	return string(out)
}
