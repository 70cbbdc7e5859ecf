// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/procgroup"
)

// pipeDelay is how long a command's output is still read after the command has
// ended or been killed, if something that it started keeps the pipe open.
const pipeDelay = time.Second

// process is one run of a command, ready to be started.
type process struct {
	args    []string
	env     []string
	dir     string
	stdin   string
	limit   int64         // of stdout and of stderr, in bytes
	timeout time.Duration // 0 is none
}

// ended is what a command left.
type ended struct {
	code           int // -1 for a signal
	state          string
	stdout, stderr string
}

// run starts the command and waits for it. The error says that it could not be
// started or was killed.
func (p *process) run(parent context.Context) (ended, error) {
	ctx := parent
	if p.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, p.timeout,
			fmt.Errorf("it did not end in its timeout of %s: %w", p.timeout, context.DeadlineExceeded))
		defer cancel()
	}
	ctx, kill := context.WithCancelCause(ctx)
	defer kill(nil)

	cmd := exec.CommandContext(ctx, p.args[0], p.args[1:]...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = p.env, p.dir, pipeDelay
	if p.stdin != "" {
		cmd.Stdin = strings.NewReader(p.stdin)
	}
	stdout := &limited{stream: "stdout", limit: p.limit, exceeded: kill}
	stderr := &limited{stream: "stderr", limit: p.limit, exceeded: kill}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	procgroup.Lead(cmd)

	err := cmd.Start()
	if err == nil {
		err = cmd.Wait()
		procgroup.Kill(cmd.Process)
	}
	switch _, exited := errors.AsType[*exec.ExitError](err); {
	case err != nil && parent.Err() != nil:
		return ended{}, context.Cause(parent)
	case err != nil && ctx.Err() != nil:
		return ended{}, fmt.Errorf("run command %q: %w", p.args[0], context.Cause(ctx))
	case err != nil && !exited && !errors.Is(err, exec.ErrWaitDelay):
		return ended{}, fmt.Errorf("run command %q: %w", p.args[0], err)
	}
	return ended{
		code: cmd.ProcessState.ExitCode(), state: cmd.ProcessState.String(),
		stdout: cleanText(stdout.String()), stderr: cleanText(stderr.String()),
	}, nil
}

// limited is a buffer that refuses to grow beyond its limit.
type limited struct {
	stream   string
	limit    int64
	exceeded context.CancelCauseFunc

	buf bytes.Buffer
}

func (l *limited) Write(p []byte) (int, error) {
	if int64(l.buf.Len()+len(p)) > l.limit {
		err := &LimitError{Stream: l.stream, Limit: l.limit}
		l.exceeded(err)
		return 0, err
	}
	return l.buf.Write(p)
}

func (l *limited) String() string { return l.buf.String() }
