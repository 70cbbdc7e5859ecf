// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/charmbracelet/x/term"
)

// The ways to show progress.
const (
	progressAuto  = "auto"
	progressTTY   = "tty"
	progressPlain = "plain"
	progressJSON  = "json"
	progressQuiet = "quiet"
)

const progressUsage = "show progress as auto, tty, plain, json or quiet (env REFRAIN_PROGRESS)"

// progressMode is how progress is shown. What somebody has chosen counts, also
// where it is a bad choice; auto is a tree where a person can see it, and lines
// elsewhere. Only standard error is asked: the answer may go into a file.
func progressMode(e *env, mode string) (string, error) {
	screen := screenOf(e.stderr)
	switch mode {
	case progressPlain, progressJSON, progressQuiet:
		return mode, nil
	case progressTTY:
		if screen == nil {
			return "", errors.New("--progress tty: standard error is no terminal, or one without a size; use plain")
		}
		return mode, nil
	case progressAuto:
		if screen == nil || !foreground(screen) || e.getenv("TERM") == "dumb" || onCI(e) {
			return progressPlain, nil
		}
		return progressTTY, nil
	}
	return "", fmt.Errorf("--progress %q: use auto, plain, json or quiet, or tty for a tree in the terminal", mode)
}

// onCI reports whether a build server says that it runs this.
func onCI(e *env) bool {
	switch e.getenv("CI") {
	case "", "0", "false", "no":
		return false
	}
	return true
}

// chosenProgress is what the flags and the environment say.
func chosenProgress(e *env, flag string, given, json bool) (string, error) {
	switch {
	case json && given && flag != progressJSON:
		return "", fmt.Errorf("--json and --progress %s: give one of them", flag)
	case json:
		return progressJSON, nil
	case given:
		return flag, nil
	}
	if p := e.getenv("REFRAIN_PROGRESS"); p != "" {
		return p, nil
	}
	return flag, nil
}

// screenOf is the terminal that w is, if something can be drawn on it; else nil.
func screenOf(w any) *os.File {
	f := fileOf(w)
	if f == nil || !term.IsTerminal(f.Fd()) {
		return nil
	}
	if columns, lines, err := term.GetSize(f.Fd()); err != nil || columns < 1 || lines < 1 {
		return nil
	}
	return f
}

// columnsOf is how wide the terminal is that w writes to; 0 if it is none, or does not
// say.
func columnsOf(w any) int {
	f := fileOf(w)
	if f == nil || !term.IsTerminal(f.Fd()) {
		return 0
	}
	columns, _, err := term.GetSize(f.Fd())
	if err != nil {
		return 0
	}
	return max(0, columns)
}

// keyboardOf is the terminal that r is; else nil.
func keyboardOf(r io.Reader) *os.File {
	f, ok := r.(*os.File)
	if !ok || !term.IsTerminal(f.Fd()) || !foreground(f) {
		return nil
	}
	return f
}
