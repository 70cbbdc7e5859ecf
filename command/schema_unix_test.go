// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package command

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/command/internal/term"
)

// programIn is a command of the program in a folder, which the test does not wait
// for without end.
func programIn(t *testing.T, dir string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "refrain", args...)
	said := new(bytes.Buffer)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, said, said
	return cmd, said
}

// pipeIn is a folder with a named pipe in it, and a definition whose comment says
// that the pipe is the schema.
func pipeIn(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "loop.yaml"), []byte("# yaml-language-server: $schema=pipe\nname: a\ntext: hi\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A comment does not make check wait for somebody who writes to a pipe.
func TestSchemaThatIsAPipeIsNotOpened(t *testing.T) {
	cmd, said := programIn(t, pipeIn(t), "check", "loop.yaml")
	if err := cmd.Run(); err != nil || !strings.Contains(said.String(), "the schema pipe cannot be read") {
		t.Errorf("%v\n%s", err, said)
	}
}

// LOOP 34: a pipe that nothing writes to does not hold up a command for ever.
func TestDefinitionFromAPipeThatStaysEmpty(t *testing.T) {
	for verb, want := range map[string]string{"validate": "nothing writes to the named pipe", "run": "nothing writes to the named pipe",
		"import": "not a regular file"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			cmd, said := programIn(t, pipeIn(t), verb, "pipe")
			exit, ok := errors.AsType[*exec.ExitError](cmd.Run())
			if !ok || exit.ExitCode() != term.ExitUsage || !strings.Contains(said.String(), want) {
				t.Errorf("%v\n%s", exit, said)
			}
		})
	}
}

// A definition may come from a pipe. While nobody writes to it, a signal ends the
// command, as it does where a run is read.
func TestDefinitionFromAPipe(t *testing.T) {
	dir := pipeIn(t)
	for _, verb := range []string{"validate", "check"} {
		cmd, said := programIn(t, dir, verb, "pipe")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		w, err := os.OpenFile(filepath.Join(dir, "pipe"), os.O_WRONLY, 0) // waits for the reader
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.WriteString("name: a\ntext: hi\n"); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Close(), cmd.Wait()); err != nil || !strings.Contains(said.String(), "a is valid") && !strings.Contains(said.String(), "pipe") {
			t.Errorf("%s: %v\n%s", verb, err, said)
		}
	}
	for _, verb := range []string{"validate", "check", "verify"} {
		cmd, said := programIn(t, dir, verb, "pipe")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		w, err := os.OpenFile(filepath.Join(dir, "pipe"), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		exit, ok := errors.AsType[*exec.ExitError](cmd.Wait())
		if !ok || exit.ExitCode() != term.ExitInterrupted {
			t.Errorf("%s: %v\n%s", verb, exit, said)
		}
		w.Close()
	}
}
