// SPDX-License-Identifier: Apache-2.0

package running

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/process/child"
	"github.com/refrain-dev/refrain/internal/process/procgroup"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// checkShell returns an error if the shell would refuse the syntax of a command line. It runs nothing.
func checkShell(ctx context.Context, line string) error {
	cmd := exec.CommandContext(ctx, "sh", "-n", "-c", line)
	cmd.Env = child.Inheritance{}.Environ()
	said, err := cmd.CombinedOutput()
	if _, refused := errors.AsType[*exec.ExitError](err); !refused || ctx.Err() != nil {
		return nil // without a shell, running the line says so
	}
	return fmt.Errorf("the shell does not understand %s: %s", brief.Clip(brief.Clean(line), 200), brief.Clip(brief.Clean(strings.TrimSpace(string(said))), 200))
}

// runShell runs a command line of the shell in a folder until it ends, and then kills what it has left running. env is added to the
// variables that commands inherit. The process of the result is nil if the shell could not be started. A background process that keeps the
// output open is no error.
func runShell(ctx context.Context, line, dir string, env []string, output io.Writer) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir, cmd.Env = dir, append(child.Inheritance{}.Environ(), env...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = output, output, time.Second
	procgroup.Lead(cmd)
	err := cmd.Run()
	if cmd.Process != nil {
		_ = procgroup.Kill(cmd.Process)
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	return cmd, err
}
