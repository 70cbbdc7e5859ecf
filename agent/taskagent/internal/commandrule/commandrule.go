// SPDX-License-Identifier: Apache-2.0

// Package commandrule decides which shell commands a coding agent may run. A rule is a command line, for example the command
// that checks the agent's work:
//
//	rules := commandrule.New("go vet ./... && go test ./...")
//	rules.Prefixes()                            // go vet, go test
//	rules.Allow("cd sub && go test -v 2>&1 | tail", inside) // true
//	rules.Allow("go test; curl example.com", inside)        // false
//
// A rule guides a program that means well. It is no sandbox, because go test runs the code that the agent has written.
package commandrule

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Rules are the commands that an agent may run.
type Rules struct {
	prefixes [][]string // the first words of a command
	exact    []string   // whole command lines
	assigned []string   // the assignments NAME=value before commands
}

// New returns the rules for command lines. Each simple command of a line may be run with any arguments after its first words.
// A line that has a substitution or a here-document, or that cannot be parsed, may be run only exactly as it is written.
func New(lines ...string) *Rules {
	r := new(Rules)
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		r.exact = add(r.exact, line)
		file, err := parse(line)
		if err != nil || dynamic(file) {
			continue
		}
		for _, call := range calls(file) {
			for _, a := range call.Assigns {
				if value, ok := literal(a.Value); ok && a.Name != nil {
					r.assigned = add(r.assigned, a.Name.Value+"="+value)
				}
			}
			words := unwrap(texts(call.Args))
			if prefix := prefixOf(words); prefix != nil {
				if !slices.ContainsFunc(r.prefixes, func(p []string) bool { return slices.Equal(p, prefix) }) {
					r.prefixes = append(r.prefixes, prefix)
				}
			} else if len(words) == len(call.Args) {
				r.exact = add(r.exact, strings.Join(words, " "))
			}
		}
	}
	return r
}

// Prefixes returns the first words of commands that may be followed by any arguments.
func (r *Rules) Prefixes() (all []string) {
	for _, p := range r.prefixes {
		if line := strings.Join(p, " "); plain(line) {
			all = append(all, line)
		}
	}
	return all
}

// Exact returns command lines that may be run exactly as they are written.
func (r *Rules) Exact() (all []string) {
	for _, line := range r.exact {
		if !strings.ContainsAny(line, "\r\n") {
			all = append(all, line)
		}
	}
	return all
}

// Programs returns the names of the programs that the rules name, without their folders.
func (r *Rules) Programs() (all []string) {
	for _, p := range r.prefixes {
		all = add(all, path.Base(p[0]))
	}
	for _, line := range r.exact {
		if name, _, _ := strings.Cut(line, " "); plain(name) {
			all = add(all, path.Base(name))
		}
	}
	return all
}

// Looking returns the first words of commands that only read or print, which every agent may run.
func Looking() []string {
	return []string{"cat", "echo", "grep", "head", "ls", "pwd", "tail", "true", "wc", "git status", "git diff", "git log", "git show"}
}

// Allow reports whether an agent may run a command line. inside reports whether a path is in the agent's folder.
func (r *Rules) Allow(line string, inside func(path string) bool) bool {
	return r.allow(line, inside, 3)
}

// allow is Allow for a line that may contain a shell which runs a line, up to depth levels deep.
func (r *Rules) allow(line string, inside func(string) bool, depth int) bool {
	line = strings.TrimSpace(line)
	if slices.Contains(r.exact, line) {
		return true
	}
	file, err := parse(line)
	if err != nil || depth == 0 || dynamic(file) || len(file.Stmts) == 0 {
		return false
	}
	ok := true
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Redirect:
			ok = ok && safe(n, inside)
		case *syntax.CallExpr:
			ok = ok && r.call(n, inside, depth)
		case *syntax.FuncDecl, *syntax.DeclClause, *syntax.LetClause, *syntax.CoprocClause, *syntax.ArithmCmd:
			ok = false // these can change what the words of a later command mean
		}
		return ok
	})
	return ok
}

// call reports whether one simple command may be run.
func (r *Rules) call(c *syntax.CallExpr, inside func(string) bool, depth int) bool {
	for _, a := range c.Assigns {
		value, ok := literal(a.Value)
		if a.Name == nil || !ok || !slices.Contains(harmless, a.Name.Value) && !slices.Contains(r.assigned, a.Name.Value+"="+value) {
			return false
		}
	}
	words := unwrap(texts(c.Args))
	switch {
	case len(words) == 0:
		return false
	case words[0] == "cd":
		return len(c.Args) == 2 && len(words) == 2 && inside(words[1])
	case len(c.Args) == 3 && len(words) == 3 && slices.Contains([]string{"sh", "bash"}, path.Base(words[0])) && (words[1] == "-c" || words[1] == "-lc"):
		return r.allow(words[2], inside, depth-1)
	}
	for _, p := range r.prefixes {
		if len(words) >= len(p) && slices.Equal(words[:len(p)], p) {
			return true
		}
	}
	if len(words) == len(texts(c.Args)) && slices.Contains(r.exact, strings.Join(words, " ")) {
		return true
	}
	for _, line := range Looking() {
		p := strings.Fields(line)
		if len(words) >= len(p) && slices.Equal(words[:len(p)], p) {
			return p[0] != "git" || !slices.ContainsFunc(words, func(w string) bool {
				return strings.HasPrefix(w, "--output") || w == "--ext-diff" || w == "--textconv"
			})
		}
	}
	return false
}

// harmless lists variables whose values cannot make a program run other code.
var harmless = []string{"CGO_ENABLED", "CI", "FORCE_COLOR", "GOMAXPROCS", "LANG", "LC_ALL", "NO_COLOR", "RUST_BACKTRACE", "TZ"}

// safe reports whether a redirection only reads, copies a descriptor, or writes to /dev/null or to a file in the folder.
func safe(r *syntax.Redirect, inside func(string) bool) bool {
	switch r.Op {
	case syntax.RdrIn, syntax.DplIn, syntax.WordHdoc:
		return true
	}
	to, ok := literal(r.Word)
	if !ok {
		return false
	}
	if r.Op == syntax.DplOut {
		return to == "1" || to == "2" || to == "-"
	}
	return to == "/dev/null" || inside(to)
}

func parse(line string) (*syntax.File, error) {
	return syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
}

// dynamic reports whether a line has a command or process substitution, or a here-document.
func dynamic(file *syntax.File) (is bool) {
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			is = true
		case *syntax.Redirect:
			is = is || n.Op == syntax.Hdoc || n.Op == syntax.DashHdoc
		}
		return !is
	})
	return is
}

// calls returns the simple commands of a line.
func calls(file *syntax.File) (all []*syntax.CallExpr) {
	syntax.Walk(file, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 {
			all = append(all, c)
		}
		return true
	})
	return all
}

// texts returns the words of a command up to the first one whose text the shell computes, such as a variable or "~".
func texts(args []*syntax.Word) (all []string) {
	for _, w := range args {
		text, ok := literal(w)
		if !ok {
			break
		}
		all = append(all, text)
	}
	return all
}

// literal returns the text of a word without its quotes. It returns false if the shell computes the text. A nil word is empty.
func literal(w *syntax.Word) (string, bool) {
	if w == nil {
		return "", true
	}
	var b strings.Builder
	for i, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if i == 0 && strings.HasPrefix(p.Value, "~") {
				return "", false
			}
			unquote(&b, p.Value, false)
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok || p.Dollar {
					return "", false
				}
				unquote(&b, lit.Value, true)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// unquote writes a text without the backslashes that quote a character. In double quotes (double) a backslash quotes only some
// characters.
func unquote(b *strings.Builder, text string, double bool) {
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && (!double || strings.IndexByte("\"\\$`\n", text[i+1]) >= 0) {
			if i++; text[i] == '\n' {
				continue
			}
		}
		b.WriteByte(text[i])
	}
}

// unwrap returns the words without a leading "timeout TIME", because that command runs the words after it.
func unwrap(words []string) []string {
	if len(words) > 2 && words[0] == "timeout" && words[1] != "" && words[1][0] >= '0' && words[1][0] <= '9' {
		return words[2:]
	}
	return words
}

// Programs by the number of first words that a rule for them needs. A rule of the program's name alone would allow too much
// for most of them, because their arguments decide what they run.
var (
	// Runners run any other program, the text of an argument, or change files. They may be run only as they are written.
	runners = []string{".", "bash", "bun", "bunx", "command", "curl", "dash", "deno", "docker", "doas", "env", "eval", "exec", "find", "fish",
		"kubectl", "ksh", "nice", "nohup", "npx", "parallel", "podman", "rm", "sh", "source", "ssh", "stdbuf", "su", "sudo", "tee", "time",
		"timeout", "watch", "wget", "xargs", "zsh", "awk", "sed", "dd", "cp", "mv", "ln", "chmod", "chown"}
	// Interpreters run a file or a text, or with -m a module.
	interpreters = []string{"node", "perl", "php", "python", "python2", "python3", "ruby", "lua", "pypy", "pypy3"}
	// Checkers have no subcommands. All words after their names are arguments.
	checkers = []string{"[", "test", "grep", "diff", "cmp", "pytest", "py.test", "jest", "vitest", "mocha", "eslint", "tsc", "mypy", "pylint", "flake8",
		"phpunit", "rspec", "ctest", "gofmt", "shellcheck", "wc", "ls", "cat", "echo", "head", "tail", "true", "false", "pwd"}
	// Subcommanded programs need a subcommand, which decides what they do.
	subcommanded = []string{"bundle", "cargo", "composer", "dotnet", "git", "go", "gradle", "gradlew", "just", "make", "mix", "mvn", "mvnw", "npm",
		"pip", "pip3", "pipenv", "pnpm", "poetry", "rake", "task", "uv", "yarn", "bazel", "gmake", "ninja", "rustup", "sbt", "swift", "zig"}
)

// prefixOf returns the first words of a command, after which other arguments are allowed. It returns nil if the command may be run
// only as it is written.
func prefixOf(words []string) []string {
	if len(words) == 0 || words[0] == "" || words[0] == "cd" {
		return nil
	}
	name := strings.TrimSuffix(path.Base(words[0]), ".exe")
	switch {
	case slices.Contains(runners, name):
		return nil
	case slices.Contains(interpreters, name) || strings.HasPrefix(name, "python3."):
		if len(words) > 2 && words[1] == "-m" {
			return words[:3]
		}
		return nil
	case slices.Contains(checkers, name):
		return words[:1]
	}
	n := 1
	for n < len(words) && words[n] != "" && words[n][0] != '-' && !strings.ContainsAny(words[n], "./\\*?=:@[") {
		n++
	}
	if n == 1 && slices.Contains(subcommanded, name) {
		return nil
	}
	return words[:n]
}

// plain reports whether a text is not empty and has no character with a special meaning in the command lists of coding agents.
func plain(text string) bool {
	return text != "" && !strings.ContainsAny(text, "\r\n()*?\"'\\$`{}[],;&|<>")
}

func add(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}
