// SPDX-License-Identifier: Apache-2.0

//go:build unix

package tui_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/testkit/leaktest"
)

var update = flag.Bool("update", false, "rewrite the screens in testdata")

func TestMain(m *testing.M) { leaktest.Main(m) }

// terminal is a pseudo-terminal with the screen that somebody in front of it would
// see.
type terminal struct {
	t        *testing.T
	far, tty *os.File // where keys are pressed, and what the program has
	before   *term.State
	changed  chan struct{}

	mu     sync.Mutex
	screen *screen
	raw    bytes.Buffer
}

func newTerminal(t *testing.T, columns, lines int) *terminal {
	t.Helper()
	far, tty, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	x := &terminal{t: t, far: far, tty: tty, changed: make(chan struct{}, 1), screen: newScreen(columns, lines)}
	x.setSize(columns, lines)
	if x.before, err = term.GetState(tty.Fd()); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(x.read)
	t.Cleanup(func() {
		tty.Close()
		far.Close()
		reading.Wait()
		for _, bad := range x.screen.unknown {
			t.Errorf("the terminal was sent %q", bad)
		}
	})
	return x
}

func (x *terminal) read() {
	b := make([]byte, 1<<16)
	for {
		n, err := x.far.Read(b)
		if err != nil {
			return
		}
		x.mu.Lock()
		x.raw.Write(b[:n])
		x.screen.write(b[:n])
		x.mu.Unlock()
		select {
		case x.changed <- struct{}{}:
		default:
		}
	}
}

// resize changes the window when all is drawn that was under way: what is drawn for
// a larger window would wrap in a smaller one, until the next frame.
func (x *terminal) resize(columns, lines int) {
	x.t.Helper()
	x.settle(100 * time.Millisecond)
	x.mu.Lock()
	x.screen.resize(columns, lines)
	x.mu.Unlock()
	x.setSize(columns, lines)
	// The kernel tells the processes of the terminal; this one is of another.
	if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
		x.t.Fatal(err)
	}
}

// settle waits until nothing has been written for a time.
func (x *terminal) settle(d time.Duration) {
	for {
		select {
		case <-x.changed:
		case <-time.After(d):
			return
		}
	}
}

func (x *terminal) setSize(columns, lines int) {
	x.t.Helper()
	if err := pty.Setsize(x.far, &pty.Winsize{Rows: uint16(lines), Cols: uint16(columns)}); err != nil {
		x.t.Fatal(err)
	}
}

func (x *terminal) press(keys string) {
	x.t.Helper()
	if _, err := x.far.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

func (x *terminal) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.screen.text()
}

func (x *terminal) written() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.raw.String()
}

// until waits for the screen to be as it should.
func (x *terminal) until(what string, ok func(string) bool) {
	x.t.Helper()
	late := time.After(2 * time.Minute)
	for !ok(x.text()) {
		select {
		case <-x.changed:
		case <-late:
			x.t.Fatalf("the screen never shows %s:\n%s", what, x.text())
		}
	}
}

func (x *terminal) shows(part string) {
	x.t.Helper()
	x.until(fmt.Sprintf("%q", part), func(s string) bool { return strings.Contains(s, part) })
}

// golden compares the screen with one in testdata.
func (x *terminal) golden(name string) {
	x.t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		x.settle(300 * time.Millisecond)
		if err := os.WriteFile(file, []byte(x.text()), 0o644); err != nil {
			x.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		x.t.Fatal(err)
	}
	late := time.After(2 * time.Minute)
	for x.text() != string(want) {
		select {
		case <-x.changed:
		case <-late:
			x.t.Fatalf("%s (-want +got):\n%s", file, cmp.Diff(string(want), x.text()))
		}
	}
}

// restored fails if the terminal is not as it was before the view.
func (x *terminal) restored() {
	x.t.Helper()
	x.restoredSettings()
	x.until("the cursor", func(string) bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return !x.screen.hidden && !x.screen.pasting
	})
}

func (x *terminal) restoredSettings() {
	x.t.Helper()
	now, err := term.GetState(x.tty.Fd())
	if err != nil {
		x.t.Fatal(err)
	}
	if diff := cmp.Diff(fmt.Sprintf("%+v", x.before), fmt.Sprintf("%+v", now)); diff != "" {
		x.t.Errorf("the terminal's settings (-before +after):\n%s", diff)
	}
}
