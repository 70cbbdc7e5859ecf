// SPDX-License-Identifier: Apache-2.0

package running

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/refrain-dev/refrain/command/internal/codingloop"
	"github.com/refrain-dev/refrain/command/internal/deffile"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/command/internal/trust"
	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/internal/process/child"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/limited"
	"github.com/refrain-dev/refrain/supervisor"
)

// checkFirst runs the command of --until once before the agent is asked, and reports whether the command succeeds. With --branch,
// checkFirst creates the run's copy of the repository and runs the command in a checkout of it, so that the run starts from the files
// of this moment.
func (f *loopFlags) checkFirst(ctx context.Context, e *term.Env) (done bool, err error) {
	if f.branch != "" {
		if err := f.checkBranch(ctx); err != nil {
			return false, term.UsageError(err)
		}
	}
	if f.until == "" || f.agrees != "" || f.plan != "" || f.reviewOnly != "" {
		return false, nil
	}
	if f.run.shown.Mode != term.Quiet && f.run.shown.Mode != term.JSON {
		fmt.Fprintf(e.Stderr, "Before the agent is asked: %s\n", brief.Clip(brief.Clean(f.until), 200))
	}
	if f.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, f.timeout,
			fmt.Errorf("--until: the command has not ended within --timeout %s; give a longer --timeout", f.timeout))
		defer cancel()
	}
	if f.branch == "" {
		return f.succeeds(ctx, ".", nil)
	}
	f.run.session = supervisor.NewID()
	store := runfiles.Store(f.run.root)
	defer func() {
		if done || err != nil && !f.interrupts(ctx) { // there is no run
			err = errors.Join(err, workspace.Remove(context.WithoutCancel(ctx), store, f.run.session))
		}
	}()
	var exclude []string
	if notes, err := f.notesFile(); err == nil && notes != "" && !f.keepNotes {
		exclude = []string{notes}
	}
	cfg := workspace.Config{From: f.run.root, Exclude: exclude, Store: store, Run: f.run.session, Copy: f.copies(),
		Setup: runfiles.Setup(f.setupArgs(), nil), Copies: trust.Copies(e.Getenv), Owner: runfiles.Owner(f.run.root, runstore.Name(e, f.run.store))}
	if err := runstore.PrepareFolder(e, f.run.store); err != nil {
		return false, err
	}
	tree, err := workspace.Open(ctx, cfg)
	if err != nil {
		return false, err
	}
	defer tree.Close()
	err = tree.Clean(ctx, tree.Start(), nil, "", func(dir string, env []string) error {
		done, err = f.succeeds(ctx, dir, env)
		return err
	})
	return done, err
}

// checkBranch returns an error if the branch of the result cannot be made now.
func (f *loopFlags) checkBranch(ctx context.Context) error {
	err := workspace.CheckBranch(ctx, workspace.Config{From: f.run.root, Store: runfiles.Store(f.run.root), Run: "new"},
		strings.ReplaceAll(f.branch, "{{run}}", "new"), "")
	if errors.Is(err, workspace.ErrBranchExists) {
		err = fmt.Errorf("%w with --branch NAME; a run that made it and can go on does so with: refrain resume RUN", err)
	}
	return err
}

// succeeds runs the command of --until in a folder. It keeps the command's output for the first prompt, and returns an error if
// the command cannot be run.
func (f *loopFlags) succeeds(ctx context.Context, dir string, env []string) (bool, error) {
	output := &limited.Head{Most: codingloop.Longest, Full: func() error { return io.ErrShortWrite }} // ends the command
	cmd, err := runShell(ctx, f.until, dir, env, output)
	if cmd.Process == nil {
		return false, fmt.Errorf("--until: %w", err)
	}
	text := strings.ToValidUTF8(child.Secrets(cmd.Env).StrikeWhole(output.String()), "\uFFFD")
	f.run.set[codingloop.SaidKey] = strings.TrimRight(text, "\r\n")
	switch code := cmd.ProcessState.ExitCode(); {
	case errors.Is(context.Cause(ctx), term.ErrInterrupted): // with --detach there is no run
		return false, &term.Exit{Code: term.ExitInterrupted, Err: errors.New("--until: interrupted before the agent was asked; " +
			"there is no run, and your files are as they were")}
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case output.Cut():
		return false, term.UsageError(fmt.Errorf("--until: the output of the command is longer than %d MiB; %s",
			codingloop.Longest>>20, deffile.PrintLess))
	case code == 126 || code == 127:
		return false, term.UsageError(fmt.Errorf("--until: exit status %d: the shell cannot run %s; correct the command, or "+
			"install its program; if the agent is to create the program, write: test -x PROGRAM && PROGRAM", code, brief.Clean(f.until)))
	}
	return err == nil, nil
}

// interrupts reports whether Ctrl-C has ended the command of --until. Then the run begins paused, and runs the command again.
func (f *loopFlags) interrupts(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), term.ErrInterrupted) && !f.run.detach
}
