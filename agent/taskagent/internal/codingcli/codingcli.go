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
	"io"
	"slices"

	"github.com/refrain-dev/refrain/budget"
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
	Model       string   // "" is the program's own choice
	MaxTurns    int      // 0 is no limit
	MaxCost     *float64 // in US dollars; nil is no limit
	Args        []string // further arguments
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
)

// Report is what a program reports of itself.
type Report struct {
	Outcome Outcome
	Said    string       // its last words, or what it says of its failure
	Session string       // ID of the conversation
	Model   string       // that it has asked
	Turns   int          // requests to the model; 0 is unknown
	Denied  []string     // names of the tools that it was not allowed to use
	Files   []string     // files that its edits name; nil if it reports none
	Usage   budget.Usage // Estimated if it reports none; without Cost if it reports no cost
}

// Program is a coding agent with a command line.
type Program struct {
	// Name is that of the binary.
	Name string
	// Variables are those of the environment that it may need for signing in or for finding its server, and which
	// other programs do not get.
	Variables []string
	// Install says how a person installs it, and SignIn how they sign in. Tested is the version that was tested.
	Install, SignIn, Tested string
	// Costs reports whether it tells what it has cost, and Turns whether it takes a limit of turns.
	Costs, Turns bool
	// Start returns its arguments, after the name, and variables that keep it from doing what nobody watches.
	Start func(Request) (args, env []string)
	// Counts reports whether a line of its standard output counts for Read.
	Counts func(line []byte) bool
	// Doing says in a few words what a line tells of what the program does, such as "runs go test"; empty if nothing.
	Doing func(line []byte) string
	// Read reads the lines that count. code is the exit code.
	Read func(stdout []byte, code int) Report
}

// Programs are the programs by their names.
var Programs = map[string]*Program{"claude": claude, "codex": codex}

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

// Lines writes the lines that count for a program to another writer, and drops the rest.
type Lines struct {
	Program string
	To      io.Writer
	Heard   func()       // called at each write; nil is allowed
	Doing   func(string) // called with what the program does, as it says; nil is allowed

	line []byte // that has begun
	long bool   // it is too long, and dropped
}

// Write takes output of the program.
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
		line := l.line
		keep := !l.long && Programs[l.Program].Counts(line)
		if l.Doing != nil && !l.long {
			if words := Programs[l.Program].Doing(line); words != "" {
				l.Doing(words)
			}
		}
		l.line, l.long = l.line[:0], false
		if keep {
			if _, err := l.To.Write(append(line, '\n')); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

// Close writes a last line that has no end.
func (l *Lines) Close() error {
	if len(l.line) == 0 {
		return nil
	}
	_, err := l.Write([]byte("\n"))
	return err
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

// distinct are the texts, each once, in the order of their first place.
func distinct(texts []string) (out []string) {
	for _, t := range texts {
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}
