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

	"github.com/refrain-dev/refrain/internal/child"
	"github.com/refrain-dev/refrain/internal/procgroup"
	"github.com/refrain-dev/refrain/internal/propagate"
)

// pipeDelay limits how long the agent reads a command's output after the command has ended or been
// killed, because a process that it started may keep the pipe open.
const pipeDelay = time.Second

// process is one run of a command, ready to be started, and as it travels to another machine.
type process struct {
	Args     []string      `json:"args"`
	Env      []string      `json:"env,omitempty"` // besides what it inherits
	CleanEnv bool          `json:"clean_env,omitempty"`
	Inherit  []string      `json:"inherit,omitempty"`
	Withhold []string      `json:"withhold,omitempty"`
	Dir      string        `json:"dir,omitempty"`   // below the root
	Files    []string      `json:"files,omitempty"` // paths in Args and Env that must not lead out of the root
	Stdin    string        `json:"stdin,omitempty"`
	Limit    int64         `json:"limit"`             // of stdout and of stderr, in bytes
	Timeout  time.Duration `json:"timeout,omitempty"` // 0 is none
}

// ended has the exit code and the output of a command.
type ended struct {
	Code   int    `json:"code"` // -1 for a signal
	State  string `json:"state"`
	Stdout string `json:"stdout,omitempty"`
	Stderr string `json:"stderr,omitempty"`
}

// run starts the command for a call of an ID, in a folder below root, and waits for it. The error
// says that it could not be started or was killed.
func (p *process) run(parent context.Context, root, id string) (ended, error) {
	dir, err := workDir(root, p.Dir)
	if err != nil {
		return ended{}, err
	}
	if err := checkFiles(root, p.Dir, p.Files); err != nil {
		return ended{}, err
	}
	ctx := parent
	if p.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, p.Timeout,
			fmt.Errorf("it did not end in its timeout of %s: %w", p.Timeout, context.DeadlineExceeded))
		defer cancel()
	}
	ctx, kill := context.WithCancelCause(ctx)
	defer kill(nil)

	cmd := exec.CommandContext(ctx, p.Args[0], p.Args[1:]...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = p.environ(parent, dir, id), dir, pipeDelay
	if p.Stdin != "" {
		done, err := child.Input(cmd, strings.NewReader(p.Stdin))
		if err != nil {
			return ended{}, fmt.Errorf("run command %q: %w", p.Args[0], err)
		}
		defer done()
	}
	stdout := &limited{stream: "stdout", limit: p.Limit, exceeded: kill}
	stderr := &limited{stream: "stderr", limit: p.Limit, exceeded: kill}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	procgroup.Lead(cmd)

	err = cmd.Start()
	if err == nil {
		err = cmd.Wait()
		procgroup.Kill(cmd.Process)
	}
	switch _, exited := errors.AsType[*exec.ExitError](err); {
	case err != nil && parent.Err() != nil:
		return ended{}, context.Cause(parent)
	case err != nil && ctx.Err() != nil:
		return ended{}, fmt.Errorf("run command %q: %w", p.Args[0], context.Cause(ctx))
	case err != nil && !exited && !errors.Is(err, exec.ErrWaitDelay):
		return ended{}, fmt.Errorf("run command %q: %w", p.Args[0], err)
	}
	secrets := child.Secrets(p.Env)
	return ended{
		Code: cmd.ProcessState.ExitCode(), State: cmd.ProcessState.String(),
		Stdout: cleanText(secrets.StrikeWhole(stdout.String())), Stderr: cleanText(secrets.StrikeWhole(stderr.String())),
	}, nil
}

// environ is the environment of the command. A variable that stands twice in it has its last value.
func (p *process) environ(ctx context.Context, dir, id string) []string {
	env := child.Inheritance{Clean: p.CleanEnv, Inherit: p.Inherit, Withhold: p.Withhold}.Environ()
	env = append(propagate.Env(ctx, append(env, "PWD="+dir)), EnvCallID+"="+id)
	return append(env, p.Env...)
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
