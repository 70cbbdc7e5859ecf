// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/taskagent/internal/codingcli"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// CLI makes a command a coding agent that is driven by its command line, such as Claude Code. Its arguments, and how
// its output is read, are known. [CommandConfig.Stdin] is the prompt.
//
// The agent says the program's last words. The result has these fields; null stands for what the program does not
// report:
//
//	outcome        ok, partial, denied, limited, not_configured, failed, idle, crashed or no_result
//	said           the last words
//	session        ID of the program's conversation
//	continued      ID of the conversation that this one goes on with
//	turns          requests to the model
//	input_tokens, output_tokens, cost
//	denied         names of the tools that it was not allowed to use
//	files          paths that its edits name, below its folder or absolute; the first 1000
//	more_files     edits of further files
//	exit_code, stderr
//
// The usage counts in the run's budget. A cost that the program does not report is computed by the price of the model,
// and is unknown without one. The program is asked to spend no more than what a budget of cost leaves; as programs
// look at that between their requests, one request may go beyond it. Programs that run at the same time share what is
// left.
//
// A program that comes to MaxTurns or MaxCost has succeeded in part: the step goes on, with the outcome partial, unless it
// was denied a tool before. Every other outcome than ok fails the step with a [*CLIError].
type CLI struct {
	// Program is claude or codex. Required without ACP.
	Program string
	// ACP is a program, and its arguments, that speaks the Agent Client Protocol, in place of Program:
	// []string{"gemini", "--acp"}. They are no templates. It inherits the variables that programs need to work, such as
	// PATH and HOME, and those that Inherit names.
	ACP []string
	// Model is the model's name, in the program's words; the default is the program's own choice.
	Model string
	// Permissions say what the program may do without asking: "read", "edit" (the default: change files in its
	// folder) or "all". They become the program's own modes, and with ACP they answer its requests for permission;
	// nothing else keeps it from what it wants to do.
	Permissions string
	// Denied says whether the step fails if the program was not allowed to use a tool: "fail" (the default) or
	// "allow". Codex does not report it.
	Denied string
	// MaxTurns limits the requests to the model; 0 is no limit. Only for claude.
	MaxTurns int
	// MaxCost limits the cost in US dollars; 0 is no limit but the run's. Only for claude.
	MaxCost float64
	// Args are further arguments, which are no templates. Not with ACP, nor is Model.
	Args []string
	// IdleTimeout ends a program that has printed nothing for so long; 0 is no limit.
	IdleTimeout time.Duration
	// OnLimit says what follows when the program's provider takes no more requests for now.
	OnLimit OnLimit
	// Conversation is [ConversationFresh] (the default) or [ConversationContinue]. Not elsewhere.
	Conversation string
}

// OnLimit says what follows when the provider of a coding agent takes no more requests for now.
type OnLimit struct {
	// Wait is [LimitStop] (the default) or [LimitReset].
	Wait string
	// AtMost is the longest time from the first wait of an attempt on; the default is six hours. After it the step fails,
	// and is not tried again. It fails at once if the limit is known to last longer.
	AtMost time.Duration
}

// Most returns the longest time to wait; 0 if the step does not wait.
func (l OnLimit) Most() time.Duration {
	if l.Wait != LimitReset {
		return 0
	}
	return cmp.Or(l.AtMost, limitMost)
}

// What follows when the provider of a coding agent takes no more requests for now.
const (
	// LimitStop fails the step with the outcome limited.
	LimitStop = "stop"
	// LimitReset waits, and asks the program again in the same attempt: when the limit ends, if the program reports
	// that, or else after one minute, then two, five, ten, and again and again fifteen; from the second wait on not
	// sooner than that, whatever the program reports. The waits are in the log: a run
	// that is resumed waits the rest. No time limit counts them but the loop's. Not for the effect agent.AtMostOnce.
	LimitReset = "reset"
)

// CLIPrograms lists the values of [CLI.Program].
func CLIPrograms() []string { return codingcli.Names() }

// ACPPrograms lists known programs of [CLI.ACP]. Any other may speak the protocol too.
func ACPPrograms() []string { return slices.Sorted(maps.Keys(codingcli.Speakers)) }

// CLIHelp says how a coding agent is installed, how a person signs in, and which version was tested, by CLI.Program or the
// first of CLI.ACP; empty texts if the program is not known.
func CLIHelp(program string) (install, signIn, tested string) {
	p := cmp.Or(codingcli.Programs[program], codingcli.Speakers[program])
	if p == nil {
		return "", "", ""
	}
	return p.Install, p.SignIn, p.Tested
}

// CLISignedIn has the arguments after which a coding agent says by its exit code, 0 or 1, whether somebody is signed in, and
// the variables that it needs for it, by CLI.Program; nil if it cannot be asked.
func CLISignedIn(program string) (args, variables []string) {
	if p := codingcli.Programs[program]; p != nil {
		return slices.Clone(p.SignedIn), slices.Clone(p.Variables)
	}
	return nil, nil
}

// PricedAs is the name by which the prices need to have what the agent asks, if there is a budget of cost. It is empty
// for a program that reports its cost, and for ACP, which may.
func (c *CLI) PricedAs() string {
	if p := c.program(); c.ACP != nil || p == nil || p.Costs {
		return ""
	}
	return cmp.Or(c.Model, c.Program)
}

// FindCLI returns a [*NoProgramError] if the program of a coding agent, by CLI.Program or the first of CLI.ACP, is not
// installed here. It cannot say that of one with a path.
func FindCLI(program string) error {
	if _, err := exec.LookPath(program); err == nil || filepath.Base(program) != program {
		return nil
	}
	install, _, _ := CLIHelp(program)
	return &NoProgramError{Program: program, Install: install}
}

// NoProgramError says that the program of a coding agent is not installed. It wraps [exec.ErrNotFound].
type NoProgramError struct {
	Program string
	// Install is the command that installs it, if that is known.
	Install string
}

func (e *NoProgramError) Error() string {
	return fmt.Sprintf("there is no program %q: install it%s, or put its folder into PATH", e.Program, after(" with ", e.Install))
}

// Permanent returns true: another attempt is useless.
func (e *NoProgramError) Permanent() bool { return true }

// Unwrap returns [exec.ErrNotFound].
func (e *NoProgramError) Unwrap() error { return exec.ErrNotFound }

// CLIResult lists the fields of a CLI's result.
func CLIResult() []string {
	return []string{
		"outcome", "said", "session", "continued", "turns", "input_tokens", "output_tokens", "cost", "denied", "files", "more_files",
		"exit_code", "stderr",
	}
}

// CLIError says that a coding agent has not done what it was asked to do.
type CLIError struct {
	// Program is the program's name.
	Program string
	// Outcome is denied, limited, not_configured, failed, crashed or no_result.
	Outcome string
	// Said is what the program says of its failure: the end of it, at most 10 lines and 2 kB.
	Said string
	// Denied are the names of the tools that it was not allowed to use.
	Denied []string
	// Until is when its provider takes requests again; zero if it does not say.
	Until time.Time
	// GivenUp says that the step has waited for the provider, or would have to, for longer than CLI.OnLimit allows.
	GivenUp bool
}

// Permanent reports whether another attempt is useless.
func (e *CLIError) Permanent() bool {
	return e.GivenUp || e.Outcome == string(codingcli.Denied) || e.Outcome == string(codingcli.NotConfigured)
}

func (e *CLIError) Error() string {
	text := e.Program + ": "
	switch codingcli.Outcome(e.Outcome) {
	case codingcli.Denied:
		how := "allow the tool with args"
		if codingcli.Programs[e.Program] == nil {
			how = "allow it in the program's own settings"
		}
		return text + "it was not allowed to use " + strings.Join(e.Denied, ", ") +
			"; give it permissions: all, " + how + ", or say denied: allow if that is fine"
	case codingcli.NotConfigured:
		text += "it is not signed in, or has no credit"
		_, signIn, _ := CLIHelp(e.Program)
		text += "; " + cmp.Or(signIn, "run it by hand and sign in, or name the variable of its key with inherit")
	case codingcli.Limited:
		text += "its provider takes no more requests "
		if e.Until.IsZero() {
			text += "for now"
		} else {
			text += "until " + e.Until.UTC().Format("2006-01-02 15:04 MST")
		}
		if e.GivenUp {
			text += ", which is longer than at_most of on_limit"
		}
	case codingcli.NoResult, codingcli.Crashed:
		return text + "it ended without a result" + after(": ", e.Said)
	default:
		text += "it failed"
	}
	return text + after(". It says: ", e.Said)
}

// after is a text with what stands before it; empty without the text.
func after(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// cliGrace is how long a coding agent has to end what it has started, after it is asked to end.
const cliGrace = 10 * time.Second

// parseCLI reports what is wrong with a CLI, and sets its defaults.
func (a *CommandAgent) parseCLI(s *source) {
	cfg := &a.cfg
	c := *cfg.CLI
	cfg.CLI = &c
	p := c.program()
	switch {
	case len(c.ACP) > 0 && c.Program != "":
		s.errorf("CLI and ACP: give one of them")
	case c.ACP != nil && (len(c.ACP) == 0 || c.ACP[0] == ""):
		s.errorf("ACP has no program")
	case p == nil:
		s.errorf("CLI names no program that is known: %q; there are %s", c.Program, strings.Join(CLIPrograms(), ", "))
		return
	case c.ACP != nil && (c.Model != "" || c.Args != nil):
		s.errorf("ACP: a model and further arguments stand in it, in the program's own options")
	case c.OnLimit.Wait == LimitReset && cfg.Effect == agent.AtMostOnce:
		s.errorf("OnLimit: the program would be asked again, and the step must not be done twice; say stop")
	case c.OnLimit.Wait != "" && c.OnLimit.Wait != LimitStop && c.OnLimit.Wait != LimitReset:
		s.errorf("OnLimit: wait is reset or stop, got %q", c.OnLimit.Wait)
	case c.OnLimit.Wait != LimitReset && c.OnLimit.AtMost != 0:
		s.errorf("OnLimit: at_most is for wait: reset")
	case c.MaxTurns < 0 || c.MaxCost < 0 || c.IdleTimeout < 0 || c.OnLimit.AtMost < 0:
		s.errorf("CLI: a limit is negative")
	case !slices.Contains([]string{"", ConversationFresh, ConversationContinue}, c.Conversation):
		s.errorf("Conversation is fresh or continue, got %q", c.Conversation)
	case c.continues() && cfg.Elsewhere.Name != "":
		s.errorf("Conversation: it is kept where the program runs, which may be another machine each time; say fresh")
	case (c.MaxTurns > 0 || c.MaxCost > 0) && !p.Turns:
		s.errorf("CLI: %s takes no limit of turns or cost; use Timeout", c.name())
	}
	for _, given := range []struct {
		field string
		is    bool
	}{{"Args", cfg.Args != nil}, {"JSON", cfg.JSON}, {"Tests", cfg.Tests != ""}, {"OKExitCodes", cfg.OKExitCodes != nil}, {"Unsafe", cfg.Unsafe}} {
		if given.is {
			s.errorf("%s: a CLI does not have it", given.field)
		}
	}
	if cfg.Stdin == "" {
		s.errorf("Prompt is empty")
	}
	c.Permissions, c.Denied = cmp.Or(c.Permissions, string(codingcli.Edit)), cmp.Or(c.Denied, "fail")
	c.Args = slices.Clone(c.Args)
	c.OnLimit.AtMost = c.OnLimit.Most()
	a.waits = c.OnLimit.AtMost
	if !slices.Contains([]codingcli.Permissions{codingcli.Read, codingcli.Edit, codingcli.All}, codingcli.Permissions(c.Permissions)) {
		s.errorf("CLI: permissions are read, edit or all, got %q", c.Permissions)
	}
	if c.Denied != "fail" && c.Denied != "allow" {
		s.errorf("CLI: denied is fail or allow, got %q", c.Denied)
	}
	cfg.Inherit = append(slices.Clone(cfg.Inherit), p.Variables...)
	cfg.CleanEnv = cfg.CleanEnv || c.ACP != nil
}

// program is what is known of it; nil if nothing is.
func (c *CLI) program() *codingcli.Program {
	if c.ACP != nil {
		return &codingcli.Program{Read: readACP}
	}
	return codingcli.Programs[c.Program]
}

// name is the program's name.
func (c *CLI) name() string {
	if len(c.ACP) > 0 {
		return c.ACP[0]
	}
	return c.Program
}

// asCLI fills in how the process of a coding agent is started. It reserves what the agent is told that it may cost.
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
	if c.ACP != nil {
		p.Args, p.ACP = slices.Clone(c.ACP), codingcli.Permissions(c.Permissions)
		return nil
	}
	req := codingcli.Request{
		Permissions: codingcli.Permissions(c.Permissions), Model: c.Model, MaxTurns: c.MaxTurns, Args: c.Args,
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
	fresh = append([]string{c.Program}, fresh...)
	p.Args, p.Env = fresh, append(env, p.Env...)
	if p.before.ID != "" {
		req.Continue = p.before.ID
		args, _ := program.Start(req)
		p.Args, p.fresh = append([]string{c.Program}, args...), fresh
	}
	return nil
}

// books counts in the run's budget what a coding agent has used. Its error says that the run has made too many requests.
func (a *CommandAgent) books(ctx agent.InvocationContext, p *process, r *codingcli.Report) error {
	r.Model = cmp.Or(r.Model, a.cfg.CLI.Model, a.cfg.CLI.name())
	r.Usage = ctx.RunConfig().Prices.Priced(r.Model, r.Usage)
	drive.At(ctx).Budget().Book(r.Usage)
	p.room.Release()
	for range r.Usage.Calls - 1 { // the first was counted before it was asked
		if err := drive.At(ctx).CountModelCall(); err != nil {
			return fmt.Errorf("each of the %d requests of %s to its model counts: %w", r.Usage.Calls, a.cfg.CLI.name(), err)
		}
	}
	return nil
}

// cliOutcome turns what a coding agent has printed into the task's outcome. err is why it was ended, if it was.
func (a *CommandAgent) cliOutcome(ctx agent.InvocationContext, p *process, got ended, err error) (outcome, error) {
	c := a.cfg.CLI
	if err != nil && !got.Started {
		return outcome{}, err
	}
	code := got.Code
	if err != nil { // it was ended, and the code says that only
		code = 0
	}
	r := c.program().Read([]byte(got.Stdout), code)
	if r.Renewed != "" {
		p.renews(r.Renewed)
	}
	r.Since(p.before.Total)
	if r.Outcome == codingcli.Partial && len(r.Denied) > 0 && c.Denied == "fail" {
		r.Outcome = codingcli.Denied
	}
	tooMany := a.books(ctx, p, &r)
	if err != nil && ctx.Err() != nil {
		return outcome{}, err
	}
	called := r.Outcome
	if called == codingcli.NoResult {
		switch {
		case got.Idle:
			called = codingcli.Idle
		case err == nil && (got.Code > 0 || c.ACP == nil && got.Code < 0): // one that speaks ACP is killed after its answer
			called = codingcli.Crashed
		}
	}
	out := outcome{words: trimNewline(r.Said), used: &r.Usage, model: r.Model, result: map[string]any{
		"outcome": string(called), "said": r.Said, "session": r.Session, "denied": r.Denied,
		"continued": known(p.before.ID != "", p.before.ID),
		"turns":     known(r.Turns > 0, r.Turns), "input_tokens": known(!r.Usage.Estimated, r.Usage.InputTokens),
		"output_tokens": known(!r.Usage.Estimated, r.Usage.OutputTokens), "cost": known(r.Usage.Cost != nil, r.Usage.Cost),
		"files": known(r.Files != nil, r.Files), "more_files": known(r.Files != nil, r.MoreFiles),
		"exit_code": known(c.ACP == nil || got.Code >= 0, got.Code), "stderr": tail(got.Stderr),
	}}
	out.output, out.warning = out.words, p.renewed
	if tooMany != nil {
		return out, tooMany
	}
	if r.Unable {
		return out, &ConversationError{Program: c.name()}
	}
	switch ok := r.Outcome == codingcli.OK || r.Outcome == codingcli.Partial || r.Outcome == codingcli.Denied && c.Denied == "allow"; {
	case ok: // though the program may have hung after its result
		out.sets = a.keeps(&r)
		return out, nil
	case err != nil:
		return out, err
	}
	failed := &CLIError{Program: c.name(), Outcome: string(called), Said: tail(r.Said), Denied: r.Denied}
	if r.Outcome == codingcli.Limited {
		failed.Until, out.limit = r.Until, &limit{until: r.Until, least: r.Wait}
	}
	if r.Outcome == codingcli.NoResult {
		failed.Said = cmp.Or(tail(got.Stderr), got.State)
	}
	return out, failed
}

// known is a value that was reported, or nil.
func known[T any](is bool, v T) any {
	if !is {
		return nil
	}
	return v
}

// metadataUsage is a key of the CustomMetadata of an event: what a coding agent has used, as a [budget.Usage].
const metadataUsage = "refrain:usage"

// spent notes in an event what was used.
func (out *outcome) spent(ev *session.Event) {
	if out.used == nil {
		return
	}
	u := *out.used
	ev.ModelVersion, ev.CustomMetadata = out.model, map[string]any{metadataUsage: u}
	if u.Estimated {
		return
	}
	ev.UsageMetadata = &genai.GenerateContentResponseUsageMetadata{
		PromptTokenCount: int32(u.InputTokens), CachedContentTokenCount: int32(u.CachedTokens),
		CandidatesTokenCount: int32(u.OutputTokens), TotalTokenCount: int32(u.InputTokens + u.OutputTokens),
	}
	model.SetCacheWrites(ev.UsageMetadata, u.CacheWriteTokens, u.CacheWrite1hTokens)
}

// EndsWithin returns how long a coding agent may take to end after its context has. Whoever did not wait for it would
// start the next one beside it.
func (a *CommandAgent) EndsWithin() time.Duration {
	if a.cfg.CLI == nil {
		return 0
	}
	return cliGrace + pipeDelay
}

var (
	_ drive.Ender   = (*CommandAgent)(nil)
	_ drive.Meter   = (*CommandAgent)(nil)
	_ drive.Spender = (*CommandAgent)(nil)
)

// CutOff returns the usage of an attempt that was cut off with its process. What a coding agent has used by then is
// unknown.
func (a *CommandAgent) CutOff() (used budget.Usage) {
	if a.cfg.CLI != nil {
		used = budget.Usage{Calls: 1, Estimated: true}
	}
	return used
}

// Used returns what a coding agent has used for a logged event; zero for any other event.
func (a *CommandAgent) Used(ev *session.Event, _ budget.Prices) (used budget.Usage) {
	if ev.Mark != nil && ev.Mark.Kind != mark.KindLimited || ev.CustomMetadata[metadataUsage] == nil {
		return used
	}
	data, err := json.Marshal(ev.CustomMetadata[metadataUsage])
	if err == nil {
		err = json.Unmarshal(data, &used)
	}
	if err != nil { // somebody else wrote it
		return budget.Usage{Calls: 1, Estimated: true}
	}
	return used
}

// idleError says that a program has printed nothing for too long.
type idleError time.Duration

func (e idleError) Error() string {
	return fmt.Sprintf("it printed nothing for its idle_timeout of %s", time.Duration(e))
}
