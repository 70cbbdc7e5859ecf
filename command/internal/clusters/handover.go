// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/refrain-dev/refrain/command/internal/term"
)

const (
	withTemporal = "refrain-temporal"
	// CallerVersion is the variable in which refrain passes its version to refrain-temporal.
	CallerVersion = "REFRAIN_CALLER_VERSION"
)

// HandOver replaces this process with refrain-temporal, because the SDK of Temporal would make every other command larger and
// slower. It returns only on an error. A program other than refrain gets an error, because refrain-temporal does not have its
// code.
func HandOver(ctx context.Context, e *term.Env) error {
	if e.Code.Name != "" {
		return term.UsageError(fmt.Errorf("the program %s is built without the SDK of Temporal; give command.Main the "+
			"option command.Config{Cluster: cluster.Temporal{}}, from github.com/refrain-dev/refrain/temporal/cluster", e.Code.Name))
	}
	path, err := findTemporal()
	if err != nil {
		return &term.Exit{Code: term.ExitUsage, Err: err}
	}
	env := append(os.Environ(), CallerVersion+"="+versionOf("github.com/refrain-dev/refrain"))
	if err := become(ctx, path, append([]string{withTemporal}, e.Args...), env); err != nil {
		if exit, ok := errors.AsType[*term.Exit](err); ok {
			return exit
		}
		return term.Failure(fmt.Errorf("start %s: %w", path, err))
	}
	return nil
}

// findTemporal finds the program beside this executable, or else on the PATH; never in the current folder.
func findTemporal() (string, error) {
	name := withTemporal
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if self, err := os.Executable(); err == nil {
		beside := []string{filepath.Dir(self)}
		if real, err := filepath.EvalSymlinks(self); err == nil {
			beside = append(beside, filepath.Dir(real))
		}
		for _, dir := range beside {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return path, nil
			}
		}
	}
	if path, err := exec.LookPath(name); err == nil { // LookPath returns an error for a program in the current folder
		return path, nil
	}
	version := versionOf("github.com/refrain-dev/refrain")
	if version == "" || strings.Contains(version, "+") || strings.Count(version, "-") > 1 { // built from a checkout
		version = "latest"
	}
	return "", fmt.Errorf("a Temporal cluster needs the program %s, which is neither beside refrain nor on the PATH. "+
		"Install it from a checkout of refrain with:\n  go install -C temporal ./cmd/%[1]s\n"+
		"or from a release with:\n  go install github.com/refrain-dev/refrain/temporal/cmd/%[1]s@%s", withTemporal, version)
}

// versionOf returns the version of a module in this program; empty if it is unknown, as in a checkout.
func versionOf(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == module && m.Replace == nil && m.Version != "(devel)" {
			return m.Version
		}
	}
	return ""
}

// OtherVersion returns a warning if the refrain that started this program has another version; empty if the versions are equal,
// or one is unknown.
func OtherVersion(e *term.Env) string {
	theirs, ours := e.Getenv(CallerVersion), versionOf("github.com/refrain-dev/refrain")
	if theirs == "" || ours == "" || theirs == ours {
		return ""
	}
	return fmt.Sprintf("refrain has version %s, and %s has version %s; install one version of both", theirs, withTemporal, ours)
}
