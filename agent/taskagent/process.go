// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
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

// process describes one run of a command that is ready to start. Its JSON is sent to another machine that runs the command.
type process struct {
	Args     []string      `json:"args"`
	Env      []string      `json:"env,omitempty"` // in addition to the inherited variables
	CleanEnv bool          `json:"clean_env,omitempty"`
	Inherit  []string      `json:"inherit,omitempty"`
	Withhold []string      `json:"withhold,omitempty"`
	Dir      string        `json:"dir,omitempty"`   // below the root
	Files    []string      `json:"files,omitempty"` // files in Args and Env that must be inside the root
	Folders  []string      `json:"folders,omitempty"`
	Open     []openPath    `json:"open,omitempty"` // files that the command inherits open, as descriptors from 3 on
	Stdin    string        `json:"stdin,omitempty"`
	Limit    int64         `json:"limit"`             // of stdout and of stderr, in bytes; a coding agent may print more
	Timeout  time.Duration `json:"timeout,omitempty"` // 0 means no limit

	DirChosen bool `json:"dir_chosen,omitempty"` // Dir depends on the value of a placeholder

	Report string `json:"report,omitempty"` // a file below Dir that the command writes; "" means none

	codingAgent

	Sandbox  *Sandbox `json:"sandbox,omitempty"`
	boxWrite []string // what a coding agent needs for itself in a sandbox
	boxReads bool     // in a sandbox it may only read the folder in which it works
	folder   Folder   // that of Around
}

// codingAgent is what a process has besides if it is a coding agent; the zero value is any other command.
type codingAgent struct {
	CLI   string        `json:"cli,omitempty"`   // the name of the coding agent; "" for any other command
	Idle  time.Duration `json:"idle,omitempty"`  // the longest time without output; 0 means no limit
	Grace time.Duration `json:"grace,omitempty"` // how long the command may take to end when asked; with 0 it is killed at once
	// ACP has the permissions of a coding agent that gets Stdin over the Agent Client Protocol; the Stdout of
	// its result is then the report. "" means that the command does not speak the protocol.
	ACP   codingcli.Permissions `json:"acp,omitempty"`
	Allow []string              `json:"allow,omitempty"` // further commands that an agent with ACP may run

	continues bool         // it continues its conversation
	before    conversation // the conversation that it continues
	fresh     []string     // the Args that begin a new conversation; nil if Args do so already
	renewed   string       // why it began a new conversation in place of before

	room budget.Reservation // the cost that it is told it may spend
	tell func(string)       // shows what it does, as it is (see teller); nil shows nothing

	store      func(text string) error // stores its transcript while it works; nil stores nothing
	transcript int64                   // the version of the transcript's artifact; 0 if there is none yet
}

// completion has the exit code and the output of a command.
type completion struct {
	Started bool   `json:"started,omitempty"` // a coding agent was started, even if it was killed; false for other commands
	Idle    bool   `json:"idle,omitempty"`    // Refrain ended it because it printed nothing
	Code    int    `json:"code"`              // -1 if a signal ended it
	State   string `json:"state"`
	Stdout  string `json:"stdout,omitempty"`
	Stderr  string `json:"stderr,omitempty"`
	Report  string `json:"report,omitempty"`
	Script  string `json:"script,omitempty"` // the transcript of a coding agent
}

// runAndShow calls run for the call of a step. For a coding agent it also yields lines that show what the agent does.
func (p *process) runAndShow(ctx agent.InvocationContext, root string, yield func(*session.Event, error) bool) (got completion,
	err error) {
	if p.CLI == "" {
		return p.run(ctx, root, drive.At(ctx).CallID())
	}
	id := drive.At(ctx).CallID()
	p.store = func(text string) error { return p.replaceTranscript(ctx, text) }
	meanwhile(ctx, yield, func(ctx context.Context, tell func(string)) {
		p.tell = tell
		got, err = p.run(ctx, root, id)
	})
	return got, err
}

// run starts the command for the call with the given ID, in a folder below root, and waits for it. It returns an
// error if the command could not be started or was killed, or if its files or its report are not as they must be.
func (p *process) run(parent context.Context, root, id string) (completion, error) {
	work, err := openWorkDir(root, p.Dir)
	if err != nil {
		return completion{}, err
	}
	defer work.folder.Close()
	dir := work.path
	open, err := p.checkPaths(root, work)
	if err != nil {
		return completion{}, err
	}
	defer closeAll(open)
	if err := removeReport(work.folder, p.Report); err != nil {
		return completion{}, err
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

	box, err := p.makeBox(dir)
	if err != nil {
		return completion{}, err
	}
	defer box.done()
	cmd := exec.CommandContext(ctx, p.Args[0], p.Args[1:]...)
	cmd.Env, cmd.Dir, cmd.WaitDelay, cmd.ExtraFiles = p.environ(parent, dir, id, box.env), dir, pipeDelay, open
	if p.Stdin != "" && p.ACP == "" {
		done, err := child.Input(cmd, strings.NewReader(p.Stdin))
		if err != nil {
			return completion{}, fmt.Errorf("run command %q: %w", p.Args[0], err)
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
	var kept bytes.Buffer // the part of a coding agent's output that Read needs
	tail := &limited.Tail{Most: p.Limit}
	if p.CLI != "" { // a coding agent may print any amount of text for people
		cmd.Stderr = &troubles{to: tail, tell: p.teller(dir)}
	}
	procgroup.Lead(cmd)
	finish := func() {}
	script := new(codingcli.Transcript)
	if p.CLI != "" {
		if finish, script, err = p.watch(cmd, &kept, id, kill); err != nil {
			return completion{}, fmt.Errorf("run command %q: %w", p.Args[0], err)
		}
		defer p.storeMeanwhile(script)()
	}

	if p.CLI != "" && errors.Is(cmd.Err, exec.ErrNotFound) {
		if err := FindCLI(p.Args[0]); err != nil {
			finish()
			return completion{}, err
		}
	}
	if err = box.apply(cmd); err == nil {
		err = work.start(cmd)
	}
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
		return completion{}, err
	}
	report := ""
	if err == nil {
		if err := p.checkReplaced(root); err != nil {
			return completion{}, err
		}
		if report, err = readReport(work.folder, p.Report, p.Limit); err != nil {
			return completion{}, err
		}
	}
	secrets := child.Secrets(p.Env)
	_, idle := errors.AsType[idleError](err)
	return completion{
		Started: p.CLI != "", Idle: idle, Code: cmd.ProcessState.ExitCode(), State: cmd.ProcessState.String(),
		Stdout: cleanText(secrets.StrikeWhole(stdout.String() + kept.String())),
		Stderr: cleanText(secrets.StrikeWhole(stderr.String() + tail.String())),
		Report: cleanText(secrets.StrikeWhole(report)), Script: cleanText(secrets.StrikeWhole(script.String())),
	}, err
}

// teller returns a function that passes words to p.tell, without secrets and with names of files relative to dir; nil if p.tell
// is nil.
func (p *process) teller(dir string) func(words string) {
	if p.tell == nil {
		return nil
	}
	secrets := child.Secrets(p.Env)
	return func(words string) { p.tell(secrets.Strike(strings.ReplaceAll(words, dir+"/", ""))) }
}

// watch prepares the command of a coding agent. The agent is asked to end before it is killed. It is ended if it prints nothing
// for p.Idle. Only the lines of its output that are needed later are kept. The caller calls finish when the agent has ended;
// finish also ends the processes that the agent has left. The transcript is complete after finish.
func (p *process) watch(cmd *exec.Cmd, kept *bytes.Buffer, id string, kill context.CancelCauseFunc) (finish func(),
	script *codingcli.Transcript, err error) {
	cmd.Cancel = func() error { return procgroup.Terminate(cmd.Process) }
	cmd.WaitDelay = p.Grace
	doing := p.teller(cmd.Dir)
	heard, stop := func() {}, func() bool { return true }
	if p.Idle > 0 {
		idle := time.AfterFunc(p.Idle, func() { kill(idleError(p.Idle)) })
		heard, stop = func() { idle.Reset(p.Idle) }, idle.Stop
	}
	var last func()
	if p.ACP != "" {
		script = new(codingcli.Transcript)
		if last, err = p.talk(cmd, kept, heard, doing, script, kill); err != nil {
			stop()
			return nil, nil, err
		}
	} else {
		lines := &codingcli.Lines{Program: p.CLI, Dir: cmd.Dir, Heard: heard, Doing: doing}
		script = &lines.Script
		cmd.Stdout, last = lines, func() {
			kept.Write(lines.Kept()) // one line of each kind and one of files; all are bounded
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
	}, script, nil
}

// troubles is a writer for the standard error of a coding agent. It passes the output to to, and calls tell with each line that
// shows that the provider does not answer, because some programs print nothing else for minutes.
type troubles struct {
	to   io.Writer
	tell func(string) // nil tells nobody
	line []byte
}

var troubleLine = lazyregexp.New(`(?i)attempt \d+ failed|reconnecting|stream error|fetch failed|ECONNREFUSED|ENOTFOUND|ETIMEDOUT|` +
	`connection refused|overloaded`)

// longestTrouble is the part of a line, in bytes, in which troubles searches.
const longestTrouble = 2000

// Write returns what the Write of to returns.
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

// environ returns the environment of the command. If a variable is in it twice, the last value counts.
func (p *process) environ(ctx context.Context, dir, id string, more []string) []string {
	env := child.Inheritance{Clean: p.CleanEnv, Inherit: p.Inherit, Withhold: p.Withhold}.Environ()
	env = append(propagate.Env(ctx, append(env, "PWD="+dir)), EnvCallID+"="+id)
	return slices.Concat(env, more, p.Env)
}
