// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// squares takes as long as an expression can take, before its cost ends it.
const squares = `
sub_agents:
  - name: think
    set: {x: "lists.range(1000).map(i, lists.range(1000).map(j, [i, j, 1] == [j, i, 1]))"}
    on_error: next_iteration
`

// A timeout ends an expression that is being computed, and not the limit of its cost.
func TestLongExpressionEndsWithItsTime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "long.yaml")
	write(t, file, "name: long\nmax_iterations: 1\niteration_timeout: 20ms"+squares)
	_, stderr := cli(t, 1, "run", file, "--store", "memory")
	if !strings.Contains(stderr, "the iteration's time was over 20ms into think") {
		t.Error(stderr)
	}
}

// Two Ctrl-C end a run whose expressions take long, within the grace.
func TestLongExpressionsEndWithCtrlC(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "long.yaml"), "name: long\nmax_iterations: 100000\niteration_timeout: 1h\ntimeout: 2h"+squares)
	cmd := exec.Command("refrain", "run", "long.yaml", "--store", "sqlite:runs.db")
	cmd.Dir = dir
	said, err := os.Create(filepath.Join(dir, "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	text := func() []byte { out, _ := os.ReadFile(said.Name()); return out }
	for began := time.Now(); !bytes.Contains(text(), []byte("Iteration 2")); time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("%s", text())
		}
	}
	for range 2 {
		_ = cmd.Process.Signal(os.Interrupt)
		time.Sleep(20 * time.Millisecond)
	}
	began := time.Now()
	_ = cmd.Wait()
	if took := time.Since(began); took > 10*time.Second || cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("ended after %s with %s: %s", took, cmd.ProcessState, text())
	}
}
