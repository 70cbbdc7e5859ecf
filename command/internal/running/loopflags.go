// SPDX-License-Identifier: Apache-2.0

package running

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/command/internal/codingloop"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
)

// loopFlags are the flags of refrain loop.
type loopFlags struct {
	run                        runFlags
	file, cli, acp             string
	until, write               string
	model, permissions, denied string
	sandbox                    string
	onLimit                    string
	most                       int
	cost                       float64
	branch                     string
	squash, bounded, planOver  bool // bounded: --max is given; planOver: no task of the plan is open
	agrees                     string
	plan, onTaskFailure, notes string
	review                     bool
	reviewOnly                 string
	reviewCLI, reviewModel     string
	keepNotes                  bool
	protect, inherit, allow    []string
	copyToo, args, addDirs     []string // --copy; what follows --; --add-dir
	setup, wrapper             string
	conversation               string
	maxTurns, retry            int
	noDefaults                 bool
	origins                    map[string]string // the files that have set flags, by the flags
	noProgress                 string
	timeout, idle              time.Duration
	config                     *codingloop.Config // of which the definition is made
}

// add adds the flags of refrain loop.
func (f *loopFlags) add(fl *pflag.FlagSet) {
	fl.StringVarP(&f.file, "prompt", "p", "", "read the prompt from this `FILE`; - reads stdin")
	fl.StringVar(&f.cli, "cli", "", "`program` of the coding agent: "+strings.Join(taskagent.CLIPrograms(), " or ")+
		" (default: "+taskagent.CLIPrograms()[0]+")")
	fl.StringVar(&f.acp, "acp", "", "`program`, with its arguments, that speaks the Agent Client Protocol, in place of --cli, "+
		"such as 'gemini --acp'")
	fl.StringArrayVar(&f.inherit, "inherit", nil, "environment `variable` to pass to the coding agent; repeat the flag for more")
	fl.StringVar(&f.until, "until", "", "`command` that ends the loop when it succeeds")
	fl.StringVar(&f.agrees, "done", "", "end the loop when the agent says this `line`; with --until, both are needed")
	fl.StringVar(&f.plan, "plan", "", "work on the tasks of this `FILE`, one in an iteration: boxes in Markdown, or the stories of a prd.json")
	fl.StringVar(&f.onTaskFailure, "on-task-failure", "skip", "what to do after a task of --plan has failed three times: skip it, or stop")
	fl.IntVar(&f.most, "max", 10, "ask at most this many times")
	fl.Float64Var(&f.cost, "budget-cost", 0, "stop at this cost in US dollars; 0 means no limit")
	fl.StringVar(&f.branch, "branch", "", "work on a copy of the repository, and put the result on this new `branch`; {{run}} in its name is the run's ID")
	fl.BoolVar(&f.squash, "squash", false, "make one commit, and not one for each iteration that changed files; needs --branch")
	fl.StringArrayVar(&f.protect, "protect", nil,
		"restore changed files that match this `pattern`, such as '**/*_test.go', and tell the agent; "+
			"repeat the flag for more; needs --branch")
	fl.BoolVar(&f.review, "review", false, "when the work is done, let reviewers look at it and the agent correct what they find, up to three times; "+
		"needs --branch")
	fl.StringVar(&f.reviewOnly, "review-only", "", "review this `BRANCH` in place of a loop; the result is the new branch BRANCH-reviewed, or that of --branch")
	fl.StringVar(&f.reviewCLI, "review-cli", "", "`program` of the reviewers: "+strings.Join(taskagent.CLIPrograms(), " or ")+" (default: that of the agent)")
	fl.StringVar(&f.reviewModel, "review-model", "", "`model` of the reviewers, as their program names it")
	fl.StringVar(&f.notes, "notes", "", "`FILE` of the copy, such as NOTES.md, in which the agent leaves notes for its next "+
		"iteration; off for none; "+
		"needs --branch (default: NOTES.md with --plan)")
	fl.BoolVar(&f.keepNotes, "keep-notes", false, "put the file of --notes on the branch, too")
	fl.StringArrayVar(&f.copyToo, "copy", nil, "copy ignored files that match this `pattern` too, as in .gitignore, such as .env; "+
		"repeat the flag for more; needs --branch")
	fl.StringVar(&f.setup, "setup", "", "`command` that prepares the copy of the repository, such as 'npm ci'; needs --branch")
	fl.StringVar(&f.wrapper, "agent-command", "", "`program`, with its arguments, that is started in place of the one of --cli and prints the same, "+
		"such as 'my-claude --profile work'")
	fl.IntVar(&f.maxTurns, "max-turns", 0, "most requests of the coding agent to its model in an iteration; 0 means no limit; only claude")
	fl.IntVar(&f.retry, "retry", 2, "`attempts` at an iteration in which the coding agent fails")
	notifyFlag(fl, &f.run.notify, "the loop")
	fl.StringVar(&f.run.notifier, "notify-command", "", "`command` to run when the loop has ended, asks or is paused, with a notice as JSON in its input; it has 10s")
	fl.StringVar(&f.conversation, "conversation", "fresh", "fresh: each iteration begins a new conversation of the coding agent; continue: it goes "+
		"on with the last one")
	fl.StringVar(&f.model, "model", "", "model, as the coding agent names it (default: the coding agent's choice)")
	fl.StringVar(&f.permissions, "permissions", "edit", "what the coding agent may do without asking: read, edit or all")
	fl.StringArrayVar(&f.allow, "allow", nil, "`command` that the coding agent may run besides that of --until, such as 'npm run lint'; "+
		"repeat the flag for more")
	fl.StringVar(&f.sandbox, "sandbox", "none", "limit what the coding agent and the command of --until may do, on Linux: workspace, best_effort as far as the "+
		"machine can, or bwrap, by bubblewrap; they change only the copy, and read no keys")
	fl.StringArrayVar(&f.addDirs, "add-dir", nil, "further `folder` that the coding agent may read and change; repeat the flag for more; not with --acp")
	fl.StringVar(&f.denied, "denied", "allow", "what to do after the coding agent was denied a tool: allow goes on, fail ends the loop")
	fl.StringVar(&f.noProgress, "no-progress", "3", "stop after this `number` of iterations with the same result in a row; off for no such stop")
	fl.StringVar(&f.onLimit, "on-limit", "stop",
		"what to do while the coding agent's provider refuses requests: stop, or wait for at most 6h")
	term.DurationFlag(fl, &f.timeout, "timeout", 0, "time limit of the loop, such as 2h; 0 means no limit")
	term.DurationFlag(fl, &f.idle, "idle-timeout", 5*time.Minute,
		"end a coding agent that prints nothing for this long, and ask it again; 0 means no limit")
	fl.StringVar(&f.write, "write", "", "write the definition to this new `FILE`, or, if it is "+folderDefaults+", the flags")
	fl.BoolVar(&f.noDefaults, "no-defaults", false, "leave out the flags in "+folderDefaults+" and in the user's configuration")
	f.run.shown.Add(fl, "")
	runstore.Flag(fl, &f.run.store)
	copiesFlag(fl, &f.run.copies)
	fl.BoolVar(&f.run.detach, "detach", false, "run in the background, and print the run's ID to stdout")
	graceFlag(fl, &f.run.grace)
}

// folders returns the absolute folders of --add-dir.
func (f *loopFlags) folders() (all []string, err error) {
	for _, name := range f.addDirs {
		dir, err := filepath.Abs(name)
		if err == nil {
			dir, err = filepath.EvalSymlinks(dir)
		}
		if err != nil {
			return nil, wrong("--add-dir: %w", err)
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, wrong("--add-dir %s: it is no folder", name)
		}
		all = append(all, dir)
	}
	return all, nil
}

// notesFile returns the file in which the agent leaves notes; "" for none. By default a plan has one, if the name is free and the agent
// may write.
func (f *loopFlags) notesFile() (string, error) {
	name := filepath.ToSlash(f.notes)
	switch {
	case name == "off" || name == "" && f.plan == "" && !f.keepNotes:
		return "", nil
	case f.branch == "":
		return "", wrong("--notes and --keep-notes need --branch, because notes are in a copy of the repository; add --branch NAME")
	case name != "" && f.permissions == "read":
		return "", wrong("--notes: with --permissions read the agent cannot write; leave out one of them")
	case name != "" && !filepath.IsLocal(name):
		return "", wrong("--notes %s: name a file below the folder, such as NOTES.md", f.notes)
	}
	own := cmp.Or(name, "NOTES.md")
	_, err := os.Lstat(filepath.Join(f.run.root, own))
	switch {
	case name == "" && (err == nil && !f.keepNotes || f.permissions == "read"):
		return "", nil
	case err == nil && !f.keepNotes:
		return "", wrong("--notes %s: there is such a file, which the branch would lose; name another one, or add --keep-notes", f.notes)
	}
	return own, nil
}

// countsTests reports whether the definition counts tests, which needs a command that judges them.
func (f *loopFlags) countsTests() bool { return f.reviewOnly == "" && (f.until != "" || f.plan != "") }

// settings are the files in which coding agents keep a person's rules for one project. Git usually ignores them.
var settings = map[string]string{"claude": ".claude/settings.local.json", "claude-agent-acp": ".claude/settings.local.json",
	"gemini": ".gemini/settings.json", "qwen": ".qwen/settings.json", "opencode": "opencode.json"}

// copies returns the ignored files that the copy of the repository gets: those of --copy, and the agent's settings, if they are there.
func (f *loopFlags) copies() []string {
	program, _, err := f.agent()
	if err != nil || f.branch == "" {
		return nil
	}
	all := f.copyToo
	name, known := settings[filepath.Base(program)]
	if _, err := os.Stat(filepath.Join(f.run.root, filepath.FromSlash(name))); !known || err != nil {
		return all
	}
	return append(slices.Clone(all), "/"+name)
}

// sameResults returns after how many iterations with the same result the loop ends; 0 for none.
func (f *loopFlags) sameResults() (int, error) {
	if f.noProgress == "off" {
		return 0, nil
	}
	n, err := strconv.Atoi(f.noProgress)
	if err != nil || n < 2 {
		return 0, wrong("--no-progress %s: give a number of at least 2, or off", f.noProgress)
	}
	return n, nil
}

// agent returns the program of the coding agent, and for --acp the program with its arguments.
func (f *loopFlags) agent() (program string, acp []string, err error) {
	if f.acp == "" {
		return cmp.Or(f.cli, taskagent.CLIPrograms()[0]), nil, cmp.Or(knownCLI("cli", f.cli), knownCLI("review-cli", f.reviewCLI))
	}
	if f.cli != "" {
		return "", nil, wrong("--cli and --acp: give one of them")
	}
	if acp, err = codingloop.Words(f.acp); err != nil {
		return "", nil, wrong("--acp %s: %w", f.acp, err)
	}
	if slices.Contains(taskagent.CLIPrograms(), acp[0]) {
		return "", nil, wrong("--acp: %s does not speak the Agent Client Protocol; write --cli %[1]s", acp[0])
	}
	return acp[0], acp, nil
}

// speakers are the flags for known programs that speak the Agent Client Protocol.
var speakers = map[string]string{"gemini": "--acp 'gemini --acp' --inherit GEMINI_API_KEY", "qwen": "--acp 'qwen --acp' --inherit OPENAI_API_KEY",
	"opencode": "--acp 'opencode acp'"}

// knownCLI returns an error that says what to write for a program that the flag does not take.
func knownCLI(flag, program string) error {
	known := taskagent.CLIPrograms()
	switch {
	case program == "" || slices.Contains(known, program):
		return nil
	case speakers[program] != "" && flag == "cli":
		return wrong("--cli takes %s; for %s write %s", strings.Join(known, " or "), program, speakers[program])
	}
	return wrong("--%s %s: give %s; a program that speaks the Agent Client Protocol is given with --acp, and another name for one of these with --agent-command",
		flag, program, strings.Join(known, " or "))
}

// setupArgs returns the command of --setup; nil without one.
func (f *loopFlags) setupArgs() []string {
	if f.setup == "" {
		return nil
	}
	return codingloop.SetupOf(f.setup)
}
