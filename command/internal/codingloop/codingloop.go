// SPDX-License-Identifier: Apache-2.0

// Package codingloop writes the definition of a loop that asks a coding agent until a command succeeds.
//
//	text, err := codingloop.Definition(&codingloop.Config{
//		Prompt: "Make the tests pass.", CLI: "claude", Until: "go test ./...", Most: 10, Permissions: "edit", Denied: "fail",
//	})
package codingloop

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/internal/files/runfiles"
)

// Config describes the loop. Its texts may contain anything, because Definition does not read them as templates or as YAML.
type Config struct {
	Prompt, CLI, Model, Permissions, Denied string
	ACP                                     []string      // command of a program that speaks the Agent Client Protocol, in place of CLI
	Wrapper, Args                           []string      // program to start in place of CLI; further arguments of CLI
	Setup                                   string        // a shell command line that prepares the copy; only with Branch
	MaxTurns                                int           // most requests of the agent to its model in an iteration; 0 means no limit
	Retry                                   int           // attempts at an iteration of the agent; 0 means 2
	Conversation                            string        // fresh or continue; "" is fresh
	Inherit                                 []string      // environment variables to pass to the agent
	Allow                                   []string      // commands that the agent may run besides Until
	Read                                    []string      // command that prints Prompt anew, with the one of before as its input; nil for none
	Count                                   []string      // command that counts tests, with those of BeforeKey in its input; nil for none
	Until                                   string        // a shell command line; may be empty
	First                                   bool          // Until runs before the agent is asked for the first time, in the run itself
	Done                                    string        // a line of the agent that ends the loop; may be empty
	Most                                    int           // iterations
	Cost                                    float64       // in US dollars; 0 means no limit
	Timeout, Idle                           time.Duration // of the loop; of the agent without output; 0 means no limit
	Copy                                    []string      // files that git ignores and that the copy gets too
	Branch                                  string        // new branch for the result; "" works on the files themselves
	Notes                                   string        // file of the copy for notes to the next iteration; "" for none; only with Branch
	KeepsNotes                              bool          // the notes are part of the result
	ReadNotes                               []string      // command that prints the file of Notes, with the notes of before as its input
	Protect                                 []string      // patterns of files to restore after a change; only with Branch
	Squash                                  bool          // one commit for all iterations; only with Branch
	Waits                                   bool          // wait while the agent's provider refuses requests
	Folders                                 []string      // absolute, that the agent may read and change besides its own
	Sandbox                                 string        // level of the sandbox of the agent and of Until; "" for none
	Plan                                    *Plan         // tasks in place of one prompt; needs Branch
	Review                                  *Review       // of the work, when it is done; only with Branch
	NoProgress                              int           // end after so many iterations with the same result; 0 means no end
}

// Plan describes the steps that work on a list of tasks, one in an iteration.
type Plan struct {
	Step      []string // command of a step, without its verb
	File      string   // absolute name of the plan
	Copy      string   // name of the plan below the folder of the agent
	Commands  []string // of the plan, that the agent may run
	Tries     int      // after which a task has failed
	OnFailure string   // of a task: skip or stop
}

// SaidKey is the state key of the last output of the command; "" at first. A run that knows the output may begin with another
// value.
const SaidKey = "said_until"

// BeforeKey is the state key of what the command of Count has printed before the loop; "" if that is not known.
const BeforeKey = "tests_before"

// notesKey is the state key of the text of the notes.
const notesKey = "notes"

// Longest is the size of the largest output of the command, in bytes.
const Longest = 10 << 20

// untilLine runs the command of --until. The agent gets the command's output. Every exit code becomes 1, except the codes of a
// shell that cannot run the command.
const untilLine = `sh -c "$INPUT_UNTIL" 2>&1
code=$?
if [ $code -eq 126 ] || [ $code -eq 127 ]; then
  echo "the shell cannot run: $INPUT_UNTIL" >&2
  exit $code
fi
[ $code -eq 0 ]`

// onceLine begins the line of the step that runs the command of --until before the agent is asked: in later iterations it repeats the
// last output.
const onceLine = `if [ "$INPUT_ITERATION" -gt 1 ]; then cat; exit 1; fi
`

// withoutTimes is a command of sed that replaces times, because go test and other programs print how long they took, which
// differs each time.
const withoutTimes = `s/[0-9]+(\.[0-9]+)? ?(ms|s|sec|secs|seconds)([^A-Za-z]|$)/(time)\3/g`

// Definition returns the definition as YAML.
func Definition(c *Config) ([]byte, error) {
	root, err := c.root()
	if err != nil {
		return nil, err
	}
	return yaml.Marshal(root)
}

func (c *Config) root() (*yaml.Node, error) {
	if c.Review != nil && c.Review.Branch != "" {
		return c.alone()
	}
	loop := c.loop()
	if c.Review != nil {
		return c.reviewed(loop)
	}
	return loop, nil
}

// The expressions for the ends of a loop.
const (
	exits  = "state.checked.exit_code == 0"
	agrees = `("\n" + state.said + "\n").contains("\n" + state.done + "\n")`
)

// loop returns the loop that asks the agent.
func (c *Config) loop() *yaml.Node {
	loop := mapping(
		"name", "loop", "max_iterations", c.Most, "timeouts", "none", "max_model_calls", "none", "result", "said",
		"state", map[string]any{"prompt": c.Prompt, "until": c.Until, "done": c.Done, SaidKey: ""},
	)
	if c.Plan != nil {
		loop = mapping(
			"name", "loop", "max_iterations", c.Most, "timeouts", "none", "max_model_calls", "none", "result", "said",
			"state", map[string]any{"prompt": c.Prompt, "until": c.Until, SaidKey: "", "ticked": "", "task": ""},
		)
	}
	if c.Count != nil {
		add(loop.Content[len(loop.Content)-1], BeforeKey, "")
	}
	if c.Notes != "" {
		add(loop.Content[len(loop.Content)-1], notesKey, "")
	}
	if c.NoProgress > 0 && c.Plan == nil { // a task of a plan has its own limit
		add(loop, "no_progress", map[string]any{"keys": []string{"compared"}, "repeats": c.NoProgress})
	}
	told := ""
	if c.Branch != "" {
		told = "{{#workspace.left_out}}\nThese are git repositories inside the folder, so their files are not part of your work: " +
			"{{workspace.left_out}}. " +
			"Delete them, or their .git if the files belong to your work.\n{{/workspace.left_out}}\n"
		space := c.workspace(map[string]any{})
		if c.Notes != "" {
			told += "{{#" + notesKey + "}}\nYour notes in " + braces.Replace(c.Notes) + ":\n{{" + notesKey + "}}\n{{/" + notesKey + "}}"
			if !c.KeepsNotes {
				space["notes"] = c.Notes
			}
		}
		if c.Protect != nil {
			told += "{{#workspace.protected}}\nYou may not change {{workspace.protected}}: these files were put back.\n{{/workspace.protected}}\n"
		}
		add(loop, "workspace", space)
	}
	if c.Timeout > 0 {
		add(loop, "timeout", c.Timeout.String())
	}
	if c.Cost > 0 {
		add(loop, "budget", map[string]any{"cost": c.Cost})
	}
	program, asked := "cli", any(c.CLI)
	if c.ACP != nil {
		program, asked = "acp", c.ACP
	}
	output := "{{#said_until}}\nThe command that has to succeed says:\n{{said_until}}\n{{/said_until}}\n"
	if c.Plan != nil {
		output = "{{#task.again}}\nYour last try failed." + output + "{{/task.again}}"
	}
	coder := mapping("name", "coder", program, asked, "prompt", c.goal()+c.rules()+output+told,
		"permissions", c.Permissions, "denied", c.Denied, "unfinished", "keep", "retry", cmp.Or(c.Retry, 2), "output_key", "said")
	c.options(coder, true)
	if c.MaxTurns > 0 {
		add(coder, "max_turns", c.MaxTurns)
	}
	if c.Conversation != "" {
		add(coder, "conversation", c.Conversation)
	}
	c.allow(coder)
	if c.Model != "" {
		add(coder, "model", c.Model)
	}
	command := "{{until}}"
	if c.Plan != nil {
		command = "{{task.command}}"
	}
	runs := func(name, line string, env map[string]any, result string) *yaml.Node {
		env["INPUT_UNTIL"] = command
		step := mapping("name", name, "command", []string{"sh", "-c", line}, "env", env, "ok_exit_codes", []int{0, 1},
			"output_limit", Longest, "output_key", SaidKey, "result_key", result)
		if c.Sandbox != "" {
			add(step, "sandbox", c.box())
		}
		return step
	}
	check := runs("check", untilLine, map[string]any{}, "checked")
	begin := []*yaml.Node{coder}
	if c.Read != nil {
		begin = []*yaml.Node{mapping("name", "reader", "description", "reads the prompt, which may have changed", "command", c.Read,
			"stdin", "{{prompt}}", "output_limit", Longest, "output_key", "prompt"), coder}
	}
	if c.Notes != "" {
		read := func(name, why string) *yaml.Node {
			return mapping("name", name, "description", why, "command", c.ReadNotes, "output_key", notesKey)
		}
		copied := read("notes", "puts the notes of before into a copy without them, such as that of a fork")
		add(copied, "stdin", "{{"+notesKey+"}}") // the other step has no input: notes that the agent has deleted stay so
		begin = slices.Concat([]*yaml.Node{copied}, begin, []*yaml.Node{read("read_notes", "reads what the agent has noted")})
	}
	if c.First {
		first := runs("first_check", onceLine+untilLine, map[string]any{"INPUT_ITERATION": "{{iteration}}"}, "first_checked")
		add(first, "description", "runs the command of --until before the agent is asked")
		add(first, "stdin", "{{"+SaidKey+"}}")
		add(first, "exit_when", "state.first_checked.exit_code == 0")
		add(first, "exit_reason", "the command of --until succeeds already")
		begin = slices.Insert(begin, 0, first)
	}
	checks := []*yaml.Node{check}
	if c.Count != nil {
		checks = append(checks, mapping("name", "tests", "description", "counts the tests, so that fewer ones are noticed", "command", c.Count,
			"stdin", "{{"+BeforeKey+"}}", "tests", "counts", "output_key", "tests_found"))
	}
	if c.Plan != nil {
		add(loop, "sub_agents", c.planSteps(begin, checks))
		return loop
	}
	compared := "{{said_until}}{{^said_until}}{{said}}{{/said_until}}"
	if c.Branch != "" {
		compared += "\n{{" + runfiles.Key + ".tree}}" // and not its commit, which is new when old files come back
	}
	until := mapping("name", "until", "description", "ends the loop, and finds out whether the result is the same again",
		"command", []string{"sed", "-E", withoutTimes},
		"stdin", compared, "env", map[string]any{"LC_ALL": "C"},
		"output_limit", Longest, "output_key", "compared")
	switch {
	case c.Until != "" && c.Done != "":
		add(until, "exit_when", exits+" && "+agrees)
		add(until, "exit_reason", "the command of --until succeeds, and the agent says: {{done}}")
	case c.Until != "":
		add(until, "exit_when", exits)
		add(until, "exit_reason", "the command of --until succeeds")
	case c.Done != "":
		add(until, "exit_when", agrees)
		add(until, "exit_reason", "the agent says: {{done}}")
	}
	if c.Branch != "" && !c.Squash {
		add(until, "commit", "said")
	}
	steps := slices.Concat(begin, checks, []*yaml.Node{until})
	if c.Until == "" {
		steps = slices.Concat(begin, []*yaml.Node{until})
	}
	add(loop, "sub_agents", steps)
	return loop
}

// workspace adds the fields of a workspace that do not depend on its steps.
func (c *Config) workspace(space map[string]any) map[string]any {
	space["from"], space["result"] = ".", map[string]any{"branch": c.Branch}
	if c.Copy != nil {
		space["copy"] = c.Copy
	}
	if c.Setup != "" {
		space["setup"] = SetupOf(c.Setup)
	}
	if c.Protect != nil {
		space["protect"] = c.Protect
	}
	return space
}

// options adds the fields that all coding agents have, and those of its program if the agent has the program of the config.
func (c *Config) options(agent *yaml.Node, same bool) {
	if c.Sandbox != "" {
		add(agent, "sandbox", c.box())
	}
	if same && c.Wrapper != nil {
		add(agent, "wrapper", c.Wrapper)
	}
	var args []string
	for _, dir := range c.Folders { // Claude Code and Codex have the same option
		args = append(args, "--add-dir", dir)
	}
	if same {
		args = append(args, c.Args...)
	}
	if len(args) > 0 {
		add(agent, "args", args)
	}
	if same && c.Inherit != nil {
		add(agent, "inherit", c.Inherit)
	}
	if c.Waits {
		add(agent, "on_limit", "reset")
	}
	if c.Idle > 0 {
		add(agent, "idle_timeout", c.Idle.String())
	}
}

// box returns the value of the field sandbox.
func (c *Config) box() any {
	if len(c.Folders) == 0 {
		return c.Sandbox
	}
	return map[string]any{"level": c.Sandbox, "write": c.Folders}
}

// allow adds the commands that an agent may run.
func (c *Config) allow(agent *yaml.Node) {
	if lines := slices.DeleteFunc(c.allowed(), func(line string) bool { return line == "" }); c.Permissions == "edit" && len(lines) > 0 {
		add(agent, "allow", lines)
	}
}

// SetupOf returns the command of a workspace for a command line of the shell.
func SetupOf(line string) []string { return []string{"sh", "-c", line} }

// planSteps returns the steps of an iteration that works on a task of a plan. What the steps of the plan decide is in the log.
func (c *Config) planSteps(begin, checks []*yaml.Node) []*yaml.Node {
	step := func(name string, verb ...string) *yaml.Node {
		return mapping("name", name, "command", append(slices.Clone(c.Plan.Step), verb...), "json", true)
	}
	task := step("task", "next", c.Plan.File, c.Plan.Copy)
	add(task, "env", map[string]any{"INPUT_TICKED": "{{ticked}}", "INPUT_UNTIL": "{{until}}",
		"INPUT_FILES": "{{" + runfiles.Key + ".tree}} {{" + runfiles.Key + ".edits}}"})
	add(task, "output_key", "task")
	tick := step("tick", "tick", c.Plan.File, c.Plan.Copy)
	add(tick, "stdin", "{{said}}")
	add(tick, "env", map[string]any{"INPUT_KEY": "{{task.key}}", "INPUT_TITLE": "{{task.title}}", "INPUT_PROGRESS": "{{task.progress}}",
		"INPUT_CODE": "{{checked.exit_code}}", "INPUT_TRIES": strconv.Itoa(c.Plan.Tries),
		"INPUT_ON_FAILURE": c.Plan.OnFailure})
	add(tick, "output_key", "ticked")
	commit := step("commit", "mark", c.Plan.File, c.Plan.Copy)
	add(commit, "description", "marks the task in the files of before, if it has failed")
	add(commit, "env", map[string]any{"INPUT_TICKED": "{{ticked}}"})
	add(commit, "restore", "ticked.restore")
	if !c.Squash {
		add(commit, "commit", "ticked.commit") // a step commits with the state from before it
	}
	end := step("end", "end")
	add(end, "env", map[string]any{"INPUT_TICKED": "{{ticked}}"})
	add(end, "output_key", "open")
	add(end, "exit_when", "state.ticked.over")
	add(end, "exit_reason", "all tasks of the plan are done")
	return slices.Concat([]*yaml.Node{task}, begin, checks, []*yaml.Node{tick, commit, end})
}

// goal is the beginning of the agent's prompt.
func (c *Config) goal() string {
	switch {
	case c.Plan == nil:
		return "{{prompt}}\n\n"
	case c.Prompt == "":
		return "{{task.prompt}}\n"
	}
	return "{{prompt}}\n\n{{task.prompt}}\n"
}

// allowed returns the commands that the agent may run.
func (c *Config) allowed() []string {
	all := append([]string{c.Until}, c.Allow...)
	if c.Plan != nil {
		all = append(all, c.Plan.Commands...)
	}
	return all
}

// rules tell the agent which commands it may run. The templates of the definition fill in the command of --until.
func (c *Config) rules() string {
	text := ""
	if c.Notes != "" {
		text = "Each of your turns begins anew. Write in " + braces.Replace(c.Notes) + " what the next one should know, such as what you have " +
			"tried and what failed; keep it short.\n"
		if !c.KeepsNotes {
			text += "The file is yours and no part of the work.\n"
		}
	}
	if c.Done != "" {
		text += "When all work is done, and not before, say this in a line of its own:\n{{done}}\n"
	}
	if c.Plan != nil {
		return c.mayRun(text)
	}
	if c.Until == "" {
		return text
	}
	return c.mayRun(text + "The work is done when this command succeeds, which runs after your turn:\n{{until}}\n")
}

// mayRun adds which commands the agent may run to a text about the command that decides.
func (c *Config) mayRun(text string) string {
	switch {
	case c.Permissions != "edit":
		return text
	case c.CLI == "codex" && c.Sandbox == "":
		return text + "You may run it yourself. Commands have no network, and write only in this folder.\n"
	}
	text += "You may run it yourself, with other arguments too"
	if len(c.Allow) > 0 {
		text += ", and also:\n" + braces.Replace(strings.Join(c.Allow, "\n")) + "\n"
	} else {
		text += ". "
	}
	return text + "Commands that only read are allowed. Other commands are refused: do not try them, and edit files with your own tools.\n"
}

// braces keep a text from being read as a template.
var braces = strings.NewReplacer("{{", "{ {")

// mapping returns a YAML mapping in the order of the pairs.
func mapping(pairs ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i < len(pairs); i += 2 {
		add(n, pairs[i].(string), pairs[i+1])
	}
	return n
}

func add(n *yaml.Node, key string, value any) {
	var k, v yaml.Node
	k.SetString(key)
	_ = v.Encode(value) // only text, numbers and lists of them, which can always be encoded
	n.Content = append(n.Content, &k, &v)
}
