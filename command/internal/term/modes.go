// SPDX-License-Identifier: Apache-2.0

package term

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/pflag"
)

// The modes of progress.
const (
	Auto  = "auto"
	TTY   = "tty"
	Plain = "plain"
	JSON  = "json"
	Quiet = "quiet"
	Chat  = "chat" // only what agents say, for the verb console
)

// Mode returns the mode in which to show progress. A chosen mode is used even if it fits the output badly; auto is a tree on a
// terminal, and otherwise lines. Only standard error matters, because the answer may go to a file.
func Mode(e *Env, mode string) (string, error) {
	screen := ScreenOf(e.Stderr)
	switch mode {
	case Plain, JSON, Quiet, Chat:
		return mode, nil
	case TTY:
		if screen == nil {
			return "", errors.New("--progress tty: standard error is not a terminal, or has no size; use plain")
		}
		return mode, nil
	case Auto:
		if screen == nil || !foreground(screen) || e.Getenv("TERM") == "dumb" || onBuildServer(e) {
			return Plain, nil
		}
		return TTY, nil
	}
	return "", fmt.Errorf("--progress %q: use auto, plain, json or quiet, or tty for a tree in the terminal", mode)
}

func onBuildServer(e *Env) bool {
	return !slices.Contains([]string{"", "0", "false", "no"}, e.Getenv("CI"))
}

// Asks reports whether a person sits at the terminal who can answer questions while progress is shown in this mode.
func Asks(e *Env, mode string) bool {
	mode, err := Mode(e, mode)
	return err == nil && (mode == TTY || mode == Plain) && KeyboardOf(e.Stdin) != nil && ScreenOf(e.Stderr) != nil && !onBuildServer(e)
}

// Shown are the flags that say how a run is shown, and whether a limit is a failure.
type Shown struct {
	Mode        string // see the function Mode
	ZeroOnLimit bool
	json        bool
	flags       *pflag.FlagSet // nil: none was added
}

// Add adds the flags. when begins the help of each.
func (s *Shown) Add(fl *pflag.FlagSet, when string) {
	s.flags = fl
	fl.StringVar(&s.Mode, "progress", Auto, when+"show progress as auto, tty, plain, json or quiet (env REFRAIN_PROGRESS)")
	fl.BoolVar(&s.json, "json", false, when+"same as --progress json: one line of JSON on stdout for each event")
	fl.BoolVar(&s.ZeroOnLimit, "exit-zero-on-limit", false, when+"exit with 0 instead of 3 when a limit stopped the run")
}

// Choose sets the mode to what the flags and the environment say.
func (s *Shown) Choose(e *Env) error {
	given := s.flags != nil && s.flags.Changed("progress")
	switch {
	case s.json && given && s.Mode != JSON:
		return fmt.Errorf("--json and --progress %s: give one of them", s.Mode)
	case s.json:
		s.Mode = JSON
	case !given:
		s.Mode = cmp.Or(e.Getenv("REFRAIN_PROGRESS"), Auto)
	}
	return nil
}

// ScreenOf returns the terminal behind w if it can be drawn on, otherwise nil.
func ScreenOf(w any) *os.File {
	f := fileOf(w)
	if f == nil || !term.IsTerminal(f.Fd()) {
		return nil
	}
	if columns, lines, err := term.GetSize(f.Fd()); err != nil || columns < 1 || lines < 1 {
		return nil
	}
	return f
}

// ColumnsOf returns the width of the terminal behind w; 0 if w is not a terminal, or its width is unknown.
func ColumnsOf(w any) int {
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

// KeyboardOf returns the terminal behind r, otherwise nil.
func KeyboardOf(r io.Reader) *os.File {
	f, ok := r.(*os.File)
	if !ok || !term.IsTerminal(f.Fd()) || !foreground(f) {
		return nil
	}
	return f
}
