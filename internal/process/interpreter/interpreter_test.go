// SPDX-License-Identifier: Apache-2.0

package interpreter_test

import (
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/process/interpreter"
)

// D4: neither an event nor a model's text becomes the program of an interpreter.
func TestReadsCode(t *testing.T) {
	for _, args := range [][]string{
		{"sh", "-c", "sh /proc/self/fd/0"}, {"bash", "-eu", "-o", "pipefail", "-c", "true; cat | sh"}, {"sh", "-c", "exec python3 -"},
		{"sh"}, {"/bin/bash", "-x"}, {"bash", "-s"}, {"bash", "-s", "x"}, {"bash", "-o", "pipefail"}, {"sh", "-"}, {"sh", "/dev/stdin"},
		{"bash", "--norc"}, {"bash", "--rcfile", "x"}, {"bash", "-es"}, {"env", "sh"}, {"env", "A=b", "sh"}, {"docker", "run", "-i", "alpine", "sh"},
		{"choom", "-n", "0", "--", "sh"}, {"busybox.static", "sh"}, {"bash-static"}, {"tini", "--", "dash"}, {"gosu", "nobody", "zsh"},
		{"/lib64/ld-linux-x86-64.so.2", "/bin/sh"}, {"python3"}, {"python3", "-"}, {"python3", "-u"}, {"python3", "-W", "ignore"}, {"python3.11"}, {"python3-dbg"},
		{"python3", "-m", "code"}, {"nice", "pypy3"}, {"perl5.36-x86_64-linux-gnu"}, {"perl", "-Mstrict"}, {"perl", "-I", "lib"}, {"node"}, {"node", "-r", "mod"},
		{"node", "--import", "tsx"}, {"docker", "run", "-i", "python", "sh"}, {"su", "-c", "sh"}, {"ruby3.2", "-w"}, {"php8.2"}, {"php", "-d", "a=b"}, {"lua5.4", "-"}, {"awk", "-f", "/dev/stdin"}, {"sh", "/proc/self/fd/0"}, {"sh", "-c", "/proc/self/fd/0"}, {"node", "/proc/1/task/1/fd/0"}, {"awk", "-v", "a=b", "-f", "-"},
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
		{"sh", "-c", "for s in bash sh; do echo $s; done"}, {"sh", "-c", "python3 score.py; sh <script.sh"}, {"sh", "-c", "python3 -c 'import sys; print(1)'"},
		{"sh", "-c", "cat /proc/meminfo; wc"}, {"sh", "-c", "cat </dev/stdin"}, {"bash", "-euc", "ls /proc/self/fd/ | wc"}, {"sh", "bin/proc/score.sh"},
		{"awk", "/proc/ {print}"}, {"sed", "s,/proc/self/fd/0,x,"}, {"node", "--eval=read('/dev/stdin')"}, {"python3", "-c", "print(open('/proc/self/fd/0').read())"},
		{"look", "at", "mail"}, {"tee", "python3-notes.txt"}, {"wc", "-w"}, {"busybox", "wc"},
	} {
		if err := interpreter.ReadsCode(args); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// D4: what interpreters, and options that run programs, read as code; X stands for a value.
func TestCode(t *testing.T) {
	for line := range strings.SplitSeq(strings.TrimSpace(`
sh X|sh -e X|sudo bash X y|python3 X|python3 -u X|node X|perl -w X f|php X|sh tools/X.sh
sh -c X|bash -euc X|bash -eu -o pipefail -c X|sudo sh -c X|sh -cX|bash -X script|docker exec box sh -c X|env A=b dash -c X|busybox sh -c X|fish -c X
python3 -c X|python3 -m X|perl -ne X f|perl -MX -e 1|perl -i -pe X|perl -e 1 -e X|node -e X|node --eval=X|node -p X|ruby -rX -e 1|php -r X|lua -e X|pwsh -Command X|cmd /cX
awk X f|awk -v a=1 X|gawk -e X|sed X|sed -n X f|sed -i -e X f|sed --expression=X f|jq X f|jq --arg a b X|yq X
sqlite3 db X|sqlite3 -cmd X db|psql -c X|psql --command=X|mysql -e X|vim -es -c X|vim +X|gdb -ex X|emacs --eval X|bc -e X
find . -exec X ;|find . -execdir sh -c X ;|fd -x X|rg --pre X a|go test -exec X|go build -toolexec=X|xargs X|xargs -n 1 X|xargs sh -c X|xargs -I a sh -c X
env X|env -S X|env GIT_PAGER=X git log|nice -n 1 X|timeout 3 sh -c X|nohup X|ssh h X|ssh h cat X|ssh -o X h|ssh -oProxyCommand=X h|watch X|watch ls X|parallel X
git -c X status|git -cX status|git rebase --exec X|git rebase -x X|git bisect run X|git submodule foreach X|git config a.b X|git X|git difftool -x X|git grep -OX a
tar --to-command=X -xf f|tar -I X -cf o f|tar --checkpoint-action=X -cf o f|split --filter=X f|rsync -e X a b|rsync --rsh=X a b|scp -S X a b|man -P X ls|flock f -c X|su -c X
script -qec X f|make --eval=X|make SHELL=X|wget --use-askpass=X u|less +X f|gcc -wrapper X f.c|nix-shell --command X|npx X
deno run -A X|go run X|go run -race X y|bun run X|deno eval X|deno eval -T X|osascript -e X|npx -c X|nix-shell --run X|nix-shell --run=X|hyperfine X|hyperfine ls X|entr -s X|chroot d X|gosu u X|unshare -r X|uvx X
`), "\n") {
		for one := range strings.SplitSeq(line, "|") {
			if args := strings.Fields(one); !codeAt(args) {
				t.Errorf("%q: X is not taken for code", args)
			}
		}
	}
	for line := range strings.SplitSeq(strings.TrimSpace(`
sh -c code X|sh -c code sh X|bash -euc code bash --a=X|sh script.sh X|python3 score.py X|python3 -c code X|python3 -c code --file=X|python3 -m pytest X|perl -ne code X
node score.js X|awk code X|awk -v a=X code|awk -f prog X|sed -n code X|sed -e code X|jq code X|jq --arg a X code|jq -f prog X|sqlite3 X|psql -d X|gcc -c X|grep -c X f|grep -e X f|grep X sed
make X|make -C X|make A=X|git -C X status|git add X|git switch -c X|git commit -m X|go test X|go test -run X|go vet X|npm install X|npm run X|pip install X|find X -name a|find . -name X
tar xf X|tar -xf o -C X|rsync X b|ssh X uptime|docker run X|docker run -e A=X i|curl X|cat X|echo -e X|env A=X true|nice -n X cat|timeout X cat|xargs -n X rm|gofmt -l X|pytest X
head -c X|cut -c X|split -l X f|cp X b|ls -l X|look at X|./tool --file=X|./tool --script=X|sort -k X|docker ps --filter=X|nix-shell X|split X|chroot X ls|npx tool X
`), "\n") {
		for one := range strings.SplitSeq(line, "|") {
			if args := strings.Fields(one); codeAt(args) {
				t.Errorf("%q: X is taken for code", args)
			}
		}
	}
}

// codeAt reports whether the argument with X in it is code.
func codeAt(args []string) bool {
	for i, code := range interpreter.Code(args) {
		if code && strings.Contains(args[i], "X") {
			return true
		}
	}
	return false
}
