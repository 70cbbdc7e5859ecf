// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
)

// onScreen returns what refrain writes to a terminal with this many columns.
func onScreen(t *testing.T, dir string, columns uint16, args ...string) string {
	t.Helper()
	far, tty, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer far.Close()
	if err := pty.Setsize(far, &pty.Winsize{Rows: 24, Cols: columns}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("refrain", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "REFRAIN_STORE=")
	cmd.Stdout, cmd.Stderr = tty, tty
	read := make(chan string)
	go func() {
		text, _ := io.ReadAll(far) // which ends with an error when the terminal is closed
		read <- string(text)
	}()
	err = cmd.Run()
	tty.Close()
	text := strings.ReplaceAll(<-read, "\r\n", "\n")
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return text
}

// What is listed and drawn fits the width of the terminal: columns are cut or left out, and texts are broken at words.
func TestOutputFitsTheTerminal(t *testing.T) {
	dir := t.TempDir()
	file, store := filepath.Join(dir, "loop.yaml"), "sqlite:"+filepath.Join(dir, "runs.db")
	if err := os.WriteFile(file, []byte(`
name: a_loop_with_a_long_name
max_iterations: 3
sub_agents:
  - {name: write, text: "draft {{iteration}}", output_key: draft}
  - {name: a_judge_with_a_long_name, command: [echo, '7.5'], output_key: mark_of_the_judge}
score: {key: mark_of_the_judge}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	onScreen(t, dir, 200, "run", "loop.yaml", "Write a long text about a cat", "--store", store, "--progress", "quiet", "--exit-zero-on-limit")
	for _, columns := range []uint16{48, 80} {
		for verb, want := range map[string]string{
			"runs --store " + store:                                 "Write a",
			"backtest last --set max_iterations=2 --store " + store: "saves",
			"backtest last --sweep max_iterations --store " + store: "lost",
			"graph loop.yaml":                                       "a_judge_with_a_long_name",
			"help definition":                                       "max_iterations",
		} {
			text := onScreen(t, dir, columns, strings.Fields(verb)...)
			for line := range strings.Lines(text) {
				if n := ansi.StringWidthWc(strings.TrimRight(line, "\n")); n > int(columns) {
					t.Errorf("%s: %d columns in a terminal of %d: %s", verb, n, columns, line)
				}
			}
			if !strings.Contains(text, want) {
				t.Errorf("%s does not show %q:\n%s", verb, want, text)
			}
		}
	}
}
