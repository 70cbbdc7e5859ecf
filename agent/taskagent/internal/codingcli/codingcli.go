// SPDX-License-Identifier: Apache-2.0

// Package codingcli drives the command lines of coding agents without a terminal: it knows how each program is
// started, and reads what it reports in fields. It never searches the words of a model or of a program.
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

// Permissions say what the program may do without asking a person.
type Permissions string

// The permissions: to look only, to edit files below its folder, and everything.
const (
	Read Permissions = "read"
	Edit Permissions = "edit"
	All  Permissions = "all"
)

// Request is what a program is started with. The prompt goes to its standard input.
type Request struct {
	Permissions Permissions
	Allow       *commandrule.Rules // commands that it may run besides; nil is none
	Model       string             // "" is the program's own choice
	MaxTurns    int                // 0 is no limit
	MaxCost     *float64           // in US dollars; nil is no limit
	Args        []string           // further arguments
	// Continue is the ID of a conversation to go on with; "" begins a new one. The program goes on with a copy, which has an
	// ID of its own: the conversation itself stays as it is, so that whoever goes back to it finds nothing of what was undone.
	Continue string
}

// Total is what a program counts for a whole conversation, with the conversations that it goes on with; zero is what it
// counts for each of its processes alone.
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
	Partial       Outcome = "partial"        // it came to a limit of its own; what it did stays
	Denied        Outcome = "denied"         // it was not allowed to do something
	Limited       Outcome = "limited"        // its provider takes no more requests for now
	NotConfigured Outcome = "not_configured" // it is not signed in, or there is no credit
	Failed        Outcome = "failed"
	NoResult      Outcome = "no_result" // it ended without saying how

	// What a NoResult is called if its process tells more.

	Idle    Outcome = "idle"    // it was ended because it printed nothing for too long
	Crashed Outcome = "crashed" // it ended by a signal or with an exit code other than 0
)

// Report is what a program reports of itself.
type Report struct {
	Outcome   Outcome
	Said      string        // its last words, or what it says of its failure
	Session   string        // ID of the conversation
	Model     string        // that it has asked
	Turns     int           // requests to the model; 0 is unknown
	Denied    []string      // names of the tools that it was not allowed to use
	Commands  []string      `json:",omitempty"` // the shell commands among their calls; the first of them
	Until     time.Time     `json:",omitzero"`  // when a provider that is limited takes requests again; zero is unknown
	Wait      time.Duration `json:",omitzero"`  // that such a provider has last asked for
	Files     []string      // that its edits name, as [Folder.Below] names them; nil if it does not report edits
	MoreFiles int           `json:",omitempty"` // edits of files for which Files has no room
	Usage     budget.Usage  // Estimated if it reports none; without Cost if it reports no cost
	Total     Total         `json:",omitzero"`  // the part of Usage that counts the whole conversation
	Lost      bool          `json:",omitempty"` // the conversation to go on with is not there, and nothing was asked

	// Of a program that speaks the Agent Client Protocol:

	Asked   string `json:",omitempty"` // the prompts in the conversation; empty if they are not known
	Renewed string `json:",omitempty"` // why it did not go on with a conversation, and began a new one
	Unable  bool   `json:",omitempty"` // it cannot go on with conversations, and nothing was asked
}

// Since takes away what the conversation had used before.
func (r *Report) Since(was Total) {
	now, u := r.Total, &r.Usage
	if now.Input < was.Input || now.Cached < was.Cached || now.Output < was.Output || now.Cost < was.Cost {
		return // it has counted from the beginning
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

// What is kept of the commands that were not allowed.
const (
	mostCommands   = 20
	longestCommand = 200 // bytes
)

// Waits begins what [Program.Doing] says of a provider that does not answer.
const Waits = mark.DoingWaits

// Program is a coding agent with a command line.
type Program struct {
	// Name is that of the binary.
	Name string
	// Variables are those of the environment that it may need for signing in or for finding its server, and which
	// other programs do not get.
	Variables []string
	// Install says how a person installs it, and SignIn how they sign in. Tested is the version that was tested.
	Install, SignIn, Tested string
	// SignedIn are arguments after which it says by its exit code whether somebody is signed in: 0 or 1.
	SignedIn []string
	// Keeps says how one that speaks the Agent Client Protocol goes on with its conversation, as tested.
	Keeps string
	// Costs reports whether it tells what it has cost, and Turns whether it takes a limit of turns.
	Costs, Turns bool
	// Start returns its arguments, after the name, and variables that keep it from doing what nobody watches.
	Start func(Request) (args, env []string)
	// Kind is the kind of a line of its standard output that counts for Read, of which only the last one does; "" if it does
	// not count.
	Kind func(line []byte) string
	// Doing says in a few words what a line tells of what the program does, such as "runs go test"; empty if nothing.
	Doing func(line []byte) string
	// Edits says what a line tells of edits.
	Edits func(line []byte) []Change
	// Record returns a line to add to those that count, with what the program's own files tell of it; nil is for a
	// program without such files. env is the program's environment.
	Record func(env []string, stdout []byte) []byte
	// Read reads the lines that count. code is the exit code.
	Read func(stdout []byte, code int) Report
}

// Programs are the programs by their names.
var Programs = map[string]*Program{"claude": claude, "codex": codex}

// Speakers are programs that speak the Agent Client Protocol, by their names; any other may too. Of them is known how they
// are installed, how a person signs in, and which version was tested, if they tell theirs.
var Speakers = map[string]*Program{
	"claude-agent-acp": {Install: "npm install -g @zed-industries/claude-agent-acp", Keeps: copies,
		SignIn: "run claude once and sign in, or set ANTHROPIC_API_KEY and name it with inherit"},
	"gemini": {Install: "npm install -g @google/gemini-cli", Tested: "0.61.0", Keeps: "begins a new conversation each time",
		SignIn: "run gemini once and sign in, or set GEMINI_API_KEY and name it with inherit"},
	"qwen": {Install: "npm install -g @qwen-code/qwen-code", Tested: "0.15.10",
		Keeps:  "goes on with its conversation itself, and begins a new one after a rollback or a failed attempt",
		SignIn: "run qwen once and sign in, or set OPENAI_API_KEY and name it with inherit"},
	"opencode": {Install: "npm install -g opencode-ai", Tested: "1.18.33", Keeps: copies, SignIn: "run opencode auth login"},
	"codex-acp": {Install: "npm install -g @agentclientprotocol/codex-acp", Tested: "2.6.0", Keeps: copies,
		SignIn: "run codex login, or set OPENAI_API_KEY and name it with inherit"},
}

const copies = "goes on with a copy of its conversation"

// Names lists the programs.
func Names() []string { return []string{"claude", "codex"} }

// each calls f with each line of the output that is a JSON object; other lines are passed over, as programs print
// warnings among them. f returns false to end.
func each(stdout []byte, f func(line []byte)) {
	for line := range bytes.Lines(stdout) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] == '{' && json.Valid(line) {
			f(line)
		}
	}
}

// longest is the longest line that is read, in bytes. What a tool has answered can be longer; no line that counts is.
const longest = 1 << 20

// Lines keeps the lines of a program that count, of each kind the last, and the names of the files that it edits. It drops
// the rest.
type Lines struct {
	Program string
	Dir     string       // the absolute path of the folder in which the program works
	Heard   func()       // called at each write; nil is allowed
	Doing   func(string) // called with what the program does, as it says; nil is allowed

	line   []byte // that has begun
	long   bool   // it is too long, and dropped
	kept   []keptLine
	edited *edited
}

type keptLine struct {
	kind string
	line []byte
}

// Write takes output of the program. It never fails.
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

// read takes a whole line.
func (l *Lines) read() {
	if kind := Programs[l.Program].Kind(l.line); kind != "" {
		l.kept = append(slices.DeleteFunc(l.kept, func(k keptLine) bool { return k.kind == kind }), keptLine{kind, bytes.Clone(l.line)})
	}
	if l.edited == nil {
		l.edited = &edited{folder: NewFolder(l.Dir), open: make(map[string]string)}
	}
	for _, e := range Programs[l.Program].Edits(l.line) {
		l.edited.take(e)
	}
	if l.Doing != nil {
		if words := Programs[l.Program].Doing(l.line); words != "" {
			l.Doing(words)
		}
	}
}

// Kept ends the last line, and returns the lines that count; if there are any, with one of the files.
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

// doing puts a verb before what something is done to; empty without that.
func doing(verb, what string) string {
	if what == "" {
		return ""
	}
	return verb + " " + what
}

// unknown is the usage of requests that nobody has counted.
func unknown(calls int) budget.Usage {
	return budget.Usage{Calls: int64(max(1, calls)), Estimated: true}
}

// noAccess are the statuses of a server for somebody who is not signed in or has no credit.
var noAccess = []int{401, 402, 403}

// isLimit reports whether a server that answers with a status takes no more requests for now.
func isLimit(status int) bool { return status == 429 || status == 529 }

// farthest bounds what a program says of times: nobody waits for longer.
const farthest = 366 * 24 * time.Hour

// milliseconds is a duration that a program reports; 0 if that makes no sense.
func milliseconds(ms float64) time.Duration {
	if !(ms > 0 && ms < float64(farthest.Milliseconds())) {
		return 0
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// epoch is a time that a program reports in seconds since 1970; zero if that makes no sense.
func epoch(seconds float64) time.Time {
	if !(seconds > 0 && seconds < 1<<40) {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0).UTC()
}

// distinct are the texts, each once, in the order of their first place.
func distinct(texts []string) (out []string) {
	for _, t := range texts {
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}
