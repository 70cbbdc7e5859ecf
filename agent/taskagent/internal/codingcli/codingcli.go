// SPDX-License-Identifier: Apache-2.0

// Package codingcli drives the command lines of coding agents without a terminal. It knows how to start each program, and
// reads the fields of its report. It never guesses from the text of a model. From the text of a program it guesses only that
// Codex is reconnecting, to show that to a person.
//
//	args, env := codingcli.Programs["claude"].Start(codingcli.Request{Permissions: codingcli.Edit})
//	…
//	report := codingcli.Programs["claude"].Read(stdout, exitCode)
//
// The facts were taken from Claude Code 2.1.197 and Codex 0.169.0.
package codingcli

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/agent/taskagent/internal/commandrule"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session/mark"
)

// Permissions decide what the program may do without asking a person.
type Permissions string

// The permissions are to read only, to edit files below the program's folder too, and to do everything.
const (
	Read Permissions = "read"
	Edit Permissions = "edit"
	All  Permissions = "all"
)

// Request describes how to start a program. The prompt is not in it, because the program reads it from its standard input.
type Request struct {
	Permissions Permissions
	Allow       *commandrule.Rules // further commands that it may run; nil allows none
	Model       string             // "" means the program's own choice
	MaxTurns    int                // 0 means no limit
	MaxCost     *float64           // in US dollars; nil means no limit
	Args        []string           // further arguments
	Confined    bool               // it runs in a sandbox of Refrain's, in which it can make none of its own
	// Continue is the ID of a conversation to continue; "" begins a new one. The program continues a copy, which has its own
	// ID. The conversation itself does not change, so that a run that goes back to it does not find later, undone work in it.
	Continue string
}

// Total has the numbers that a program counts for a whole conversation, including the earlier conversations that it
// continues. A field is zero if the program counts that number for each of its processes alone.
type Total struct {
	Input  int64   `json:"input_tokens,omitempty"`
	Cached int64   `json:"cached_tokens,omitempty"`
	Output int64   `json:"output_tokens,omitempty"`
	Cost   float64 `json:"cost,omitempty"`
}

// Outcome says how a program ended.
type Outcome string

// The outcomes.
const (
	OK            Outcome = "ok"
	Partial       Outcome = "partial"        // it reached its limit of turns or cost; its work is kept
	Denied        Outcome = "denied"         // it was not allowed to do something
	Limited       Outcome = "limited"        // its provider accepts no requests for now
	NotConfigured Outcome = "not_configured" // it is not signed in, or there is no credit
	Failed        Outcome = "failed"
	NoResult      Outcome = "no_result" // it ended without a report

	// These replace NoResult if the way in which the process ended is known.

	Idle    Outcome = "idle"    // it was ended because it printed nothing for too long
	Crashed Outcome = "crashed" // it ended by a signal or with an exit code other than 0
)

// Report is the report of a program about its work.
type Report struct {
	Outcome   Outcome
	Answer    string        // its last message, or its message about its failure
	Session   string        // ID of the conversation
	Model     string        // the model that it has asked
	Turns     int           // requests to the model; 0 means unknown
	Denied    []string      // names of the tools that it was not allowed to use
	Commands  []string      `json:",omitempty"` // the first 20 shell commands that it was not allowed to run
	Until     time.Time     `json:",omitzero"`  // when a limited provider accepts requests again; zero means unknown
	Wait      time.Duration `json:",omitzero"`  // the wait that such a provider has last asked for
	Files     []string      // the files that its edits name, as [Folder.Below] names them; nil if it does not report edits
	MoreFiles int           `json:",omitempty"` // edits of files for which Files has no room
	Usage     budget.Usage  // Estimated if it reports none; without Cost if it reports no cost
	Total     Total         `json:",omitzero"`  // the part of Usage that counts the whole conversation
	Lost      bool          `json:",omitempty"` // it does not have the conversation to continue, and got no prompt

	// Only for a program that speaks the Agent Client Protocol:

	Asked   string `json:",omitempty"` // a hash of the prompts in the conversation; empty if they are not known
	Renewed string `json:",omitempty"` // why it began a new conversation instead of continuing one
	Unable  bool   `json:",omitempty"` // it cannot continue conversations, and got no prompt
}

// Since subtracts from Usage the numbers of the conversation before this call, which was has.
func (r *Report) Since(was Total) {
	now, u := r.Total, &r.Usage
	if now.Input < was.Input || now.Cached < was.Cached || now.Output < was.Output || now.Cost < was.Cost {
		return // the program has counted from zero again
	}
	u.InputTokens, u.CachedTokens, u.OutputTokens = u.InputTokens-was.Input, u.CachedTokens-was.Cached, u.OutputTokens-was.Output
	if u.Cost != nil {
		u.Cost = new(*u.Cost - was.Cost)
	}
}

// Refused notes a shell command that the program was not allowed to run.
func (r *Report) Refused(command string) {
	command = brief.Line(command, longestCommand)
	if command != "" && len(r.Commands) < mostCommands && !slices.Contains(r.Commands, command) {
		r.Commands = append(r.Commands, command)
	}
}

// Bounds of the commands that [Report.Refused] keeps.
const (
	mostCommands   = 20
	longestCommand = 200 // bytes
)

// Waits is the beginning of the text with which [Program.Doing] reports that a provider does not answer.
const Waits = mark.DoingWaits

// Program is a coding agent with a command line.
type Program struct {
	// Name is the name of the executable file.
	Name string
	// Variables are the environment variables with which the program signs in or finds its server. Other
	// programs do not get them.
	Variables []string
	// Install says how a person installs it, and SignIn how they sign in. Tested is the version that was tested.
	Install, SignIn, Tested string
	// SignedIn are arguments with which the exit code reports whether a person is signed in: 0 for yes, 1 for no.
	SignedIn []string
	// Keeps says how a program that speaks the Agent Client Protocol continued its conversation in a test.
	Keeps string
	// Settings are the files and folders below the home folder in which the program keeps its settings, its keys and its conversations. A variable
	// of Variables can name another folder, which is in SettingsVariable.
	Settings         []string
	SettingsVariable string
	// Costs reports whether the program reports its cost, and Turns whether it has options that limit turns and cost.
	Costs, Turns bool
	// Start returns the arguments after the program's name, and variables that turn off telemetry and updates.
	Start func(Request) (args, env []string)
	// Kind returns the kind of a line of standard output. Read needs only the last line of each kind. Kind returns "" for a
	// line that Read does not need.
	Kind func(line []byte) string
	// Doing returns a short text about what the program does according to a line, such as "runs go test"; "" if the line
	// does not show it.
	Doing func(line []byte) string
	// Edits returns the edits that a line reports.
	Edits func(line []byte) []Change
	// Transcribe adds the messages and tool calls in a line to a transcript.
	Transcribe func(t *Transcript, line []byte)
	// Record returns a line for Read with facts from the program's own files, or nil if it finds none. Record is nil for a
	// program without such files. env is the program's environment, and stdout has the lines that Kind has chosen.
	Record func(env []string, stdout []byte) []byte
	// Read returns the report in the lines that Kind has chosen, and in those that [Lines] and Record add. code is the exit code.
	Read func(stdout []byte, code int) Report
}

// Programs maps the names of the known programs to their facts.
var Programs = map[string]*Program{"claude": claude, "codex": codex}

// Speakers maps the names of known programs that speak the Agent Client Protocol to how they are installed, how a person
// signs in, and which version was tested, if the program reports its version. Other programs may speak the protocol too.
var Speakers = map[string]*Program{
	"claude-agent-acp": {Settings: claudeSettings, SettingsVariable: "CLAUDE_CONFIG_DIR", Install: "npm install -g @zed-industries/claude-agent-acp", Keeps: copies,
		SignIn: "run claude once and sign in, or set ANTHROPIC_API_KEY and name it with inherit"},
	"gemini": {Settings: []string{".gemini"}, Install: "npm install -g @google/gemini-cli", Tested: "0.61.0", Keeps: "begins a new conversation each time",
		SignIn: "run gemini once and sign in, or set GEMINI_API_KEY and name it with inherit"},
	"qwen": {Settings: []string{".qwen"}, Install: "npm install -g @qwen-code/qwen-code", Tested: "0.15.10",
		Keeps:  "goes on with its conversation itself, and begins a new one after a rollback or a failed attempt",
		SignIn: "run qwen once and sign in, or set OPENAI_API_KEY and name it with inherit"},
	"opencode": {Settings: []string{".config/opencode", ".local/share/opencode", ".local/state/opencode", ".cache/opencode"},
		Install: "npm install -g opencode-ai", Tested: "1.18.33", Keeps: copies, SignIn: "run opencode auth login"},
	"codex-acp": {Settings: []string{".codex"}, SettingsVariable: "CODEX_HOME", Install: "npm install -g @agentclientprotocol/codex-acp", Tested: "2.6.0", Keeps: copies,
		SignIn: "run codex login, or set OPENAI_API_KEY and name it with inherit"},
}

const copies = "goes on with a copy of its conversation"

// Names lists the programs.
func Names() []string { return []string{"claude", "codex"} }

// each calls f with each line of the output that is a JSON object. It ignores other lines, because programs print warnings
// among them.
func each(stdout []byte, f func(line []byte)) {
	for line := range bytes.Lines(stdout) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] == '{' && json.Valid(line) {
			f(line)
		}
	}
}

// longest is the longest line that is read, in bytes. A line with the result of a tool can be longer, but no line that Read
// needs.
const longest = 1 << 20

// Lines is a writer for the output of a program. It keeps the lines that [Program.Read] needs, which are the last of each
// kind, and the names of the files that the program edits. It drops the rest.
type Lines struct {
	Program string
	Dir     string       // the absolute path of the folder in which the program works
	Heard   func()       // called at each write; nil is allowed
	Doing   func(string) // called with what the program reports that it does; nil is allowed
	Script  Transcript   // of all lines

	line   []byte // the line that is not complete yet
	long   bool   // line is too long, and is dropped
	kept   []keptLine
	edited *editList
}

type keptLine struct {
	kind string
	line []byte
}

// Write reads output of the program. It never returns an error.
func (l *Lines) Write(p []byte) (int, error) {
	if l.Heard != nil {
		l.Heard()
	}
	n := len(p)
	for len(p) > 0 {
		part, rest, ended := bytes.Cut(p, []byte("\n"))
		p = rest
		if l.long = l.long || len(l.line)+len(part) > longest; !l.long {
			l.line = append(l.line, part...)
		}
		if !ended {
			break
		}
		if !l.long {
			l.read()
		}
		l.line, l.long = l.line[:0], false
	}
	return n, nil
}

// read handles a complete line.
func (l *Lines) read() {
	if kind := Programs[l.Program].Kind(l.line); kind != "" {
		l.kept = append(slices.DeleteFunc(l.kept, func(k keptLine) bool { return k.kind == kind }), keptLine{kind, bytes.Clone(l.line)})
	}
	if l.edited == nil {
		l.edited = &editList{folder: NewFolder(l.Dir), open: make(map[string]string)}
	}
	for _, e := range Programs[l.Program].Edits(l.line) {
		l.edited.take(e)
	}
	Programs[l.Program].Transcribe(&l.Script, l.line)
	if l.Doing != nil {
		if words := Programs[l.Program].Doing(l.line); words != "" {
			l.Doing(words)
		}
	}
}

// Kept takes the last line as complete, and returns the kept lines. If there are any, it adds a line with the files that the
// program has edited.
func (l *Lines) Kept() (all []byte) {
	if len(l.line) > 0 && !l.long {
		l.read()
	}
	l.line = nil
	for _, k := range l.kept {
		all = append(append(all, k.line...), '\n')
	}
	if all != nil {
		all = append(all, l.edited.line()...)
	}
	return all
}

// doing returns a verb and its object as text, or "" if the object is empty.
func doing(verb, what string) string {
	if what == "" {
		return ""
	}
	return verb + " " + what
}

// unknown returns the estimated usage of a program that does not report its usage: the given number of calls, at least one.
func unknown(calls int) budget.Usage {
	return budget.Usage{Calls: int64(max(1, calls)), Estimated: true}
}

// noAccess lists the HTTP statuses for a person who is not signed in or has no credit.
var noAccess = []int{401, 402, 403}

// isLimit reports whether an HTTP status means that the server accepts no requests for now.
func isLimit(status int) bool { return status == 429 || status == 529 }

// farthest is the longest duration that is believed if a program reports it.
const farthest = 366 * 24 * time.Hour

// milliseconds returns the duration that a program reports in milliseconds; 0 if the number is not plausible.
func milliseconds(ms float64) time.Duration {
	if !(ms > 0 && ms < float64(farthest.Milliseconds())) {
		return 0
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// epoch returns the time that a program reports in seconds since 1970; zero if the number is not plausible.
func epoch(seconds float64) time.Time {
	if !(seconds > 0 && seconds < 1<<40) {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0).UTC()
}

// distinct returns the texts without repetitions, in the order in which they first occur.
func distinct(texts []string) (out []string) {
	for _, t := range texts {
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}
