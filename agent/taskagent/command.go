// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/process/procgroup"
	"github.com/refrain-dev/refrain/internal/text/requesttemplate"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session"
)

// defaultLimit is the default limit of a command's output, and of the body of an answer, in bytes.
const defaultLimit = 1 << 20

// CommandConfig describes an agent that runs a command.
//
// The command leads a process group of its own. When the step ends, for any reason, the group is killed, so that
// no process that the command started stays alive. (Windows has no process groups: there only the command itself
// is killed.) If this process was killed with kill -9, the remaining processes of the command are killed when the
// run is resumed, before the command runs again. They can be found on Linux only.
type CommandConfig struct {
	Config
	// Args is the program and its arguments. Each is a template and stays one argument, whatever
	// its values contain; no shell is involved. Required.
	//
	// A placeholder may stand in an argument if Shapes declares the shape of its value, or if it is a
	// built-in number or truth value, such as {{iteration}}. The value is checked when the template is
	// filled; a value of another shape is a [*ValueError]. A value at the beginning of an argument may
	// begin with "-" only if it is a number or one of the choices. A path is a whole argument, or stands
	// behind "=". In the program's name only choices may stand. In an argument that a known interpreter reads as
	// code, only numbers, truth values and choices may stand. Pass text of any content to the command as Stdin, or in
	// a variable whose name begins with [FreePrefix].
	Args []string
	// Stdin is a template of the command's standard input. The command reads it from a file, which is
	// complete before the command starts. If Stdin is empty, the standard input is the null device. Stdin must
	// not have placeholders if Args has an interpreter that is known to run its input as code.
	Stdin string
	// Env holds environment variables, as templates. A variable whose name begins with [FreePrefix] takes
	// any text; the others are limited like arguments, because programs read variables as settings.
	//
	// The variables override those that the command inherits from this process. It inherits all variables
	// except those that Refrain itself uses (REFRAIN_…, TEMPORAL_…, keys of models, headers of telemetry,
	// PGPASSWORD), or with CleanEnv only those that programs need to work: PATH, HOME, USER, SHELL, LANG,
	// LC_ALL, TZ, TMPDIR, and their equivalents on Windows.
	Env      map[string]string
	CleanEnv bool
	// Inherit names variables that the command inherits in addition. Withhold names further
	// variables that it does not inherit.
	Inherit, Withhold []string
	// Shapes are the shapes of values, by the names of their placeholders, such as "level" or
	// "report.lines". {{prev.level}}, {{best.level}} and {{rejected.level}} have the shape of
	// level.
	Shapes map[string]Shape
	// Open names placeholders of the types file and folder, such as "report". Refrain opens such a file for reading and checks
	// it. In an argument or a variable the command gets the name of the open file, such as /dev/fd/3, instead of its path,
	// because another program could replace the path by a link before the command opens it. Folders need Linux, and files
	// need a Unix system.
	Open []string
	// Parameters are the names of a tool's parameters. A placeholder with such a name stands for a
	// field of the request, a JSON object, and not for a key of the state.
	Parameters []string
	// Root is the directory that Dir cannot leave; the default is the current directory.
	Root string
	// Dir is a template of the working directory, relative to Root; the default is Root. A path
	// that leads out of Root, by "..", by a symbolic link or because it is absolute, is an error.
	// Dir decides where the command starts. It does not limit what the command can do.
	Dir string
	// OutputLimit limits the size of the command's standard output, of its standard error, and of the file of Tests, each in
	// bytes. A longer output is a [*LimitError]. The default is 1 MiB, or 16 MiB with Tests. A coding agent may print more; then only
	// the ends of its standard error and of its last message are kept.
	OutputLimit int64
	// Timeout limits the command's running time; 0 means no limit.
	Timeout time.Duration
	// JSON requires that the standard output is one JSON value, which is then written to
	// OutputKey.
	JSON bool
	// Tests makes the agent count the results of tests. TestsGo, TestsJUnit or TestsCounts is the format in which they are in
	// the standard output. Any other text is the path of a JUnit XML file below Dir, which must end with .xml; the file is
	// deleted before the command starts.
	//
	// The counts replace the output, as the value of JSON does. They are a map with passed, failed, skipped
	// and total. If packages did not build or did not run to the end, broken is their number; each counts as failed unless
	// one of its tests has failed. If there are tests, score is passed / total. said is the output of failed tests, at most
	// 16 KiB. A test with subtests counts only if it failed and none of them did. If nothing can be counted, the step fails.
	Tests string
	// OKExitCodes are the exit codes of success; the default is 0 alone, or 0 and 1 with Tests. Any other is an
	// [*ExitError].
	OKExitCodes []int
	// Unsafe allows any value in every place.
	Unsafe bool
	// CLI makes the command a coding agent, and Stdin its prompt. Args, JSON, Tests, OKExitCodes, Unsafe and Open cannot be
	// set with it. Nil means any other command.
	CLI *CLI
	// Around runs the command by a call of run. The folder replaces Root, and its Env has further environment variables,
	// which Env overrides. Around returns further state keys to set, even with an error. Its error is that of run, one
	// of its own, or a [*QuestionError]. Around is not called for a command that runs on another machine. Nil runs the
	// command in Root.
	Around func(ctx agent.InvocationContext, run func(Folder) error) (map[string]any, error)
	// Sandbox limits what the command may do; nil does not limit it.
	Sandbox *Sandbox
}

// EnvCallID is the environment variable with the ID of a command's call ([drive.Place.CallID]).
// The ID is the same in each attempt, and when the run is resumed.
const EnvCallID = "REFRAIN_CALL_ID"

// CommandAgent is the concrete type of [NewCommand]'s agents.
type CommandAgent struct {
	*drive.Base
	task
	cfg        CommandConfig
	args       []*template.Template
	stdin, dir *template.Template
	env        []variable // sorted by name
}

// variable is one entry of Env.
type variable struct {
	name  string
	value *template.Template
}

// NewCommand returns an agent that runs a command. The agent outputs the command's standard output
// without trailing line ends, and writes the same text to OutputKey. The result has the fields
// exit_code, stdout, stderr and, with JSON, json. In all of these fields [secret] replaces the
// values of environment variables that are named like secrets, such as X_API_KEY.
//
// NewCommand reports every mistake in the config, including templates and expressions that cannot
// be parsed, and a [*ShapeError] for each placeholder whose value needs a declared shape. The agent
// fails with a [*ValueError], an [*ExitError], a [*LimitError], context.DeadlineExceeded after its
// Timeout, or if the command cannot be started; exec.ErrNotFound means that there is no program of
// that name.
func NewCommand(cfg CommandConfig) (agent.Agent, error) {
	cfg.Args, cfg.Env, cfg.OKExitCodes = slices.Clone(cfg.Args), maps.Clone(cfg.Env), slices.Clone(cfg.OKExitCodes)
	cfg.Open = slices.Clone(cfg.Open)
	cfg.Shapes, cfg.Parameters = maps.Clone(cfg.Shapes), slices.Clone(cfg.Parameters)
	if cfg.OutputLimit == 0 {
		cfg.OutputLimit = defaultLimit
		if cfg.Tests != "" {
			cfg.OutputLimit = testsLimit
		}
	}
	switch {
	case len(cfg.OKExitCodes) > 0 || cfg.CLI != nil:
	case cfg.Tests != "":
		cfg.OKExitCodes = []int{0, 1}
	default:
		cfg.OKExitCodes = []int{0}
	}
	a := &CommandAgent{cfg: cfg}
	a.task = task{cfg: cfg.Config, do: a.do, json: cfg.JSON || cfg.Tests != ""}
	var s source
	a.parse(&s)
	base, err := a.prepare(a, "command", &s)
	if err != nil {
		return nil, err
	}
	a.Base = base
	return a, nil
}

// Config returns the config that the agent was made from, with the defaults filled in.
func (a *CommandAgent) Config() CommandConfig { return a.cfg }

// parse parses the templates of the config and checks it. It adds every error to s.
func (a *CommandAgent) parse(s *source) {
	cfg := &a.cfg
	switch {
	case cfg.CLI != nil:
		a.parseCLI(s)
	case len(cfg.Args) == 0 || cfg.Args[0] == "":
		s.about("Args", "has no program")
	}
	a.checkTests(s)
	for i, arg := range cfg.Args {
		a.args = append(a.args, s.template(fmt.Sprintf("Args[%d]", i), arg, template.Mustache))
	}
	a.stdin = s.template(a.input(), cfg.Stdin, template.Mustache)
	for _, name := range slices.Sorted(maps.Keys(cfg.Env)) {
		field := fmt.Sprintf("Env[%q]", name)
		if name == "" || strings.ContainsAny(name, "=\x00") {
			s.report(field, "not a name of a variable")
		}
		a.env = append(a.env, variable{name, s.template(field, cfg.Env[name], template.Mustache)})
	}
	a.dir = s.template("Dir", cfg.Dir, template.Mustache)
	a.checkCode(s)
	a.checkOpen(s)
	if cfg.OutputLimit < 0 {
		s.about("OutputLimit", "is negative: %d", cfg.OutputLimit)
	}
	if cfg.Timeout < 0 {
		s.about("Timeout", "is negative: %s", cfg.Timeout)
	}
	if cfg.Sandbox != nil {
		cfg.Sandbox.check(s)
	}
}

// input returns the name of the standard input in errors: "Prompt" for a coding agent, and else "Stdin".
func (a *CommandAgent) input() string {
	if a.cfg.CLI != nil {
		return "Prompt"
	}
	return "Stdin"
}

// do runs the command on this machine, by Around, or on another machine. If the call is repeated, it first kills the processes
// that an earlier run of the command has left on this machine.
func (a *CommandAgent) do(ctx agent.InvocationContext, round int, yield func(*session.Event, error) bool) (outcome, error) {
	if drive.At(ctx).IsRepeat() && a.cfg.Elsewhere.Name == "" {
		procgroup.Sweep(EnvCallID + "=" + drive.At(ctx).CallID())
	}
	p, err := a.process(ctx, drive.At(ctx).Lookup)
	if err != nil {
		return outcome{}, err
	}
	defer p.room.Release()
	if a.cfg.Around != nil && a.cfg.Elsewhere.Name == "" {
		return a.doAround(ctx, p, yield)
	}
	if a.cfg.Elsewhere.Name == "" {
		return a.goesOn(ctx, p, a.cfg.Root, yield)
	}
	var got processDone
	if err := a.elsewhere(ctx, KindCommand, p, round, &got); err != nil {
		return outcome{}, err
	}
	return a.outcome(ctx, p)(got.Ended, a.failedElsewhere(got.Failure))
}

// doAround calls Around, which runs the command. If a coding agent fails and its changes are to be kept, the step succeeds with
// a warning.
func (a *CommandAgent) doAround(ctx agent.InvocationContext, p *process, yield func(*session.Event, error) bool) (out outcome,
	err error) {
	var failed error
	sets, err := a.cfg.Around(ctx, func(folder Folder) (err error) {
		p.Env, p.folder = append(slices.Clone(folder.Env), p.Env...), folder
		out, err = a.goesOn(ctx, p, folder.Path, yield)
		if err != nil && out.unfinished && a.cfg.CLI.Unfinished == "keep" {
			failed, err = err, nil
		}
		return err
	})
	switch {
	case err != nil || failed == nil:
	case changesState(ctx, sets):
		out.warning = brief.Line(failed.Error(), lineLength) + "; the files that it changed before are kept"
	default:
		sets, err = nil, failed
	}
	if err == nil {
		out.warning = strings.Join(slices.DeleteFunc([]string{out.warning, leftOut(ctx, sets)}, func(s string) bool { return s == "" }), "; ")
	}
	if err != nil {
		out.sets = nil // so that the next attempt continues the same conversation as this one
	}
	if len(sets) > 0 {
		out.sets = maps.Clone(out.sets)
		if out.sets == nil {
			out.sets = make(map[string]any, len(sets))
		}
		maps.Copy(out.sets, sets)
	}
	return out, err
}

// leftOut returns a warning that names the git repositories inside the files, which are not stored. It returns "" if there are
// none, or if the state already names the same ones.
func leftOut(ctx agent.InvocationContext, sets map[string]any) string {
	for key, now := range sets {
		was, _ := drive.At(ctx).Lookup(key)
		after, _ := now.(map[string]any)
		before, _ := was.(map[string]any)
		if names, _ := after["left_out"].(string); names != "" && (before == nil || before["left_out"] != names) {
			return "git repositories inside the files are not part of the result: " + brief.Line(names, lineLength)
		}
	}
	return ""
}

// changesState reports whether a key that Around sets names another tree of files than the state has under that key.
func changesState(ctx agent.InvocationContext, sets map[string]any) bool {
	for key, now := range sets {
		was, _ := drive.At(ctx).Lookup(key)
		after, _ := now.(map[string]any)
		before, _ := was.(map[string]any)
		if after == nil || before == nil || after["tree"] != before["tree"] {
			return true
		}
	}
	return false
}

// doAs runs the command on this machine, for the call with the given ID.
func (a *CommandAgent) doAs(ctx agent.InvocationContext, id string, lookup func(string) (any, bool)) (outcome, error) {
	p, err := a.process(ctx, lookup)
	if err != nil {
		return outcome{}, err
	}
	defer p.room.Release()
	return a.outcome(ctx, p)(p.run(ctx, a.cfg.Root, id))
}

// outcome returns a function that turns the results of a process into the task's outcome.
func (a *CommandAgent) outcome(ctx agent.InvocationContext, p *process) func(completion, error) (outcome, error) {
	return func(got completion, err error) (outcome, error) {
		if a.cfg.CLI != nil {
			return a.cliOutcome(ctx, p, got, err)
		}
		if err != nil {
			return outcome{}, err
		}
		out := outcome{words: trimNewline(got.Stdout), result: map[string]any{
			"exit_code": got.Code, "stdout": got.Stdout, "stderr": got.Stderr,
		}}
		out.output = out.words
		if !slices.Contains(a.cfg.OKExitCodes, got.Code) {
			return out, &ExitError{Command: p.Args[0], Code: got.Code, State: got.State, Stderr: cmp.Or(tail(got.Stderr), tail(got.Stdout))}
		}
		if a.cfg.Tests != "" {
			return a.counted(out, &got)
		}
		if a.cfg.JSON {
			v, err := parseJSON(got.Stdout)
			if err != nil {
				return out, fmt.Errorf("read the output of command %q as JSON: %w", p.Args[0], err)
			}
			out.output, out.result["json"] = v, v
		}
		return out, nil
	}
}

// process fills the templates and returns the process to start. The caller releases its room.
func (a *CommandAgent) process(ctx agent.InvocationContext, lookup func(string) (any, bool)) (*process, error) {
	p := &process{CleanEnv: a.cfg.CleanEnv, Inherit: a.cfg.Inherit, Withhold: a.cfg.Withhold,
		Limit: a.cfg.OutputLimit, Timeout: a.cfg.Timeout, Report: a.cfg.report(), Sandbox: a.cfg.Sandbox}
	f := filling{cfg: &a.cfg, lookup: a.cfg.withArguments(ctx, lookup), p: p}
	for i, t := range a.args {
		in := argument
		if i == 0 {
			in = program
		}
		arg, err := f.fill(fmt.Sprintf("Args[%d]", i), t, in, false)
		if err != nil {
			return nil, err
		}
		p.Args = append(p.Args, arg)
	}
	err := f.checkArgs()
	if err != nil {
		return nil, err
	}
	if p.Stdin, err = requesttemplate.Fill(a.input(), a.stdin, f.lookup); err != nil {
		return nil, err
	}
	if text := drive.At(ctx).Loop().HintText(a.Name()); text != "" && a.cfg.CLI != nil {
		p.Stdin = strings.TrimRight(p.Stdin, "\n") + "\n\n" + text + "\n"
	}
	if p.Dir, err = f.fill("Dir", a.dir, folder, false); err != nil {
		return nil, err
	}
	for _, v := range a.env {
		value, err := f.fill(fmt.Sprintf("Env[%q]", v.name), v.value, argument, free(v.name))
		if err != nil {
			return nil, err
		}
		p.Env = append(p.Env, v.name+"="+value)
	}
	if a.cfg.CLI != nil {
		return p, a.asCLI(ctx, p)
	}
	return p, nil
}

// tail returns the end of a text, at most 10 lines and 2 kB.
func tail(text string) string {
	lines := strings.Split(brief.EndBytes(strings.TrimSpace(text), 2000), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}
