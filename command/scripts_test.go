// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

// TestScripts runs testdata/script, one file a topic: they read as the manual
// of the command. What runs at once in a process has tests with the race detector in its own package.
func TestScripts(t *testing.T) {
	longtest.WithoutRace(t)
	examples, err := filepath.Abs("../examples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			state, err := os.MkdirTemp("", "refrain-state-")
			if err != nil {
				return err
			}
			e.Defer(func() { _ = os.RemoveAll(state) })
			e.Setenv("XDG_STATE_HOME", state) // a script has no home
			e.Setenv("EXAMPLES", examples)
			e.Setenv("GOCACHE", buildCache())       // for an example that runs a Go program
			e.Setenv("GORACE", "atexit_sleep_ms=0") // no second's sleep at the end of each command
			return nil
		},
	})
}

// buildCache is where the go command keeps what it has compiled. A script has no
// home to find it in.
func buildCache() string {
	if dir := os.Getenv("GOCACHE"); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "go-build")
}
