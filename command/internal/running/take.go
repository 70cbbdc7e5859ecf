// SPDX-License-Identifier: Apache-2.0

package running

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/command/internal/trust"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/process/child"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/limited"
	"github.com/refrain-dev/refrain/session/mark"
)

func NewTake(e *term.Env) *cobra.Command {
	var store, branch, check string
	var split bool
	cmd := &cobra.Command{
		Use:   "take RUN",
		Short: "Make a branch of the files of a run",
		Long: `Make a branch of the files that a run has at this moment, even if the run failed, is
paused or was canceled. The run must have a workspace, such as that of refrain loop
--branch. The branch is new; it has a commit for each iteration that made one. Nothing is
checked out, and the run can still be resumed.

--split makes several branches, whose names begin with that of --branch. Commits that change
a file in common belong together. Of a plan each task is a branch: it stands on the commit
that the run began with, or on the branch of the last task with which it belongs together;
the file of the plan is a branch of its own. Without a plan, commits that belong together are
one branch. A branch that exists stays as it is, and the new one gets a number. --check runs a
command of the shell in a folder with the files of each branch, and says in which it fails.`,
		Example: `  refrain take last
  refrain take r_1f0c3a2b --branch half-done
  refrain take last --split
  refrain take last --split --check 'go test ./...'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, id, err := runstore.OpenStock(cmd.Context(), e, store, args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			if split {
				return term.Failure(takeParts(cmd.Context(), e, s, id, branch, check))
			}
			if check != "" {
				return term.UsageError(errors.New("--check needs --split; leave out one of them, or add the other"))
			}
			line, err := take(cmd.Context(), e, s, id, branch, false)
			if err != nil {
				return term.Failure(err)
			}
			fmt.Fprintln(e.Stdout, line)
			return nil
		},
	}
	runstore.Flag(cmd.Flags(), &store)
	cmd.Flags().StringVar(&branch, "branch", "", "`name` of the new branch (default: the name in the definition, or refrain/RUN; "+
		"with a number if it exists)")
	cmd.Flags().BoolVar(&split, "split", false, "make a branch for each task of a plan, or for each group of commits that change a file in common")
	cmd.Flags().StringVar(&check, "check", "", "`command` to run in a folder with the files of each branch of --split, such as 'go test ./...'")
	return cmd
}

// errNothingToTake means that no step of a run has changed files.
var errNothingToTake = errors.New("no step of the run has changed a file, so there is nothing to take")

// errNoWorkspace means that a run has no files of its own.
var errNoWorkspace = errors.New("the definition of the run has no workspace: its agents work on the files themselves")

// workspaceRun is a run with a workspace.
type workspaceRun struct {
	run     *mark.Run
	program *program.Program
	def     *definition.Definition
	files   any    // the value of runfiles.Key
	until   string // the command of --until; "" if it is unknown
}

// filesOf returns a run with its workspace.
func filesOf(ctx context.Context, s *runstore.Stock, id string) (*workspaceRun, error) {
	view, run, err := s.View(ctx, id)
	if err != nil {
		return nil, err
	}
	r := &workspaceRun{run: run}
	if r.program, err = program.Of(view); err != nil {
		return nil, err
	}
	if r.def, err = r.program.Definition(); err != nil {
		return nil, err
	}
	if r.def.Workspace == nil {
		return nil, errNoWorkspace
	}
	r.files, _ = view.State().Get(runfiles.Key)
	until, _ := view.State().Get("until")
	r.until, _ = until.(string)
	return r, nil
}

func (r *workspaceRun) place(e *term.Env) runfiles.Place {
	return runfiles.Place{Root: r.program.Root, Copies: trust.Copies(e.Getenv)}
}

// take makes a branch of the files of a run, and says where they went. If stopped is true, it does so only for a run that ended
// without handing over its result, and whose definition names a branch; otherwise it returns "".
func take(ctx context.Context, e *term.Env, s *runstore.Stock, id, branch string, stopped bool) (string, error) {
	r, err := filesOf(ctx, s, id)
	if stopped && errors.Is(err, errNoWorkspace) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	run, def := r.run, r.def
	_, where := runfiles.Value(r.files)
	over := run != nil && run.Status != mark.RunRunning
	if stopped && (!over || where != "" || def.Workspace.Result.Branch == "") {
		return "", nil
	}
	if err := r.program.Nearby(); err != nil {
		return "", err
	}
	reason := whyUnverified(run)
	made, err := def.Workspace.Take(ctx, r.place(e), id, r.files, branch, reason)
	if errors.Is(err, runfiles.ErrUnchanged) {
		err = errNothingToTake
	}
	if err != nil {
		return "", err
	}
	line := "Files: " + made
	if reason != "" {
		line += "; not verified, because " + reason
	}
	return brief.Clean(line), nil
}

// takeParts makes the branches of --split, and prints each. check is the command of --check; it may be empty.
func takeParts(ctx context.Context, e *term.Env, s *runstore.Stock, id, name, check string) error {
	r, err := filesOf(ctx, s, id)
	if err == nil {
		err = r.program.Nearby()
	}
	if err != nil {
		return err
	}
	file := planOf(r.def)
	reason := whyUnverified(r.run)
	var tried, failed []string // what to print about each branch; the branches in which the command fails
	how := workspace.Split{Name: name, Apart: file, Each: file != ""}
	if check != "" {
		how.Try = func(p workspace.Part, dir string, env []string) error {
			why, err := fails(ctx, check, dir, env)
			if tried = append(tried, "passes"); why != "" {
				tried[len(tried)-1], failed = "fails: "+why, append(failed, p.Branch)
			}
			return err
		}
	}
	parts, err := r.def.Workspace.Split(ctx, r.place(e), id, r.files, how, reason)
	if errors.Is(err, runfiles.ErrUnchanged) {
		return errNothingToTake
	}
	for i, p := range parts {
		on := "the commit with which the run began"
		if p.On != "" {
			on = p.On + ", with whose stack it has a file in common"
		}
		line := fmt.Sprintf("Branch %s (%s) stands on %s. Files: %s", p.Branch, brief.Count(p.Commits, "commit"), on, someFiles(p.Files))
		if p.Unsigned != "" {
			line += "; not signed: " + p.Unsigned
		}
		if i < len(tried) {
			line += "; the command " + tried[i]
		}
		fmt.Fprintln(e.Stdout, brief.Clean(line))
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w; the branches above are made, and the same command makes the others", err)
	case reason != "":
		fmt.Fprintln(e.Stderr, brief.Clean("Not verified, because "+reason))
	}
	switch {
	case len(failed) > 0:
		return fmt.Errorf("%s fails in %d of %d branches: %s; a branch may need one that it does not stand on, so merge them in order", check, len(failed),
			len(parts), strings.Join(failed, ", "))
	case check == "":
		command := "COMMAND"
		if r.until != "" && !strings.ContainsAny(r.until, "'\n") {
			command = "'" + r.until + "'"
		}
		fmt.Fprintln(e.Stderr, e.Hint(brief.Clean("No command has run in these branches; try each with: refrain take "+id+" --split --check "+command)))
	}
	return nil
}

// fails runs a command line of the shell in a folder, and returns why it fails with the end of its output; "" if it succeeds.
func fails(ctx context.Context, line, dir string, env []string) (why string, err error) {
	output := &limited.Tail{Most: 2000}
	cmd, err := runShell(ctx, line, dir, env, output)
	_, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return "", nil
	case !exited || ctx.Err() != nil:
		return "", cmp.Or(context.Cause(ctx), err)
	}
	text := child.Secrets(cmd.Env).StrikeWhole(output.String())
	return fmt.Sprintf("%v: %s", err, brief.End(strings.Join(strings.Fields(text), " "), 200)), nil
}

// mostNamed is how many files of a branch are named.
const mostNamed = 10

// someFiles names the first files.
func someFiles(files []string) string {
	text := strings.Join(files[:min(mostNamed, len(files))], ", ")
	if more := len(files) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// planOf returns the file of the copy with the plan of a definition of refrain loop; empty without a plan.
func planOf(d *definition.Definition) string {
	for a := range d.Root.All {
		if c := a.Command; c != nil && len(c.Args) == 5 && c.Args[0] == refrain && c.Args[1] == planStepName && c.Args[2] == "next" {
			return c.Args[4]
		}
	}
	return ""
}

// whyUnverified says why the files of a run are not those of a completed run; "" if they are.
func whyUnverified(run *mark.Run) string {
	switch {
	case run == nil:
		return "the run has not begun"
	case run.Status == mark.RunCompleted:
		return ""
	case run.Error != "":
		return "the run " + string(run.Status) + ": " + brief.Clip(brief.Clean(progress.PlainError(run.Error)), 200)
	}
	return "the run is " + cmp.Or(string(run.Status), "not finished")
}

// takeStopped hands over what a run has done that failed, was canceled or is paused. It reads the log again, and so only for a
// definition that names a branch.
func takeStopped(ctx context.Context, e *term.Env, s *runstore.Stock, id string, def *definition.Definition) {
	if def.Workspace == nil || def.Workspace.Result.Branch == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	line, err := take(ctx, e, s, id, "", true)
	switch {
	case errors.Is(err, errNothingToTake):
		return
	case err != nil:
		line = fmt.Sprintf("The files of the run stay in the store, because the branch could not be made: %v; make it later with: refrain take %s --branch NAME",
			err, id)
	case line == "":
		return
	}
	fmt.Fprintln(e.Stderr, line)
	runstore.AddToDiary(e, s, id, brief.Clean(line))
}
