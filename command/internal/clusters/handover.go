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
	// CallerVersion is the variable by which refrain tells refrain-temporal which version it is.
	CallerVersion = "REFRAIN_CALLER_VERSION"
)

// HandOver starts refrain-temporal in place of this process, because the SDK of Temporal would make every other
// command larger and slower. It returns only on an error. It refuses another program than refrain, because
// refrain-temporal does not have its code.
func HandOver(ctx context.Context, e *term.Env) error {
	if e.Code.Name != "" {
		return term.UsageError(fmt.Errorf("the program %s is built without the SDK of Temporal: give command.Main the "+
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

// findTemporal finds the program beside this one, or else on the PATH; never in the current folder.
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
	if path, err := exec.LookPath(name); err == nil { // one of the current folder is an error
		return path, nil
	}
	version := versionOf("github.com/refrain-dev/refrain")
	if version == "" || strings.Contains(version, "+") || strings.Count(version, "-") > 1 { // of a checkout
		version = "latest"
	}
	return "", fmt.Errorf("this needs the program %s, which has the SDK of Temporal; it is neither beside refrain nor "+
		"on the PATH. Install it from a checkout of refrain with:\n  go install -C temporal ./cmd/%[1]s\n"+
		"or from a release with:\n  go install github.com/refrain-dev/refrain/temporal/cmd/%[1]s@%s", withTemporal, version)
}

// versionOf is the version of a module in this program; empty if it is unknown, as in a checkout.
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

// OtherVersion says of a program with Temporal that the refrain which has started it is of another
// version; empty if the two are the same, or a version is unknown.
func OtherVersion(e *term.Env) string {
	theirs, ours := e.Getenv(CallerVersion), versionOf("github.com/refrain-dev/refrain")
	if theirs == "" || ours == "" || theirs == ours {
		return ""
	}
	return fmt.Sprintf("refrain is version %s, and %s version %s: install the same", theirs, withTemporal, ours)
}
