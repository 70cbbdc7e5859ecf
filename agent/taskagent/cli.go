// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"cmp"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/taskagent/internal/codingcli"
	"github.com/refrain-dev/refrain/agent/taskagent/internal/commandrule"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/internal/values/fielderror"
)

// CLI makes a command a coding agent that is driven by its command line, such as Claude Code. Refrain knows the arguments
// of such programs and the form of their output. [CommandConfig.Stdin] is the prompt.
//
// The agent outputs the program's last message. The result has these fields; null means that the program does not report
// the value:
//
//	outcome        ok, partial, denied, limited, not_configured, failed, idle, crashed or no_result
//	said           the program's last message
//	session        ID of the program's conversation
//	continued      ID of the earlier conversation that this one continues
//	turns          requests to the model
//	input_tokens, output_tokens, cost
//	denied         names of the tools that it was not allowed to use
//	denied_commands  the shell commands among their calls; the first 20
//	files          paths that its edits name, below its folder or absolute; the first 1000
//	more_files     edits of further files
//	exit_code, stderr
//
// The usage counts in the run's budget. A cost that the program does not report is computed from the price of the model,
// and is unknown without one. If the run has a budget of cost, the agent tells the program to spend at most the rest of it.
// Programs check this between their requests, so one request may exceed it. Programs that run at the same time share the
// rest of the budget.
//
// A program that reaches MaxTurns or MaxCost has succeeded in part. The step then finishes with the outcome partial,
// unless the program was denied a tool before. The outcome denied fails the step unless Denied is "allow". The outcome idle
// fails it with an error that names the idle timeout. Any other outcome except ok and partial fails the step with a
// [*CLIError].
type CLI struct {
	// Program is claude or codex. Required without ACP.
	Program string
	// Wrapper is a program with its first arguments, such as []string{"my-claude"}. It is started instead of Program, with
	// Program's arguments after its own, and must print what Program prints. The texts are not templates. Nil starts Program.
	Wrapper []string
	// ACP is a program with its arguments, such as []string{"gemini", "--acp"}. It is started instead of Program, and must
	// speak the Agent Client Protocol. The texts are not templates. The program inherits the variables that programs need
	// to work, such as PATH and HOME, and those that Inherit names.
	ACP []string
	// Model is the model's name, as the program spells it; the default is the program's own
	// choice.
	Model string
	// Permissions decide what the program may do without asking: "read", "edit" (the default: change files in its
	// folder) or "all". They select the program's own modes, and with ACP they answer its requests for permission.
	// Refrain does not restrict the program in any other way.
	Permissions string
	// Allow lists shell commands that the program may run in addition, such as "go test ./...". Each simple command of a
	// line is allowed with any arguments after its first words, which are "go test" in the example. A line with a
	// substitution is allowed only exactly as it is written. With Allow, programs may also run commands that only read,
	// such as git diff. Allow guides a program that means well. It is no sandbox, because the tests that the program runs are
	// code that it has written. Codex runs every command in its own sandbox; for Codex, Allow opens the caches of the build
	// programs that it names.
	Allow []string
	// Denied decides whether the step fails if the program was not allowed to use a tool: "fail" (the default) or
	// "allow". It has no effect on codex, which does not report this.
	Denied string
	// Unfinished says what happens if the program failed, hung or crashed after it had changed files of a workspace. "fail"
	// (the default) undoes the changes and fails the step. "keep" keeps the changes, and the step finishes with a warning.
	// Unfinished has no effect without [CommandConfig].Around.
	Unfinished string
	// MaxTurns limits the requests to the model; 0 sets no limit. Only for claude.
	MaxTurns int
	// MaxCost limits the cost in US dollars; 0 sets no limit other than that of the run. Only
	// for claude.
	MaxCost float64
	// Args are further arguments, which are not templates. Args and Model cannot be set with
	// ACP.
	Args []string
	// IdleTimeout ends a program that has printed nothing for this time; 0 sets no limit.
	IdleTimeout time.Duration
	// OnLimit says what the step does while the program's provider accepts no requests.
	OnLimit OnLimit
	// Conversation is [ConversationFresh] (the default) or [ConversationContinue].
	// ConversationContinue cannot be used with Elsewhere.
	Conversation string
}

// OnLimit says what a step does while the provider of its coding agent accepts no requests.
type OnLimit struct {
	// Wait is [LimitStop] (the default) or [LimitReset].
	Wait string
	// AtMost is the longest time after the beginning of an attempt's first wait; the default is six hours. After that
	// time the step fails and is not retried. It fails at once if the limit is known to last longer.
	AtMost time.Duration
}

// Most returns the longest time to wait; 0 if the step does not wait.
func (l OnLimit) Most() time.Duration {
	if l.Wait != LimitReset {
		return 0
	}
	return cmp.Or(l.AtMost, limitMost)
}

// The values of [OnLimit].Wait.
const (
	// LimitStop fails the step with the outcome limited.
	LimitStop = "stop"
	// LimitReset waits, and asks the program again in the same attempt. It waits until the end of the limit if the
	// program reports it, and otherwise one minute, then two, five and ten minutes, and then fifteen minutes each
	// time. From the second wait on it waits at least that long, whatever the program reports. The waits are in the
	// log, so a resumed run waits only for the rest. They count in the time limit of the loop, and in no other.
	// LimitReset cannot be used with the effect agent.AtMostOnce.
	LimitReset = "reset"
)

// CLIPrograms lists the values of [CLI.Program].
func CLIPrograms() []string { return codingcli.Names() }

// ACPPrograms lists known programs of [CLI.ACP]. Other programs that speak the protocol work
// too.
func ACPPrograms() []string { return slices.Sorted(maps.Keys(codingcli.Speakers)) }

// CLIHelp returns how a coding agent is installed, how a person signs in, and which version was tested. program is
// CLI.Program or the first element of CLI.ACP. The texts are empty if the program is not known.
func CLIHelp(program string) (install, signIn, tested string) {
	p := cmp.Or(codingcli.Programs[program], codingcli.Speakers[program])
	if p == nil {
		return "", "", ""
	}
	return p.Install, p.SignIn, p.Tested
}

// CLISignedIn returns the arguments with which a coding agent reports by its exit code, 0 or 1, whether a person is signed
// in, and the environment variables that it needs for this. program is CLI.Program. Both are nil if the program has no such
// arguments.
func CLISignedIn(program string) (args, variables []string) {
	if p := codingcli.Programs[program]; p != nil {
		return slices.Clone(p.SignedIn), slices.Clone(p.Variables)
	}
	return nil, nil
}

// PricedAs returns the name of the model whose price a budget of cost needs. It returns "" for a program that reports
// its cost, and for ACP, whose programs may report it.
func (c *CLI) PricedAs() string {
	if p := c.program(); c.ACP != nil || p == nil || p.Costs {
		return ""
	}
	return cmp.Or(c.Model, c.Program)
}

// FindCLI returns a [*NoProgramError] if the program of a coding agent is not installed on this machine. program is
// CLI.Program or the first element of CLI.ACP. FindCLI returns nil for a program with a path.
func FindCLI(program string) error {
	if _, err := exec.LookPath(program); err == nil || filepath.Base(program) != program {
		return nil
	}
	install, _, _ := CLIHelp(program)
	return &NoProgramError{Program: program, Install: install}
}

// cliGrace is how long a coding agent may take to end, with the processes that it has started, after it is asked to end.
const cliGrace = 10 * time.Second

// parseCLI checks the CLI of the config, adds its errors to s, and sets its defaults. Of the mistakes in its first switch it
// reports only one.
func (a *CommandAgent) parseCLI(s *source) {
	cfg := &a.cfg
	c := *cfg.CLI
	cfg.CLI = &c
	p := c.program()
	switch {
	case len(c.ACP) > 0 && c.Program != "":
		s.add(fielderror.Whole("%s and %s: give one of them", fielderror.Name("CLI"), fielderror.Name("ACP")))
	case c.ACP != nil && (len(c.ACP) == 0 || c.ACP[0] == ""):
		s.about("ACP", "has no program")
	case p == nil:
		s.about("CLI", "names no program that is known: %q; there are %s", c.Program, strings.Join(CLIPrograms(), ", "))
		return
	case c.ACP != nil && c.Wrapper != nil:
		s.report("Wrapper", "with %s, name the program that is started in ACP itself", fielderror.Name("ACP"))
	case c.Wrapper != nil && (len(c.Wrapper) == 0 || c.Wrapper[0] == ""):
		s.about("Wrapper", "has no program")
	case c.ACP != nil && (c.Model != "" || c.Args != nil):
		s.report("ACP", "a model and further arguments stand in it, in the program's own options")
	case c.OnLimit.Wait == LimitReset && cfg.Effect == agent.AtMostOnce:
		s.report("OnLimit", "the program would be asked again, and the step must not be done twice; say stop")
	case c.OnLimit.Wait != "" && c.OnLimit.Wait != LimitStop && c.OnLimit.Wait != LimitReset:
		s.report("OnLimit", "wait is reset or stop, got %q", c.OnLimit.Wait)
	case c.OnLimit.Wait != LimitReset && c.OnLimit.AtMost != 0:
		s.report("OnLimit", "at_most is for wait: reset")
	case c.MaxTurns < 0 || c.MaxCost < 0 || c.IdleTimeout < 0 || c.OnLimit.AtMost < 0:
		s.report("CLI", "a limit is negative")
	case !slices.Contains([]string{"", ConversationFresh, ConversationContinue}, c.Conversation):
		s.about("Conversation", "is fresh or continue, got %q", c.Conversation)
	case c.continues() && cfg.Elsewhere.Name != "":
		s.report("Conversation", "it is kept where the program runs, which may be another machine each time; say fresh")
	case (c.MaxTurns > 0 || c.MaxCost > 0) && !p.Turns:
		s.report("CLI", "%s takes no limit of turns or cost; use %s", c.name(), fielderror.Name("Timeout"))
	}
	for _, given := range []struct {
		field string
		is    bool
	}{{"Args", cfg.Args != nil}, {"JSON", cfg.JSON}, {"Tests", cfg.Tests != ""}, {"OKExitCodes", cfg.OKExitCodes != nil},
		{"Unsafe", cfg.Unsafe}, {"Open", cfg.Open != nil}} {
		if given.is {
			s.report(given.field, "a CLI does not have it")
		}
	}
	if cfg.Stdin == "" {
		s.about("Prompt", "is empty")
	}
	c.Permissions, c.Denied = cmp.Or(c.Permissions, string(codingcli.Edit)), cmp.Or(c.Denied, "fail")
	c.Args, c.Allow, c.Wrapper = slices.Clone(c.Args), slices.Clone(c.Allow), slices.Clone(c.Wrapper)
	c.OnLimit.AtMost = c.OnLimit.Most()
	a.waits = c.OnLimit.AtMost
	if !slices.Contains([]codingcli.Permissions{codingcli.Read, codingcli.Edit, codingcli.All}, codingcli.Permissions(c.Permissions)) {
		s.report("CLI", "permissions are read, edit or all, got %q", c.Permissions)
	}
	if c.Denied != "fail" && c.Denied != "allow" {
		s.report("CLI", "denied is fail or allow, got %q", c.Denied)
	}
	if c.Unfinished = cmp.Or(c.Unfinished, "fail"); c.Unfinished != "fail" && c.Unfinished != "keep" {
		s.report("CLI", "unfinished is fail or keep, got %q", c.Unfinished)
	}
	for _, line := range c.Allow {
		if strings.TrimSpace(line) == "" {
			s.report("CLI", "a command of allow is empty")
		}
	}
	cfg.Inherit = append(slices.Clone(cfg.Inherit), p.Variables...)
	cfg.CleanEnv = cfg.CleanEnv || c.ACP != nil
}

// program returns the facts about the program; nil for an unknown Program.
func (c *CLI) program() *codingcli.Program {
	if c.ACP != nil {
		return &codingcli.Program{Read: readACP}
	}
	return codingcli.Programs[c.Program]
}

// known returns what is known of the program, also of one with ACP.
func (c *CLI) known() *codingcli.Program {
	p := codingcli.Programs[c.Program]
	if c.ACP != nil {
		p = codingcli.Speakers[filepath.Base(c.ACP[0])]
	}
	return cmp.Or(p, new(codingcli.Program))
}

// name returns the program's name.
func (c *CLI) name() string {
	if len(c.ACP) > 0 {
		return c.ACP[0]
	}
	return c.Program
}

// Command returns the program that is started, and the arguments that it always has.
func (c *CLI) Command() []string {
	switch {
	case c.ACP != nil:
		return slices.Clone(c.ACP)
	case c.Wrapper != nil:
		return slices.Clone(c.Wrapper)
	}
	return []string{c.Program}
}

// asCLI fills in the fields of p that start a coding agent. It counts one model call, and reserves the cost that the agent may
// spend. It returns an error if the budget or the number of model calls is exceeded, or the model's price is unknown.
func (a *CommandAgent) asCLI(ctx agent.InvocationContext, p *process) error {
	c, b := a.cfg.CLI, drive.At(ctx).Budget()
	if err := b.Err(); err != nil {
		return err
	}
	if name := c.PricedAs(); name != "" && b.Remaining().Cost != nil {
		if _, known := ctx.RunConfig().Prices.Of(name); !known {
			return &budget.UnknownPriceError{Model: name}
		}
	}
	if err := drive.At(ctx).CountModelCall(); err != nil {
		return err
	}
	p.CLI, p.Idle, p.Grace = c.name(), c.IdleTimeout, cliGrace
	p.continues, p.before = c.continues(), a.conversation(ctx)
	if p.Sandbox != nil {
		p.boxWrite, p.boxReads = c.known().OwnFolders(os.Getenv), c.Permissions == string(codingcli.Read)
	}
	if c.ACP != nil {
		p.Args, p.ACP, p.Allow = slices.Clone(c.ACP), codingcli.Permissions(c.Permissions), c.Allow
		if rules := rulesOf(c.Allow); rules != nil && p.ACP == codingcli.Edit {
			p.Env = append(codingcli.SpeakerEnv(c.ACP[0], rules), p.Env...)
		}
		return nil
	}
	req := codingcli.Request{
		Permissions: codingcli.Permissions(c.Permissions), Allow: rulesOf(c.Allow), Model: c.Model, MaxTurns: c.MaxTurns, Args: c.Args,
		Confined: p.Sandbox != nil && SandboxCheck(p.Sandbox.Level) == nil, // else it keeps its own sandbox
	}
	program := c.program()
	if program.Turns {
		var err error
		if c.MaxCost > 0 {
			req.MaxCost = &c.MaxCost
		}
		if p.room, req.MaxCost, err = b.ReserveSum(ctx, req.MaxCost); err != nil {
			return err
		}
	}
	fresh, env := program.Start(req)
	fresh = append(c.Command(), fresh...)
	p.Args, p.Env = fresh, append(env, p.Env...)
	if p.before.ID != "" {
		req.Continue = p.before.ID
		args, _ := program.Start(req)
		p.Args, p.fresh = append(c.Command(), args...), fresh
	}
	return nil
}

// rulesOf returns the rules for command lines; nil if there are none.
func rulesOf(allow []string) *commandrule.Rules {
	if len(allow) == 0 {
		return nil
	}
	return commandrule.New(allow...)
}

// Traits describes the agent to its caller. A coding agent may take some time to end after its context has ended: a
// caller that did not wait would start the next program while this one still runs.
func (a *CommandAgent) Traits(durable bool) drive.Traits {
	t := a.task.Traits(durable)
	if a.cfg.CLI != nil {
		t.EndsWithin = cliGrace + pipeDelay
	}
	return t
}
