// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/internal/process/child"
	"github.com/refrain-dev/refrain/internal/process/interpreter"
	"github.com/refrain-dev/refrain/internal/process/procgroup"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/limited"
)

// CommandConfig describes a command that gets events.
type CommandConfig struct {
	Config
	// Args is the program and its arguments. No shell reads them. Required.
	Args []string
	// Dir is the command's working directory; the default is the current one.
	Dir string
	// Env is the command's environment, as NAME=value. Nil means that of this process, without the
	// variables that Refrain itself uses: REFRAIN_…, TEMPORAL_…, keys of models, headers of
	// telemetry, PGPASSWORD.
	Env []string
	// Inherit names variables that a nil Env includes nevertheless. Withhold names further variables
	// that it leaves out.
	Inherit, Withhold []string
}

// pipeDelay limits how long a hook reads the output of a command that has ended, because a process
// that it started may keep the output open.
const pipeDelay = time.Second

// NewCommand returns a hook that runs a command for each event, with the event as JSON on its
// standard input, which is a file that is complete before the command starts. Exit code 0 lets the
// action pass. With Veto, exit code 1 stops the announced action, and the standard error is the
// reason. The standard output is ignored, with one exception: a veto in a webhook's form, {"veto":
// true}, together with exit code 0 is a contradiction, and the call fails. The command is killed
// after its timeout. When it has ended, all processes that it started are killed, on systems with
// process groups.
func NewCommand(cfg CommandConfig) (*Hook, error) {
	if len(cfg.Args) == 0 || cfg.Args[0] == "" {
		return nil, errors.New("the command has no program")
	}
	name := "command " + cfg.Args[0]
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := interpreter.ReadsCode(cfg.Args); err != nil {
		return nil, fmt.Errorf("%s: the event comes on standard input: %w", name, err)
	}
	c := &command{args: slices.Clone(cfg.Args), dir: cfg.Dir, env: slices.Clone(cfg.Env), veto: cfg.Veto,
		inherits: child.Inheritance{Inherit: slices.Clone(cfg.Inherit), Withhold: slices.Clone(cfg.Withhold)}}
	return &Hook{name: name, cfg: cfg.Config, call: c.call}, nil
}

type command struct {
	args, env []string
	inherits  child.Inheritance // with a nil env
	dir       string
	veto      bool
}

func (c *command) call(ctx context.Context, ev *Event) error {
	body, err := json.Marshal(ev)
	if err != nil {
		return fmt.Errorf("encode the event: %w", err)
	}
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = c.dir, c.env, pipeDelay
	if c.env == nil {
		cmd.Env = c.inherits.Environ()
	}
	done, err := child.Input(cmd, bytes.NewReader(append(body, '\n')))
	if err != nil {
		return err
	}
	defer done()
	stderr := &limited.Head{Most: 4 << 10}
	cmd.Stdout, cmd.Stderr = io.Discard, stderr
	gate, stdout := c.veto && ev.Type.Before(), &limited.Head{Most: answerLimit}
	if gate {
		cmd.Stdout = stdout
	}
	procgroup.Lead(cmd)
	if err = cmd.Start(); err == nil {
		err = cmd.Wait()
		procgroup.Kill(cmd.Process)
	}
	exit, exited := errors.AsType[*exec.ExitError](err)
	switch words := brief.Line(child.Secrets(c.env).Strike(stderr.String()), reasonText); {
	case exited && exit.ExitCode() == 1 && gate:
		return &VetoError{Reason: words}
	case exited && words != "":
		return fmt.Errorf("%w: %s", err, words)
	case err != nil && (cmd.ProcessState == nil || !cmd.ProcessState.Success()):
		return err
	}
	// An err is left where it left its output open.
	if veto, _, err := readVerdict([]byte(stdout.String())); err == nil && veto {
		return errors.New(`it says {"veto": true} and ends with exit code 0: a command vetoes by exit code 1, with the reason on its standard error`)
	}
	return nil
}
