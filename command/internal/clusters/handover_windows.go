// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"errors"
	"os"
	"os/exec"

	"github.com/refrain-dev/refrain/command/internal/term"
)

// become runs another program, and exits with its exit code. Both processes receive the signals of the console.
func become(ctx context.Context, path string, args, env []string) error {
	defer term.OnInterrupt(ctx, func(os.Signal) {})()
	cmd := exec.Command(path, args[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return &term.Exit{Code: exit.ExitCode()}
	}
	if err == nil {
		return &term.Exit{Code: term.ExitOK}
	}
	return err
}
