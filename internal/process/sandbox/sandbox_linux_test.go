// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/refrain-dev/refrain/internal/process/sandbox"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

func Example() {
	tree, err := os.MkdirTemp("", "tree")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(tree)
	cmd := exec.Command("sh", "-c", "echo kept > here.txt; cat here.txt ~/.ssh/id_ed25519")
	cmd.Dir = tree
	if err := (sandbox.Rules{Write: []string{tree}, BestEffort: true}).Apply(cmd); err != nil {
		fmt.Println(err)
		return
	}
	out, _ := cmd.Output() // cat fails, because the program may not read the key
	fmt.Print(string(out))
	// Output: kept
}

// confined runs a script of the shell in a folder of its own under rules, and returns what it printed on both streams.
func confined(t *testing.T, r sandbox.Rules, script string, env ...string) (dir, out string, err error) {
	t.Helper()
	_, unsupported := sandbox.Check()
	if r.Bubblewrap {
		unsupported = sandbox.CheckBubblewrap()
	}
	if unsupported != nil {
		t.Skip("*** LEFT OUT: ", unsupported)
	}
	dir = t.TempDir()
	r.Write = append(r.Write, dir)
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if err := r.Apply(cmd); err != nil {
		t.Fatal(err)
	}
	text, err := cmd.CombinedOutput()
	return dir, string(text), err
}

// A hostile program: each line tries to get out, and each is refused. A line that succeeds prints ESCAPED.
func TestHostileProgram(t *testing.T) {
	for name, rules := range bothKinds {
		t.Run(name, func(t *testing.T) { attack(t, rules) })
	}
}

// bothKinds are the rules of the kernel and of bubblewrap.
var bothKinds = map[string]sandbox.Rules{"landlock": {NoNetwork: true}, "bubblewrap": {NoNetwork: true, Bubblewrap: true}}

func attack(t *testing.T, rules sandbox.Rules) {
	home, other := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{".ssh/id_ed25519": "KEY", ".aws/credentials": "KEY", "other/run/tree/file": "text", "repo/.git/config": "text", "beside": "KEY"} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	witness := exec.Command("sleep", "60") // a process outside of the sandbox
	witness.Env = append(os.Environ(), "WITNESS_SECRET=KEY")
	if err := witness.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = witness.Process.Kill()
		_ = witness.Wait()
	}()
	env := []string{"HOME=" + home, "OTHER=" + other, "PID=" + strconv.Itoa(witness.Process.Pid), "SELF=" + strconv.Itoa(os.Getpid())}
	for _, attempt := range []string{
		`cat "$HOME/.ssh/id_ed25519"`,
		`cat "$HOME/.aws/credentials"`,
		`ls "$HOME"`,
		`ls "$HOME/other"`,
		`echo x > "$HOME/.bashrc"`,
		`echo x > "$HOME/repo/.git/config"`,
		`echo x >> "$HOME/other/run/tree/file"`,
		`rm "$HOME/other/run/tree/file"`,
		`mkdir "$HOME/new"`,
		`mv "$HOME/other" .`,
		`ln "$HOME/.ssh/id_ed25519" key && cat key`,
		`ln -s "$HOME/.ssh" link && cat link/id_ed25519`,
		`ln -s "$HOME/repo" link2 && echo x > link2/.git/hooks`,
		`cp /proc/$PID/environ e && grep -q WITNESS e`,
		`cat /proc/$PID/root"$HOME"/.ssh/id_ed25519`,
		`cat /proc/$SELF/root"$HOME"/.ssh/id_ed25519`,
		`ls /proc/$SELF/cwd/`,
		`dd if=/proc/$PID/mem of=mem count=1 2>/dev/null`,
		`kill $PID`,
		`kill -9 $SELF`,
		`cat /etc/shadow`,
		`cat "$HOME/beside"`,
		`perl -e 'exit(syscall(101, 16, $ENV{PID} + 0, 0, 0) == 0 ? 0 : 1)'`, // PTRACE_ATTACH on amd64
		`perl -e 'exit(syscall(101, 16, $ENV{SELF} + 0, 0, 0) == 0 ? 0 : 1)'`,
		`echo x > /tmp/refrain-escaped`,
		`ls "$OTHER"`,
		`echo x > /etc/refrain-escaped`,
		`echo x > /usr/local/bin/refrain-escaped`,
		`mount -t tmpfs none "$HOME"`,
		`echo x > /proc/$SELF/oom_score_adj`,
		`echo x > /dev/shm/refrain-escaped`,
		`v=$(cat /proc/sys/kernel/core_pattern) && printf %s "$v" > /proc/sys/kernel/core_pattern`, // a program that root runs outside
	} {
		_, out, err := confined(t, rules, attempt+" && echo ESCAPED", env...)
		if rules.Bubblewrap && strings.Contains(attempt, "> /tmp/") || strings.Contains(attempt, "> /dev/shm/") {
			continue // the folders are its own
		}
		if err == nil || strings.Contains(out, "ESCAPED") || strings.Contains(out, "KEY") {
			t.Errorf("%s: %v\n%s", attempt, err, out)
		}
	}
	if _, err := os.Stat(filepath.Join(home, "other/run/tree/file")); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"/tmp/refrain-escaped", "/dev/shm/refrain-escaped", filepath.Join(home, ".bashrc"), filepath.Join(home, "new")} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s was made", path)
		}
	}
	if err := witness.Process.Signal(syscall.Signal(0)); err != nil {
		t.Error("the witness has ended")
	}
}

// What honest programs do works: temporary files, pipes, links, moves, children, devices, and exit codes.
func TestHonestProgram(t *testing.T) {
	for name, rules := range bothKinds {
		t.Run(name, func(t *testing.T) { work(t, rules) })
	}
}

func work(t *testing.T, rules sandbox.Rules) {
	private := t.TempDir()
	rules.Write, rules.NoNetwork = []string{private}, false
	dir, out, err := confined(t, rules, `set -e
mkdir -p a/b && echo 1 > a/x && mv a/x a/b/y && ln a/b/y hard && ln -s a/b/y soft && cat soft | tr 1 2
t=$(mktemp) && echo tmp > $t && rm $t
head -c 4 /dev/urandom > /dev/null
sleep 30 & kill $!
echo $0 "$1"; exit 7`, "TMPDIR="+private)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 || !strings.HasPrefix(out, "2\n") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "a/b/y")); err != nil {
		t.Error(err)
	}
}

// The tests of a project run in a workspace, without a network, with what is installed here.
func TestToolsInASandbox(t *testing.T) {
	if !longtest.On() {
		t.Skip("go test builds the standard library anew; in the long form")
	}
	for name, tool := range map[string]struct{ needs, script, says string }{
		"go test": {"go version", `printf 'module m\n' > go.mod
printf 'package m\nimport "testing"\nfunc TestOK(t *testing.T) { t.Log(t.TempDir()) }\n' > m_test.go
git init -q . && git add -A && git -c user.name=a -c user.email=a@b.c commit -q -m one
go test -vet=off .`, "ok"},
		"npm test": {"npm --version && node --version", `printf '{"name": "m", "scripts": {"test": "node --test"}}' > package.json
printf 'require("node:test")("works", () => require("node:fs").mkdtempSync(require("node:os").tmpdir() + "/x"))' > m.test.js
npm test`, "pass 1"},
		"pytest": {"pytest --version", `printf 'def test_works(tmp_path):\n    (tmp_path / "x").write_text("x")\n' > test_m.py
pytest -q`, "1 passed"},
	} {
		private := t.TempDir() // with the build cache of both
		for kind, rules := range bothKinds {
			t.Run(name+"/"+kind, func(t *testing.T) {
				if out, err := exec.Command("sh", "-c", tool.needs).CombinedOutput(); err != nil {
					t.Skipf("*** LEFT OUT, %s is missing: %v %s", name, err, out)
				}
				rules.Write = []string{private}
				_, out, err := confined(t, rules, "set -e\n"+tool.script, "TMPDIR="+private, "XDG_CACHE_HOME="+private, "npm_config_cache="+private+"/npm",
					"GOCACHE="+private+"/go", "GOFLAGS=-mod=mod")
				if err != nil || !strings.Contains(out, tool.says) {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}

// Without a network a program reaches no port, except those that are named.
func TestNetwork(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	try := fmt.Sprintf(`exec 3<>/dev/tcp/127.0.0.1/%d`, port)
	for _, r := range []struct {
		rules   sandbox.Rules
		reaches bool
	}{{sandbox.Rules{}, true}, {sandbox.Rules{NoNetwork: true}, false}, {sandbox.Rules{NoNetwork: true, Ports: []uint16{uint16(port)}}, true},
		{sandbox.Rules{Bubblewrap: true}, true}, {sandbox.Rules{Bubblewrap: true, NoNetwork: true}, false}} {
		if r.rules.Bubblewrap && sandbox.CheckBubblewrap() != nil {
			continue
		}
		_, out, err := confined(t, r.rules, "bash -c '"+try+"'")
		if (err == nil) != r.reaches {
			t.Errorf("%+v: %v\n%s", r.rules, err, out)
		}
	}
}

// A program that is not there fails as without rules; one that may not be read says what to do.
func TestMissingProgram(t *testing.T) {
	cmd := exec.CommandContext(context.Background(), "no-such-program-here")
	if err := (sandbox.Rules{}).Apply(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Run(); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	_, out, err := confined(t, sandbox.Rules{}, "./missing")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 127 {
		t.Errorf("%v\n%s", err, out)
	}
}

// A program in a home folder runs, and reads nothing beside it.
func TestProgramAtHome(t *testing.T) {
	if _, err := sandbox.Check(); err != nil {
		t.Skip(err)
	}
	home := t.TempDir()
	for name, text := range map[string]string{"tool": "#!/bin/sh\necho runs\ncat \"$HOME/beside\"\n", "beside": "KEY"} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(filepath.Join(home, "tool"))
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "HOME="+home)
	if err := (sandbox.Rules{}).Apply(cmd); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.HasPrefix(string(out), "runs\n") || strings.Contains(string(out), "KEY") {
		t.Errorf("%v\n%s", err, out)
	}
}
