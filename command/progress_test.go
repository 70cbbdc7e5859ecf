// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	xterm "github.com/charmbracelet/x/term"
	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/command/internal/term"
)

const slowLoop = `
name: slow
sub_agents:
  - {name: draft, text: first draft}
  - {name: wait, command: [sh, -c, "touch started; sleep 300"]}
`

// M16, T20: in a terminal, c pressed twice ends the run, and so does Ctrl-C, pressed
// twice or sent: with what there is on standard output, and the terminal as it was.
func TestRunIsEndedInTheTerminal(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(*atTerminal)
		says string
	}{
		{"c", func(a *atTerminal) { a.press("c"); a.shows("Press c again"); a.press("c") }, "canceled stop_reason=canceled"},
		{"Ctrl-C", func(a *atTerminal) { a.press("\x03"); a.shows("Pausing after wait finishes"); a.press("\x03") }, "Resume with: refrain resume "},
		{"interrupted", func(a *atTerminal) {
			a.signal(syscall.SIGINT)
			a.shows("Pausing after wait finishes")
			a.signal(syscall.SIGINT)
		}, "Resume with: refrain resume "},
		{"terminated", func(a *atTerminal) { a.signal(syscall.SIGTERM) }, "Resume with: refrain resume "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := startAtTerminal(t, slowLoop, nil, "--grace", "100ms")
			a.shows("wait")
			a.until("the command", func() bool { return exists(filepath.Join(a.cmd.Dir, "started")) })
			tt.end(a)
			if code := a.wait(); code != term.ExitInterrupted {
				t.Errorf("exit code %d", code)
			}
			if got := a.stdout.String(); got != "first draft\n" {
				t.Errorf("answer %q", got)
			}
			a.shows(tt.says)
			a.restored()
		})
	}
}

// T20: the third Ctrl-C leaves at once, whatever is under way, and the terminal is as
// it was.
func TestThirdCtrlCLeavesAtOnce(t *testing.T) {
	for name, again := range map[string]func(*atTerminal){
		"pressed": func(a *atTerminal) { a.press("\x03\x03\x03") },
		"sent": func(a *atTerminal) {
			a.signal(syscall.SIGINT)
			a.shows("Pausing after")
			a.signal(syscall.SIGINT)
			a.signal(syscall.SIGINT)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := startAtTerminal(t, slowLoop, nil)
			a.shows("wait")
			a.until("the command", func() bool { return exists(filepath.Join(a.cmd.Dir, "started")) })
			again(a)
			if code := a.wait(); code != term.ExitInterrupted {
				t.Errorf("exit code %d", code)
			}
			a.restored()
		})
	}
}

// The view's keys are for a keyboard: what is piped in is the input, and the view is
// there all the same.
func TestViewWithPipedInput(t *testing.T) {
	a := startAtTerminal(t, "name: echo\nmax_iterations: 1\nsub_agents:\n  - {name: say, text: 'about {{user_input}}'}\n", strings.NewReader("a cat\n"), "-")
	if code := a.wait(); code != term.ExitOK {
		t.Errorf("exit code %d", code)
	}
	if got := a.stdout.String(); got != "about a cat\n" {
		t.Errorf("answer %q", got)
	}
	a.shows("Progress by Iteration:")
	a.restored()
}

// atTerminal is refrain run, in a terminal of its own; its answer goes elsewhere.
type atTerminal struct {
	t        *testing.T
	cmd      *exec.Cmd
	far, tty *os.File
	before   *xterm.State
	stdout   bytes.Buffer
	changed  chan struct{}

	mu  sync.Mutex
	raw bytes.Buffer
}

func startAtTerminal(t *testing.T, definition string, stdin io.Reader, args ...string) *atTerminal {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "loop.yaml"), []byte(definition), 0o600); err != nil {
		t.Fatal(err)
	}
	return startTerminalIn(t, dir, stdin, append([]string{"run", "loop.yaml", "--grace", "300ms"}, args...)...)
}

// startTerminalIn is a command in a folder, in a terminal of its own.
func startTerminalIn(t *testing.T, dir string, stdin io.Reader, args ...string) *atTerminal {
	t.Helper()
	far, tty, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	a := &atTerminal{t: t, far: far, tty: tty, changed: make(chan struct{}, 1)}
	if err := pty.Setsize(far, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	if a.before, err = xterm.GetState(tty.Fd()); err != nil {
		t.Fatal(err)
	}
	a.cmd = exec.Command("refrain", args...)
	a.cmd.Dir = dir
	a.cmd.Env = append(os.Environ(), "TERM=xterm-256color", "CI=", "REFRAIN_PROGRESS=", "REFRAIN_STORE=", "REFRAIN_STORE=",
		"GORACE=atexit_sleep_ms=0", "TMPDIR="+dir)
	a.cmd.Stdin, a.cmd.Stdout, a.cmd.Stderr = tty, &a.stdout, tty
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 2}
	if stdin != nil {
		a.cmd.Stdin = stdin
	}
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(a.read)
	t.Cleanup(func() {
		syscall.Kill(-a.cmd.Process.Pid, syscall.SIGKILL) // the session's process group: refrain is its leader
		tty.Close()
		far.Close()
		reading.Wait()
	})
	return a
}

func (a *atTerminal) read() {
	b := make([]byte, 1<<12)
	for {
		n, err := a.far.Read(b)
		if err != nil {
			return
		}
		a.mu.Lock()
		a.raw.Write(b[:n])
		a.mu.Unlock()
		select {
		case a.changed <- struct{}{}:
		default:
		}
	}
}

// text is all that was written, one thing after another.
func (a *atTerminal) text() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return ansi.Strip(a.raw.String())
}

func (a *atTerminal) until(what string, ok func() bool) {
	a.t.Helper()
	late := time.After(2 * time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-a.changed:
		case <-tick.C: // it may be something else than what is written
		case <-late:
			s := a.text()
			a.t.Fatalf("never: %s\n%s", what, s[max(0, len(s)-2000):])
		}
	}
}

func (a *atTerminal) shows(part string) {
	a.t.Helper()
	a.until(fmt.Sprintf("%q", part), func() bool { return strings.Contains(a.text(), part) })
}

func (a *atTerminal) press(keys string) {
	if _, err := a.far.WriteString(keys); err != nil {
		a.t.Error(err)
	}
}

func (a *atTerminal) signal(s os.Signal) {
	if err := a.cmd.Process.Signal(s); err != nil {
		a.t.Error(err)
	}
}

// wait is how the process ends.
func (a *atTerminal) wait() int {
	a.t.Helper()
	kill := time.AfterFunc(2*time.Minute, func() { a.cmd.Process.Kill() })
	defer kill.Stop()
	err := a.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	} else if err != nil {
		a.t.Fatal(err)
	}
	return 0
}

// restored fails if the terminal is not as it was: its settings, and its cursor.
func (a *atTerminal) restored() {
	a.t.Helper()
	now, err := xterm.GetState(a.tty.Fd())
	if err != nil {
		a.t.Fatal(err)
	}
	if diff := cmp.Diff(fmt.Sprintf("%+v", a.before), fmt.Sprintf("%+v", now)); diff != "" {
		a.t.Errorf("the terminal's settings (-before +after):\n%s", diff)
	}
	a.until("the cursor is back", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		s := a.raw.String()
		return strings.LastIndex(s, ansi.SetModeTextCursorEnable) > strings.LastIndex(s, ansi.ResetModeTextCursorEnable)
	})
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
