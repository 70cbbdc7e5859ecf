// SPDX-License-Identifier: Apache-2.0

package interpreter_test

import (
	"testing"

	"github.com/refrain-dev/refrain/internal/interpreter"
)

// D4: neither an event nor a model's text becomes the program of an interpreter.
func TestReadsCode(t *testing.T) {
	for _, args := range [][]string{
		{"sh"}, {"/bin/bash", "-x"}, {"bash", "-s"}, {"bash", "-s", "x"}, {"bash", "-o", "pipefail"}, {"sh", "-"}, {"sh", "/dev/stdin"},
		{"bash", "--norc"}, {"bash", "--rcfile", "x"}, {"bash", "-es"}, {"env", "sh"}, {"env", "A=b", "sh"}, {"docker", "run", "-i", "alpine", "sh"},
		{"choom", "-n", "0", "--", "sh"}, {"busybox.static", "sh"}, {"bash-static"}, {"tini", "--", "dash"}, {"gosu", "nobody", "zsh"},
		{"/lib64/ld-linux-x86-64.so.2", "/bin/sh"}, {"python3"}, {"python3", "-"}, {"python3", "-u"}, {"python3", "-W", "ignore"}, {"python3.11"}, {"python3-dbg"},
		{"python3", "-m", "code"}, {"nice", "pypy3"}, {"perl5.36-x86_64-linux-gnu"}, {"perl", "-Mstrict"}, {"perl", "-I", "lib"}, {"node"}, {"node", "-r", "mod"},
		{"node", "--import", "tsx"}, {"docker", "run", "-i", "python", "sh"}, {"su", "-c", "sh"}, {"ruby3.2", "-w"}, {"php8.2"}, {"php", "-d", "a=b"}, {"lua5.4", "-"}, {"awk", "-f", "/dev/stdin"}, {"awk", "-v", "a=b", "-f", "-"},
		{"sed", "-f", "-"}, {"make", "-f", "-"}, {"sqlite3", "a.db"}, {"psql", "-q"}, {"vim.tiny", "-es"}, {"xargs", "rm"}, {"nice", "--", "bc"},
		{`C:\Windows\System32\cmd.exe`},
	} {
		if interpreter.ReadsCode(args) == nil {
			t.Errorf("%q is fine", args)
		}
	}
	for _, args := range [][]string{
		{"sh", "-c", "cat"}, {"sh", "-c", "cat", "sh"}, {"sudo", "bash", "-euc", "cat", "bash", "x"}, {"sh", "hook.sh"}, {"bash", "-euc", "cat"}, {"bash", "-eu", "-o", "pipefail", "-c", "cat"}, {"bash", "-x", "hook.sh", "-s"},
		{"env", "python3", "hook.py"}, {"python3", "-m", "hook"}, {"python3", "-u", "-c", "import sys"}, {"python3", "score.py", "-"}, {"perl", "-ne", "print"},
		{"node", "--enable-source-maps", "hook.js"}, {"node", "--eval", "1"}, {"php", "-r", "echo 1;"}, {"go", "run", "hook.go"}, {"./hook"}, {"grep", "x"},
		{"sed", "-n", "s/a/b/p"}, {"sed", "-e", "s/a/b/"}, {"awk", "-v", "a=b", "{print}"}, {"make", "-C", "x"}, {"make"}, {"jq", ".", "node-report.json"},
		{"look", "at", "mail"}, {"tee", "python3-notes.txt"}, {"wc", "-w"}, {"busybox", "wc"},
	} {
		if err := interpreter.ReadsCode(args); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}
