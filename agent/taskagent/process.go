// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/taskagent/internal/codingcli"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/internal/process/child"
	"github.com/refrain-dev/refrain/internal/process/procgroup"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/internal/values/limited"
	"github.com/refrain-dev/refrain/internal/values/propagate"
	"github.com/refrain-dev/refrain/session"
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
	Files    []string      `json:"files,omitempty"` // files in Args and Env that must be inside the root
	Folders  []string      `json:"folders,omitempty"`
	Open     []openPath    `json:"open,omitempty"` // the command gets them open, as the descriptors from 3 on
	Stdin    string        `json:"stdin,omitempty"`
	Limit    int64         `json:"limit"`             // of stdout and of stderr, in bytes; a coding agent may print more
	Timeout  time.Duration `json:"timeout,omitempty"` // 0 is none

	DirChosen bool `json:"dir_chosen,omitempty"` // a value has chosen Dir

	Report string `json:"report,omitempty"` // a file below Dir that the command writes; "" is none

	CLI   string        `json:"cli,omitempty"`   // the coding agent that it is; of its output only what counts is kept
	Idle  time.Duration `json:"idle,omitempty"`  // the longest time without output; 0 is any
	Grace time.Duration `json:"grace,omitempty"` // the time to end after it is asked to; 0: it is killed at once
	// ACP are the permissions of a coding agent that speaks the Agent Client Protocol, in which it gets Stdin; its
	// Stdout is then the report. "" is any other.
	ACP   codingcli.Permissions `json:"acp,omitempty"`
	Allow []string              `json:"allow,omitempty"` // commands that such an agent may run besides

	continues bool         // whether a coding agent goes on with its conversation
	before    conversation // that it goes on with
	fresh     []string     // its Args without that; nil if there is none
	renewed   string       // why it began a new one in place of that

	room budget.Reservation // what a coding agent is told that it may cost
	tell func(string)       // shows what a coding agent does; nil is nobody
}

// ended has the exit code and the output of a command.
type ended struct {
	Started bool   `json:"started,omitempty"` // also set if it was killed
	Idle    bool   `json:"idle,omitempty"`    // it was ended because it printed nothing
	Code    int    `json:"code"`              // -1 for a signal
	State   string `json:"state"`
	Stdout  string `json:"stdout,omitempty"`
	Stderr  string `json:"stderr,omitempty"`
	Report  string `json:"report,omitempty"`
}

// shown is run for the call of a step. It shows what a coding agent does.
func (p *process) shown(ctx agent.InvocationContext, root string, yield func(*session.Event, error) bool) (got ended,
	err error) {
	if p.CLI == "" {
		return p.run(ctx, root, drive.At(ctx).CallID())
	}
	id := drive.At(ctx).CallID()
	meanwhile(ctx, yield, func(ctx context.Context, tell func(string)) {
		p.tell = tell
		got, err = p.run(ctx, root, id)
	})
	return got, err
}

// run starts the command for a call of an ID, in a folder below root, and waits for it. The error
// says that it could not be started or was killed.
func (p *process) run(parent context.Context, root, id string) (ended, error) {
	work, err := openWorkDir(root, p.Dir)
	if err != nil {
		return ended{}, err
	}
	defer work.folder.Close()
	dir := work.path
	open, err := p.checkPaths(root, work)
	if err != nil {
		return ended{}, err
	}
	defer closeAll(open)
	if err := removeReport(work.folder, p.Report); err != nil {
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
	cmd.Env, cmd.Dir, cmd.WaitDelay, cmd.ExtraFiles = p.environ(parent, dir, id), dir, pipeDelay, open
	if p.Stdin != "" && p.ACP == "" {
		done, err := child.Input(cmd, strings.NewReader(p.Stdin))
		if err != nil {
			return ended{}, fmt.Errorf("run command %q: %w", p.Args[0], err)
		}
		defer done()
	}
	upToLimit := func(stream string) *limited.Head {
		return &limited.Head{Most: p.Limit, Full: func() error {
			err := &LimitError{Stream: stream, Limit: p.Limit}
			kill(err)
			return err
		}}
	}
	stdout, stderr := upToLimit("stdout"), upToLimit("stderr")
	cmd.Stdout, cmd.Stderr = stdout, stderr
	var kept bytes.Buffer // of what a coding agent prints
	tail := &limited.Tail{Most: p.Limit}
	if p.CLI != "" { // what it prints for people does not end it
		cmd.Stderr = &troubles{to: tail, tell: p.tell}
	}
	procgroup.Lead(cmd)
	finish := func() {}
	if p.CLI != "" {
		if finish, err = p.watch(cmd, &kept, id, kill); err != nil {
			return ended{}, fmt.Errorf("run command %q: %w", p.Args[0], err)
		}
	}

	if p.CLI != "" && errors.Is(cmd.Err, exec.ErrNotFound) {
		if err := FindCLI(p.Args[0]); err != nil {
			finish()
			return ended{}, err
		}
	}
	err = work.start(cmd)
	started := err == nil
	if started {
		err = cmd.Wait()
		procgroup.Kill(cmd.Process)
	}
	finish()
	switch _, exited := errors.AsType[*exec.ExitError](err); {
	case err != nil && parent.Err() != nil:
		err = context.Cause(parent)
	case errors.Is(context.Cause(ctx), errAnswered):
		err = nil
	case err != nil && ctx.Err() != nil:
		err = fmt.Errorf("run command %q: %w", p.Args[0], context.Cause(ctx))
	case err != nil && !exited && !errors.Is(err, exec.ErrWaitDelay):
		err = fmt.Errorf("run command %q: %w", p.Args[0], err)
	default:
		err = nil
	}
	if err != nil && (p.CLI == "" || !started) {
		return ended{}, err
	}
	report := ""
	if err == nil {
		if err := p.checkReplaced(root); err != nil {
			return ended{}, err
		}
		if report, err = readReport(work.folder, p.Report, p.Limit); err != nil {
			return ended{}, err
		}
	}
	secrets := child.Secrets(p.Env)
	_, idle := errors.AsType[idleError](err)
	return ended{
		Started: p.CLI != "", Idle: idle, Code: cmd.ProcessState.ExitCode(), State: cmd.ProcessState.String(),
		Stdout: cleanText(secrets.StrikeWhole(stdout.String() + kept.String())),
		Stderr: cleanText(secrets.StrikeWhole(stderr.String() + tail.String())),
		Report: cleanText(secrets.StrikeWhole(report)),
	}, err
}

// watch prepares the command of a coding agent: it is asked to end before it is killed, it may not be silent for long,
// and of its output only what counts is kept. The function that watch returns is called when it has ended, and ends what
// it has left behind.
func (p *process) watch(cmd *exec.Cmd, kept *bytes.Buffer, id string, kill context.CancelCauseFunc) (finish func(), err error) {
	cmd.Cancel = func() error { return procgroup.Terminate(cmd.Process) }
	cmd.WaitDelay = p.Grace
	var doing func(words string)
	if p.tell != nil {
		secrets, dir := child.Secrets(p.Env), cmd.Dir
		doing = func(words string) { p.tell(secrets.StrikeWhole(strings.ReplaceAll(words, dir+"/", ""))) }
	}
	heard, stop := func() {}, func() bool { return true }
	if p.Idle > 0 {
		idle := time.AfterFunc(p.Idle, func() { kill(idleError(p.Idle)) })
		heard, stop = func() { idle.Reset(p.Idle) }, idle.Stop
	}
	var last func()
	if p.ACP != "" {
		if last, err = p.talk(cmd, kept, heard, doing, kill); err != nil {
			stop()
			return nil, err
		}
	} else {
		lines := &codingcli.Lines{Program: p.CLI, Dir: cmd.Dir, Heard: heard, Doing: doing}
		cmd.Stdout, last = lines, func() {
			kept.Write(lines.Kept()) // a line of each kind and one of files, which are bounded
			if more := codingcli.Programs[p.CLI].Record; more != nil {
				kept.Write(more(cmd.Env, kept.Bytes())) // one line
			}
		}
	}
	return func() {
		stop()
		last()
		if id != "" {
			procgroup.Sweep(EnvCallID + "=" + id)
		}
	}, nil
}

// troubles passes the standard error of a coding agent on, and tells lines from which a person learns that its provider does not answer: some
// programs print nothing else for minutes.
type troubles struct {
	to   io.Writer
	tell func(string) // nil is nobody
	line []byte
}

var troubleLine = lazyregexp.New(`(?i)attempt \d+ failed|reconnecting|stream error|fetch failed|ECONNREFUSED|ENOTFOUND|ETIMEDOUT|` +
	`connection refused|overloaded`)

// longestTrouble is how much of a line is looked at, in bytes.
const longestTrouble = 2000

// Write never fails other than to does.
func (t *troubles) Write(b []byte) (int, error) {
	if t.tell != nil {
		for _, c := range b {
			if c != '\n' {
				if len(t.line) < longestTrouble {
					t.line = append(t.line, c)
				}
				continue
			}
			if troubleLine().Match(t.line) {
				t.tell(codingcli.Waits + "its provider does not answer: " + strings.ToValidUTF8(string(t.line), "\uFFFD"))
			}
			t.line = t.line[:0]
		}
	}
	return t.to.Write(b)
}

// environ is the environment of the command. A variable that stands twice in it has its last value.
func (p *process) environ(ctx context.Context, dir, id string) []string {
	env := child.Inheritance{Clean: p.CleanEnv, Inherit: p.Inherit, Withhold: p.Withhold}.Environ()
	env = append(propagate.Env(ctx, append(env, "PWD="+dir)), EnvCallID+"="+id)
	return append(env, p.Env...)
}
