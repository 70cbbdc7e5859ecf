// SPDX-License-Identifier: Apache-2.0

package running

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/command/internal/codingloop"
	"github.com/refrain-dev/refrain/command/internal/deffile"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/command/internal/writing"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

func NewLoop(e *term.Env) *cobra.Command {
	f := loopFlags{run: runFlags{root: ".", streams: true}}
	cmd := &cobra.Command{
		Use:   "loop [PROMPT] [-- ARGS]",
		Short: "Ask a coding agent again and again until a command succeeds",
		Annotations: map[string]string{ // flags of other programs
			"agent": "--cli claude, --cli codex or --acp PROGRAM", "yolo": "--permissions all", "dangerously-skip-permissions": "--permissions all",
			"worktree": "--branch NAME", "test": "--until COMMAND", "check": "--until COMMAND", "file": "-p FILE",
		},
		Long: `Ask a coding agent, such as Claude Code, again and again until the command of --until
succeeds. Each time, the agent gets the prompt and the last output of the command. The
agent works in the current folder; with --branch it works on a copy of the repository,
and the result becomes a new branch.

The agent may edit files in the folder, and run the command of --until, with other
arguments too, and those of --allow. It may run commands that only read, such as git
diff. Other commands are refused, which does not end the loop: the command of --until
decides. Codex runs every command in its own sandbox, without network. If the agent
fails or hangs after it has changed files of the copy, the changes are kept.

The loop ends when the command succeeds, when a limit is reached, or when the command
prints the same output three times in a row (--no-progress); times such as 0.03s are not
compared. With --branch the files must be the same too. If the command prints nothing,
the agent's answers are compared in place of its output. The command also runs once at
the beginning: if it succeeds, the agent is not asked; otherwise the first prompt
contains its output.

The loop is a run like any other: refrain show says why it stopped and what it cost,
Ctrl-C pauses it, and refrain resume continues it, even after a crash. --write writes
the definition to a file, so that you can change it and run it with refrain run.

--acp asks any program that speaks the Agent Client Protocol. Refrain splits the command
line of the program without a shell: quotes and backslashes work as in a shell, and
nothing is expanded. The program gets PATH, HOME and similar variables; pass its API key
with --inherit.

--plan works on a list of tasks, such as "- [ ] Add a flag for the port", on a branch with
the name of the file. Each iteration works on the first task that is open. The commands
below the heading "Validation Commands" of the plan, and the one of --until, decide that
the task is done: then the loop ticks its box in the branch, and commits the changes with
the task's title. A task that fails three times, or that the agent calls blocked, gets the
mark [!], and the next one begins; at the end the run fails, and names it. The file is
read before each iteration, so you can change it while the loop runs.

--review lets four reviewers, of correctness, tests, security and simplicity, look at the
work when it is done. They may only read. The agent corrects what they find, and the
corrections are kept if the command of --until succeeds; then they review again, until no
finding is above low, or three times. --review-only BRANCH does the same for a branch that
exists. --write writes the definition of both.

--notes NOTES.md, which is the default for --plan, lets the agent leave notes for its next
iteration in a file of the copy. The branch does not have it, unless --keep-notes is given.

Without --until, --done 'ALL DONE' ends the loop when the agent says this line, which no
command verifies; with --max alone the loop makes that many iterations, and exits with 0.

The file .refrain/loop.yaml has the flags of this folder, such as "max: 20" or "allow: [npm
run lint]", and refrain/loop.yaml in XDG_CONFIG_HOME or ~/.config those of all folders; a flag
of the command line counts more. --write .refrain/loop.yaml writes the flags that are given.
Such a file that somebody else has written is used after refrain trust .refrain/loop.yaml.

The arguments after -- go to the program of the coding agent, such as -- --effort high.

--until takes a command line for the shell. Exit code 0 means success. Exit codes 126 and
127 mean that the shell could not run the command; the loop then fails at once. With
--branch the command runs in the copy of the repository, without the files that git
ignores.

Exit codes are those of refrain run: 0 if the command succeeded, 3 if a limit or
repeated output stopped the loop.`,
		Example: `  refrain loop "Make the tests pass" --until 'go test ./...' --max 10 --budget-cost 5
  refrain loop -p PROMPT.md --until 'go test ./...' --branch fix-tests --protect '**/*_test.go'
  refrain loop -p PROMPT.md --cli codex --until 'npm test' --timeout 2h
  refrain loop -p PROMPT.md --acp 'gemini --acp' --inherit GEMINI_API_KEY --until 'npm test'
  refrain loop -p PROMPT.md --until 'npm test' --allow 'npm run lint' --no-progress 5
  refrain loop --plan PLAN.md --until 'go test ./...' --on-task-failure stop
  refrain loop -p PROMPT.md --until 'go test ./...' --branch fix --review --review-cli codex
  refrain loop --review-only fix --until 'go test ./...'
  refrain loop -p PROMPT.md --until 'make check' --permissions all --write loop.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if n := cmd.ArgsLenAtDash(); n >= 0 {
				args = args[:n]
			}
			if len(args) > 1 {
				return fmt.Errorf("%d arguments given; write the prompt in quotes, as one argument: refrain loop \"PROMPT\" --until COMMAND", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if n := cmd.ArgsLenAtDash(); n >= 0 {
				args, f.args = args[:n], args[n:]
			}
			if f.write != "" && isDefaults(e.Getenv, f.write) {
				if err := f.writeDefaults(e, cmd.Flags()); err != nil {
					return term.UsageError(err)
				}
				if len(args) == 0 && f.file == "" && f.plan == "" {
					return nil
				}
				f.write, f.noDefaults = "", true
			}
			if !f.noDefaults {
				if err := f.readDefaults(e, cmd.Flags(), len(args) > 0); err != nil {
					return term.UsageError(err)
				}
			}
			f.bounded = cmd.Flags().Changed("max")
			e, err := f.run.withCopies(e)
			if err != nil {
				return term.UsageError(err)
			}
			text, err := f.definition(cmd.Context(), e, args)
			if err != nil {
				return term.UsageError(f.traced(err))
			}
			if err := checkGrace(f.run.grace); err != nil {
				return err
			}
			if err := f.run.shown.Choose(e); err != nil {
				return err
			}
			if _, err := term.Mode(e, f.run.shown.Mode); err != nil {
				return term.UsageError(err)
			}
			if f.planOver {
				fmt.Fprintln(e.Stderr, "Nothing was asked, because no task of the plan is open.")
				return nil
			}
			f.run.set = make(map[string]string)
			if f.countsTests() {
				f.run.set[codingloop.BeforeKey] = testsBefore(cmd.Context())
			}
			ctx := cmd.Context()
			switch done, err := f.checkFirst(ctx, e); {
			case done && err == nil:
				fmt.Fprintln(e.Stderr, "Nothing was asked, because the command of --until succeeds already.")
				return nil
			case err != nil && f.interrupts(ctx):
				f.run.paused, f.config.First, ctx = true, true, context.WithoutCancel(ctx)
				if text, err = codingloop.Definition(f.config); err != nil {
					return term.Failure(err)
				}
			case err != nil:
				return term.Failure(err)
			}
			file, remove, err := f.written(text)
			if err != nil {
				return term.Failure(err)
			}
			defer remove()
			defer f.watches(ctx, e)()
			return runFile(ctx, e, f.run, file, "")
		},
	}
	f.add(cmd.Flags())
	return cmd
}

// prompt returns the prompt for the coding agent.
func (f *loopFlags) prompt(e *term.Env, args []string) (string, error) {
	text, err := "", error(nil)
	switch {
	case len(args) > 0 && f.file != "":
		return "", errors.New("the prompt is given as an argument and with -p; leave out one of them")
	case f.file == "-":
		text, err = deffile.ReadInput([]string{"-"}, e.Stdin)
	case f.file != "":
		var data []byte
		data, err = os.ReadFile(f.file)
		if text = string(data); errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("there is no file %s; write the prompt into it, or give the prompt as an argument", f.file)
		}
	case len(args) > 0:
		text = args[0]
	}
	if err == nil {
		err = isText(text)
	}
	if err != nil {
		return "", fmt.Errorf("read the prompt: %w", err)
	}
	if strings.TrimSpace(text) == "" {
		return "", errors.New(`there is no prompt; write: refrain loop "PROMPT" --until COMMAND, or give a file with -p FILE`)
	}
	return text, nil
}

// isText returns an error with the place of the first byte that is not UTF-8.
func isText(text string) error {
	line, column := 1, 1
	for i, r := range text {
		if _, n := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && n == 1 {
			return fmt.Errorf("line %d, column %d has the byte 0x%02x, which is not UTF-8; save it as UTF-8", line, column, text[i])
		}
		if column++; r == '\n' {
			line, column = line+1, 1
		}
	}
	return nil
}

// definition returns the definition of the loop, as YAML.
func (f *loopFlags) definition(ctx context.Context, e *term.Env, args []string) ([]byte, error) {
	var prompt string
	var tasks *codingloop.Plan
	review, err := f.reviews(ctx, args)
	if err == nil && f.plan != "" {
		tasks, err = f.tasks()
	}
	if err == nil && f.reviewOnly == "" && (f.plan == "" || len(args) > 0 || f.file != "") {
		prompt, err = f.prompt(e, args)
	}
	switch {
	case err != nil:
		return nil, err
	case f.onTaskFailure != "skip" && f.onTaskFailure != "stop":
		return nil, wrong("--on-task-failure %s: give skip or stop", f.onTaskFailure)
	case f.plan != "" && f.agrees != "":
		return nil, wrong("--done is not for --plan, whose commands decide which task is done; leave out one of them")
	case f.review && f.branch == "":
		return nil, wrong("--review needs --branch, because corrections that break the command are undone; add --branch NAME")
	case f.plan == "" && f.reviewOnly == "" && strings.TrimSpace(f.until) == "" && strings.TrimSpace(f.agrees) == "" && !f.bounded:
		return nil, wrong("nothing ends the loop; give --until with a command that succeeds when the work is done, such as 'go test ./...', " +
			"--done with a line that the agent then says, --plan with a list of tasks, or --max with a number of iterations")
	case f.most < 1:
		return nil, wrong("--max %d: give at least 1", f.most)
	case f.allow != nil && f.permissions != "edit":
		return nil, wrong("--allow is for --permissions edit, and not for %s; leave out one of them", f.permissions)
	case f.protect != nil && f.branch == "":
		return nil, wrong("--protect needs --branch, because files are restored only in a copy of the repository; add --branch NAME")
	case f.branch == "" && (f.copyToo != nil || f.setup != ""):
		return nil, wrong("--copy and --setup need --branch, because they prepare a copy of the repository; add --branch NAME")
	case f.retry < 1:
		return nil, wrong("--retry %d: give at least 1", f.retry)
	case f.sandbox != "" && f.sandbox != "none" && !slices.Contains(taskagent.SandboxLevels(), f.sandbox):
		return nil, wrong("--sandbox %s: give workspace, best_effort, bwrap or none", f.sandbox)
	case f.conversation != taskagent.ConversationFresh && f.conversation != taskagent.ConversationContinue:
		return nil, wrong("--conversation %s: give fresh or continue", f.conversation)
	case f.acp != "" && (f.wrapper != "" || len(f.args) > 0):
		return nil, wrong("--acp names the program and its arguments; leave out --agent-command and what follows --")
	case f.acp != "" && f.addDirs != nil:
		return nil, wrong("--add-dir is for --cli; with --acp write the option of the program, such as --acp 'gemini --acp --include-directories DIR'")
	case f.run.notifier != "" && f.run.detach:
		return nil, wrong("--notify-command is for a run that this process drives; leave out --detach, or use --notify")
	case f.squash && f.branch == "":
		return nil, wrong("--squash needs --branch, because only a branch has commits; add --branch NAME")
	case f.onLimit != "stop" && f.onLimit != "wait":
		return nil, wrong("--on-limit %s: give stop or wait", f.onLimit)
	case f.timeout < 0 || f.idle < 0:
		return nil, wrong("--timeout or --idle-timeout is negative; give a time such as 30m, or 0 for no limit")
	case !(f.cost >= 0): // NaN too
		return nil, wrong("--budget-cost %v: give a cost in US dollars, or 0 for no limit", f.cost)
	}
	for _, program := range []string{f.cli, f.reviewCLI} {
		if f.cost > 0 && (&taskagent.CLI{Program: program, Model: f.model}).PricedAs() != "" {
			return nil, wrong("--budget-cost: %s does not report its cost; use --timeout, or write the definition to a file "+
				"with --write, and add prices and a budget to it", program)
		}
	}
	same, err := f.sameResults()
	if err != nil {
		return nil, err
	}
	notes, err := f.notesFile()
	if err != nil {
		return nil, err
	}
	for _, given := range slices.Concat([]string{f.until, f.agrees, f.branch, f.model, f.acp, f.setup, f.wrapper, notes, f.reviewModel}, f.protect, f.allow,
		f.copyToo, f.args, f.addDirs) {
		if err := isText(given); err != nil {
			return nil, fmt.Errorf("%q: %w", given, err)
		}
	}
	if err := checkShell(ctx, f.until); err != nil {
		return nil, wrong("--until: %w", err)
	}
	if _, err := os.Lstat(f.write); err == nil { // checked before the command of --until runs
		return nil, wrong("--write: %s: %w", f.write, fs.ErrExist)
	}
	program, acp, err := f.agent()
	if err != nil {
		return nil, err
	}
	var wrapper []string
	if f.wrapper != "" {
		if wrapper, err = codingloop.Words(f.wrapper); err != nil {
			return nil, wrong("--agent-command %s: %w", f.wrapper, err)
		}
	}
	dirs, err := f.folders()
	if err != nil {
		return nil, err
	}
	var count, read []string
	if f.countsTests() {
		count = []string{refrain, countTests}
	}
	if f.file != "" && f.file != "-" {
		file, err := filepath.Abs(f.file)
		if err != nil {
			return nil, fmt.Errorf("-p: %w", err)
		}
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			read = []string{refrain, readPrompt, file}
		}
	}
	f.config = &codingloop.Config{
		Prompt: prompt, CLI: program, ACP: acp, Inherit: f.inherit, Until: f.until, Done: f.agrees,
		Most: f.most, Cost: f.cost, Timeout: f.timeout, Idle: f.idle,
		Model: f.model, Permissions: f.permissions, Denied: f.denied, Branch: f.branch, Protect: f.protect,
		Waits: f.onLimit == "wait", Sandbox: strings.TrimPrefix(f.sandbox, "none"), Allow: f.allow, NoProgress: same, Copy: f.copies(), Squash: f.squash,
		Notes: notes, KeepsNotes: f.keepNotes, ReadNotes: []string{refrain, readNotes, notes},
		Plan: tasks, Review: review, Count: count, Read: read, Setup: f.setup, Wrapper: wrapper, Args: f.args, Folders: dirs, MaxTurns: f.maxTurns, Retry: f.retry,
		Conversation: strings.TrimPrefix(f.conversation, taskagent.ConversationFresh),
	}
	text, err := codingloop.Definition(f.config)
	if err == nil {
		err = checkLoop(text)
	}
	if err == nil {
		err = taskagent.FindCLI(append(wrapper, program)[0])
	}
	if _, missing := errors.AsType[*taskagent.NoProgramError](err); missing && acp != nil {
		err = wrong("--acp: %w (%s)", err, term.Meant(program, taskagent.ACPPrograms()))
	}
	return text, err
}

// reviews returns the review of --review or --review-only; nil for none.
func (f *loopFlags) reviews(ctx context.Context, args []string) (*codingloop.Review, error) {
	r := &codingloop.Review{Definition: writing.Review(), CLI: f.reviewCLI, Model: f.reviewModel}
	switch {
	case f.reviewOnly == "" && f.review:
		return r, nil
	case f.reviewOnly == "" && (f.reviewCLI != "" || f.reviewModel != ""):
		return nil, wrong("--review-cli and --review-model are for --review and --review-only; add one of them")
	case f.reviewOnly == "":
		return nil, nil
	case f.review || len(args) > 0 || f.file != "" || f.plan != "" || f.agrees != "":
		return nil, wrong("--review-only reviews a branch, and asks for no other work; leave out the prompt, --review, --plan and --done")
	}
	f.branch, r.Branch = cmp.Or(f.branch, f.reviewOnly+"-reviewed"), "refs/heads/"+f.reviewOnly
	var err error
	if r.Base, err = workspace.Fork(ctx, f.run.root, f.reviewOnly); err != nil {
		return nil, wrong("--review-only: %w", err)
	}
	return r, nil
}

// checkLoop returns an error for flag values that a definition cannot have. The error omits line numbers, because the user has
// given flags and not a file.
func checkLoop(text []byte) error {
	_, err := definition.Parse("loop.yaml", text, definition.Options{})
	problems, ok := errors.AsType[definition.Problems](err)
	if !ok {
		return err
	}
	said := problems[0].Message
	if hint := problems[0].Hint; hint != "" {
		said += " (" + hint + ")"
	}
	return &loopProblem{said, problems[0]}
}

// loopProblem is a problem of the definition that the flags make, without its place, because the person has not written the definition.
type loopProblem struct {
	text    string
	problem *definition.Problem
}

func (e *loopProblem) Error() string { return e.text }

func (e *loopProblem) Unwrap() error { return e.problem }

// written writes the definition to the file of --write, or to a temporary file that remove deletes.
func (f *loopFlags) written(text []byte) (path string, remove func(), err error) {
	if f.write == "" {
		dir, err := os.MkdirTemp("", "refrain-loop")
		if err != nil {
			return "", nil, err
		}
		path = filepath.Join(dir, "loop.yaml")
		return path, func() { _ = os.RemoveAll(dir) }, os.WriteFile(path, text, 0o600)
	}
	file, err := os.OpenFile(f.write, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", nil, fmt.Errorf("--write: %w", err)
	}
	_, err = file.Write(text)
	return f.write, func() {}, cmp.Or(err, file.Close())
}

// watches looks at the user's repository before a run that works on a copy. The function that it returns says what has changed there since.
func (f *loopFlags) watches(ctx context.Context, e *term.Env) (say func()) {
	if f.branch == "" || f.run.detach {
		return func() {}
	}
	before, err := workspace.LookAt(ctx, f.run.root)
	if err != nil || before == nil {
		return func() {}
	}
	own, _, _ := strings.Cut(f.branch, "{{run}}")
	return func() {
		after, err := workspace.LookAt(context.WithoutCancel(ctx), f.run.root)
		if err != nil {
			return
		}
		changed := after.Changed(before, func(ref string) bool { return strings.HasPrefix(ref, "refs/heads/"+own) })
		if len(changed) == 0 {
			return
		}
		text := strings.Join(changed[:min(10, len(changed))], ", ")
		if more := len(changed) - 10; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		fmt.Fprintln(e.Stderr, "Changed in your own repository during the run, by you or by the agent, which should not write there: "+brief.Clean(text))
	}
}
