// SPDX-License-Identifier: Apache-2.0

package interpreter

import (
	"strings"

	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// Code reports, for each argument of a command line, whether a program that is known reads it as code, as the name of a
// program, script or module to run, or as an option or a setting of an interpreter. The program may be anywhere in the line,
// because other programs may start it. Like [ReadsCode], Code is a best effort.
func Code(args []string) []bool {
	code := make([]bool, len(args))
	for i, arg := range args {
		if name, f := familyOf(arg); i > 2 && commandOption().MatchString(args[i-2]) {
			continue // the name that sh -c CODE NAME gives to its code
		} else if f != nil && (!f.first || i == 0 || args[i-1] == "--") {
			f.code(args[i+1:], code[i+1:])
			if runners[name] {
				markProgram(name, args[i+1:], code[i+1:], i == 0)
			}
			if name == "deno" && i+1 < len(args) && args[i+1] == "eval" {
				markFrom(args[i+1:], code[i+1:], 2)
			}
			if f.sql {
				markFrom(args[i+1:], code[i+1:], 2)
			}
			if f.first {
				markProgram(name, args[i+1:], code[i+1:], i == 0)
			}
		} else if name == "jq" || name == "yq" {
			filters.code(args[i+1:], code[i+1:])
		} else if i == 0 || !strings.ContainsAny(arg, " \t\n") {
			markProgram(name, args[i+1:], code[i+1:], i == 0)
		}
		if m := codeWord().FindStringSubmatch(arg); m != nil {
			if m[1] != "" { // --exec=CODE
				code[i] = true
			} else if i+1 < len(args) {
				code[i+1] = true
			}
		}
	}
	return code
}

// codeWord matches options, of any program, whose value is code or names a program: --exec X, -execdir X, --rsh=X. It
// matches NAME=X too if the name is that of a variable of which [CodeVariable] says so.
var codeWord = lazyregexp.New(`(?is)^--?(?:exec|execdir|ok|okdir|eval|eval-command|ex|execute|cmd|command|init-command|pre|pager|shell|rsh|ssh-command|` +
	`to-command|use-compress-program|compress-program|checkpoint-action|rsh-command|use-askpass|toolexec|vettool|wrapper|` +
	`open-files-in-pager|upload-pack|receive-pack|config-env|run-command|plugin)(=.*)?$`)

// code marks the code among the arguments of an interpreter.
func (f *family) code(args []string, code []bool) {
	given := false // the code, or a file of it
	for i := 0; i < len(args); i++ {
		arg := args[i]
		letters, option := strings.CutPrefix(arg, "-")
		if !option {
			letters, option = strings.CutPrefix(arg, "+")
		}
		last := letters[max(0, len(letters)-1):]
		switch {
		case arg == "--":
		case !option && f.positional && !given:
			code[i], given = true, true
		case !option && f == shells && given:
			code[i] = true
			return
		case !option && f == consoles:
			code[i] = code[i] || strings.ContainsAny(arg, " \t\n'\"();|") // no plain name
		case !option && (f == commands || f == makes):
			variable, _, setting := strings.Cut(arg, "=")
			code[i] = code[i] || f == commands && strings.HasPrefix(strings.ToLower(arg), "/c") || setting && CodeVariable(variable)
		case !option: // the script, or what it is given
			code[i] = code[i] || !given && (f == shells || f == pythons || f == languages || f == php)
			return
		case f == shells && !strings.HasPrefix(letters, "-") && strings.Contains(letters, "c"):
			code[i], given = true, true
		case strings.HasPrefix(letters, "-"):
			if code[i] = code[i] || f != filters || strings.HasPrefix(letters, "-expression="); codeOption().MatchString(letters) {
				given = true
				if i++; i < len(args) && !strings.Contains(letters, "=") {
					code[i] = !strings.HasPrefix(letters, "-file") && !strings.HasPrefix(letters, "-source")
				} else {
					i--
				}
			} else if valueOption().MatchString(letters) {
				i++
			} else if f == filters && jqValues().MatchString(letters) {
				i += 2
			}
		case f != shells && f.codeLetters != "" && strings.ContainsAny(last, f.codeLetters):
			code[i] = true
			if i++; i < len(args) {
				code[i] = true
			}
			if given = true; f == pythons {
				return
			}
		case f != shells && last != "" && strings.Contains("f", last) && strings.Contains(f.script, "f"):
			given = true
			i++
		case strings.Contains(f.value, last) && last != "":
			code[i] = code[i] || len(letters) > 1
			i++
		default:
			code[i] = true
		}
	}
}

var jqValues = lazyregexp.New(`^-(arg|argjson|slurpfile|rawfile|argfile)$`)

// markFrom marks the arguments that are no options, from the nth on.
func markFrom(args []string, code []bool, nth int) {
	for i, arg := range args {
		if strings.HasPrefix(arg, "-") {
			continue
		}
		if nth--; nth <= 0 {
			code[i] = true
		}
	}
}

// wholly lists programs that give all their arguments, from the nth that is no option on, to a shell or run them.
var wholly = map[string]int{
	"eval": 1, "watch": 1, "parallel": 1, "tmux": 1, "screen": 1, "ssh": 2, "mosh": 2, "rsh": 2, "dbus-run-session": 1,
	"hyperfine": 1, "chroot": 2, "gosu": 2, "su-exec": 2,
}

// wrappers lists programs whose first argument that is no option, number or NAME=VALUE is a program to run.
var wrappers = words("env nice ionice nohup setsid stdbuf time sudo doas xargs setpriv busybox toybox tini dumb-init catatonit npx bunx entr " +
	"strace ltrace valgrind fakeroot systemd-run systemd-inhibit linux64 setarch command exec builtin unshare pkexec uvx")

// codeLetters has the options of one letter, by program, that are followed by code or by a program's name.
var codeLetters = map[string]string{
	"su": "c", "sg": "c", "runuser": "c", "script": "c", "flock": "c", "capsh": "c", "newgrp": "c", "env": "S", "fd": "xX", "rsync": "e",
	"scp": "So", "sftp": "So", "ssh": "oF", "tar": "IF", "bsdtar": "I", "man": "P", "wget": "e", "zip": "T", "split": "-filter", "nix-shell": "-run", "npx": "c", "entr": "s",
	"guile": "ce", "elvish": "c", "nu": "c", "xonsh": "c", "rc": "c", "es": "c", "make": "E", "less": "", "more": "", "curl": "K",
}

// runners lists programs whose command run takes the name of a script.
var runners = words("go deno bun")

func words(list string) map[string]bool {
	all := make(map[string]bool)
	for name := range strings.FieldsSeq(list) {
		all[name] = true
	}
	return all
}

// markProgram marks code among the arguments of a program that is no interpreter itself.
func markProgram(name string, args []string, code []bool, first bool) {
	switch letters, known := codeLetters[name]; {
	case name == "git":
		markGit(args, code)
	case known:
		markLetters(letters, args, code)
	}
	if nth, all := wholly[name]; all && first {
		markFrom(args, code, nth)
	}
	if runners[name] && len(args) > 0 && args[0] == "run" {
		for i, arg := range args[1:] {
			if !strings.HasPrefix(arg, "-") {
				code[i+1] = true
				break
			}
		}
	}
	if name == "env" {
		for i, arg := range args {
			variable, _, is := strings.Cut(arg, "=")
			code[i] = code[i] || is && CodeVariable(variable)
		}
	}
	if !wrappers[name] {
		return
	}
	values := "nIPLudacsk"
	if name == "sudo" || name == "doas" {
		values = "ugpCh"
	}
	for i, arg := range args {
		if strings.HasPrefix(arg, "-") || strings.Contains(arg, "=") || number().MatchString(arg) {
			continue
		}
		if i > 0 && len(args[i-1]) == 2 && args[i-1][0] == '-' && strings.Contains(values, args[i-1][1:]) {
			continue
		}
		code[i] = true
		return
	}
}

var number = lazyregexp.New(`^[0-9.]+[a-z]?$`)

// markLetters marks the values of one long option, such as -filter for --filter, or of options of one letter, beside them
// ("-cX") and after them ("-c", "X"), and what begins with "+", which less and more read as a command.
func markLetters(letters string, args []string, code []bool) {
	for i, arg := range args {
		short, option := strings.CutPrefix(arg, "-")
		switch {
		case strings.HasPrefix(arg, "+") && letters == "":
			code[i] = true
		case !option || letters == "" || short == "":
		case letters[0] == '-':
			if strings.HasPrefix(arg, "-"+letters+"=") {
				code[i] = true
			} else if arg == "-"+letters && i+1 < len(args) {
				code[i+1] = true
			}
		case strings.HasPrefix(short, "-"):
		case strings.ContainsAny(short[:1], letters):
			code[i] = true
			fallthrough
		case strings.ContainsAny(short[len(short)-1:], letters):
			if i+1 < len(args) && (len(short) == 1 || !strings.ContainsAny(short[:1], letters)) {
				code[i+1] = true
			}
		}
	}
}

// markGit marks settings, which may name programs, and the commands that some commands of git run.
func markGit(args []string, code []bool) {
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "-c" && i+1 < len(args):
			i++
			code[i] = true
		case strings.HasPrefix(arg, "-c"), strings.HasPrefix(arg, "--exec-path"):
			code[i] = true
		case arg == "-C" || arg == "--git-dir" || arg == "--work-tree" || arg == "--namespace":
			i++
		case strings.HasPrefix(arg, "-"):
		default:
			rest, marks := args[i+1:], code[i+1:]
			switch arg {
			case "config", "bisect", "submodule", "filter-branch", "fast-import":
				markFrom(rest, marks, 1)
			case "rebase", "difftool":
				markLetters("x", rest, marks)
			case "grep":
				markLetters("O", rest, marks)
			}
			code[i] = true // or an alias
			return
		}
	}
}

// CodeVariable reports whether programs are known to read an environment variable as code, as options, as the name of a
// program to run or as the place of code that they load.
func CodeVariable(name string) bool { return codeVariable().MatchString(name) }

var codeVariable = lazyregexp.New(`(?i)^(?:BASH_ENV|ENV|PS[0-9]|IFS|PATH|SHELLOPTS|BASHOPTS|LD_[A-Z_]+|DYLD_[A-Z_]+|GCONV_PATH|PERL5?(?:OPT|LIB|DB)|RUBY(?:OPT|LIB)|` +
	`PYTHON(?:PATH|HOME|STARTUP|INSPECT|BREAKPOINT)|NODE_(?:OPTIONS|PATH)|LUA_(?:INIT|C?PATH)[0-9_]*|LESS(?:OPEN|CLOSE)?|MAKEFLAGS|MAKEFILES|GOFLAGS|GOAUTH|` +
	`VIMINIT|EXINIT|GIT_(?:CONFIG.*|EXEC_PATH|DIR|TEMPLATE_DIR)|TERMCAP|WGETRC|CURL_HOME|RUSTC.*|CARGO_.*|CC|CXX|CPP|LD|AR|BROWSER|.*_?(?:COMMAND|CMD|EDITOR|PAGER|ASKPASS|RSH|SSH|SHELL|` +
	`VISUAL|PROXY_COMMAND|EXTERNAL_DIFF|WRAPPER|_OPTS|_OPTIONS|HOOK))$`)
