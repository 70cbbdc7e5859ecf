// SPDX-License-Identifier: Apache-2.0

//go:build unix

package definition_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/runner"
)

// hostileScripts are things that an agent may do in its tree. Those that would reach the user's files by a path of
// the agent's own in a later iteration end with the removal of that path's repository.
var hostileScripts = []string{
	`git reset -q --hard; echo $N > x; git stash -q -u; git clean -qfdx; git commit -q --allow-empty -m x; git checkout -q --orphan y$N`,
	`git add -A; git commit -qm "$N"; git reset -q --hard HEAD~1; git reflog expire --expire=now --all; git gc -q --prune=now`,
	`rm -rf .git; git reset --hard; git stash; git clean -fdx; git commit -am x; git gc`,
	`mkdir -p .git/hooks; for h in pre-commit post-checkout post-index-change reference-transaction; do printf '#!/bin/sh\ntouch %s\n' "$PWNED" > .git/hooks/$h; chmod +x .git/hooks/$h; done; echo $N > n`,
	`printf '* filter=evil diff=evil merge=evil ident eol=crlf text working-tree-encoding=UTF-16\n' > .gitattributes; git config filter.evil.clean "touch $PWNED; cat"; git config filter.evil.required true; git config core.fsmonitor "touch $PWNED"; echo '$Id$' > id`,
	`git config core.autocrlf input; printf "a\r\nb$N\n" > mixed.txt; printf 'a\r\n' > win.txt`,
	`rm -f root up pass; ln -s / root; ln -s ../../../../.. up; ln -s /etc/passwd pass; ln -s nowhere$N dangling$N`,
	`chmod 755 a.go; chmod 600 win.txt; touch run.sh; chmod 111 run.sh; chmod 711 run.sh`,
	`mkdir -p many; for i in $(seq 1 100); do echo $N $i > many/$i; done`,
	`rm -rf inner$N; mkdir inner$N; cd inner$N; git init -q; echo x > x; git add x; git -c user.name=x -c user.email=x commit -qm x`,
	`mkdir inner$N; cd inner$N; git init -q; echo x > x`,
	`printf x > "$(printf 'new\nline')"; printf y > '-rf'; printf z > '*'; printf $N > 'ü "q"'; mkdir -p ':(top)'; printf v > ':(top)/f'; printf w > "$(printf 'tab\there')"`,
	`printf "version https://git-lfs.github.com/spec/v1\noid sha256:$N\nsize 1\n" > big.bin; echo '*.bin filter=lfs diff=lfs merge=lfs -text' > .gitattributes`,
	`rm -rf a.go; mkdir a.go; echo $N > a.go/x`,
	`rm -rf a.go sub; echo "package a // $N" > a.go; echo file > sub`,
	`rm -rf * .git*`,
	`rm -rf ..?* .[!.]* *; git init -q; git config core.worktree "$FROM"; git add -A; rm -rf .git; echo $N > y`,
	`rm -rf .git; ln -s "$FROM/.git" .git`,
	`rm -rf .git; echo "gitdir: $FROM/.git" > .git; echo $N > y`,
	`head -c 100000 /dev/urandom > random; : > empty; rm -rf random2; cp random random2`,
	`git update-index --assume-unchanged a.go; git update-index --skip-worktree run.sh; echo "// $N" >> a.go; echo $N >> run.sh`,
	`git sparse-checkout set sub; git config core.sparseCheckout true; echo $N > sparse`,
	`git config core.fileMode false; chmod +x a.go; git config core.ignoreCase true; echo 1 > Case; echo 2 > case`,
	`exit 1`,
}

// TestHostileAgent is the program that the definition of TestAHostileAgentInALoop runs: it does what was drawn,
// and then notes outside which files it has left.
func TestHostileAgent(t *testing.T) {
	script := os.Getenv("HOSTILE_SCRIPT")
	if script == "" {
		t.Skip("only as a child")
	}
	cmd := exec.Command("sh", "-c", script)
	_ = cmd.Run()
	_ = os.Remove(os.Getenv("PWNED")) // by the agent's own git
	noted, err := json.Marshal(filesBelow(t, "."))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(os.Getenv("NOTE"), noted, 0o600); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(script, "exit 1") {
		os.Exit(1)
	}
}

// filesBelow describes the files of a tree: executable or not and their content, or where a link leads.
func filesBelow(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if name == ".git" || name == ".refrain" {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			return nil
		}
		all[name], err = fileState(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func fileState(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(path)
		return "link " + target, err
	}
	text, err := os.ReadFile(path)
	return fmt.Sprintf("%v %x", info.Mode().Perm()&0o100 != 0, sha256.Sum256(text)), err
}

// everything describes the files of a repository with modes and times. Git sets the time of an object that somebody
// would have stored again, so that no cleaning deletes it.
func everything(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		all[path] = info.Mode().String()
		if !d.IsDir() {
			if !strings.HasPrefix(path, filepath.Join(dir, "objects")) {
				all[path] += info.ModTime().String()
			}
			var state string
			state, err = fileState(path)
			all[path] += state
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The tree of a loop whose agent does its worst: the user's repository stays as it is, the tree of each iteration is
// what the log says, and the best one is handed back with contents, modes and links. The short form has 10 iterations,
// the long one 100, of which one leaves 10,000 files.
func TestAHostileAgentInALoop(t *testing.T) {
	if err := workspace.CheckGit(t.Context()); err != nil {
		t.Skip(err)
	}
	n := longtest.N(10, 100)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 28))

	dir := t.TempDir()
	from, notes, pwned := filepath.Join(dir, "project"), filepath.Join(dir, "notes"), filepath.Join(dir, "pwned")
	for _, d := range []string{from, notes} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(dir, "none"))
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	prepare := exec.CommandContext(t.Context(), "sh", "-e", "-c", `git init -q -b main; printf 'package a\n' > a.go; printf '#!/bin/sh\n' > run.sh
mkdir -p sub/deep; printf 'a\r\n' > sub/deep/win.txt; chmod +x run.sh; ln -s a.go link; git add -A
git -c user.name=ana -c user.email=ana@example.com commit -qm first; echo dirty >> a.go; echo new > new.txt; echo staged > staged; git add staged`)
	prepare.Dir = from
	if out, err := prepare.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	gitBefore := everything(t, filepath.Join(from, ".git"))

	// What an iteration does, and its score. Each is a case of the agent's shell.
	var all, scores []string
	best, many := random.IntN(n)+1, random.IntN(n)+1
	for i := 1; i <= n; i++ {
		script, points := hostileScripts[random.IntN(len(hostileScripts))], random.IntN(100)
		switch {
		case i == best:
			script = `rm -rf a.go run.sh best; echo best > a.go; chmod +x a.go; ln -s ../elsewhere best; printf 'x\r\n' > run.sh`
			points = 1000
		case i == many && longtest.On():
			script = `mkdir -p heap; for i in $(seq 1 10000); do echo $N $i > heap/$i; done`
		}
		all, scores = append(all, script), append(scores, strconv.Itoa(points))
		if err := os.WriteFile(filepath.Join(notes, strconv.Itoa(i)+".sh"), []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := fmt.Sprintf(`N={{iteration}} PWNED=%s FROM=%s NOTE=%s/{{iteration}}.json; export N PWNED FROM NOTE; HOSTILE_SCRIPT=$(cat %s/{{iteration}}.sh) exec %s -test.run='^TestHostileAgent$'`,
		pwned, from, notes, notes, os.Args[0])
	text := fmt.Sprintf(`
name: hostile
max_iterations: %d
timeout: 1h
iteration_timeout: 5m
continue_on_error: true
workspace: {result: {apply: true}}
on_regression: rollback
score: points
sub_agents:
  - {name: agent, command: [sh, -c, %q], unsafe: true, retry: {attempts: 1}}
  - {name: judge, set: {points: "[%s][iteration - 1]"}}
`, n, run, strings.Join(scores, ", "))
	d, err := definition.Parse("hostile.yaml", []byte(text), definition.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var ends []func() error
	root, err := d.Build(t.Context(), definition.BuildConfig{Root: from, Cleanup: func(f func() error) { ends = append(ends, f) }})
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.NewInMemory("hostile", root)
	if err != nil {
		t.Fatal(err)
	}
	logged := make(map[int]workspace.Hash)
	for ev, err := range r.Run(t.Context(), "u", "s", nil, d.RunConfig(definition.Limits{})) {
		if err != nil {
			t.Fatal(err)
		}
		if space, ok := ev.Actions.StateDelta[runfiles.Key].(map[string]any); ok && ev.Author == "agent" {
			logged[ev.Iteration] = workspace.Hash(space["tree"].(string))
		}
		if _, err := os.Stat(pwned); err == nil {
			t.Fatalf("iteration %d, %s: code of the agent ran in the git of the store", ev.Iteration, all[max(0, ev.Iteration-1)])
		}
	}
	for _, end := range ends {
		if err := end(); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(gitBefore, everything(t, filepath.Join(from, ".git"))); diff != "" {
		t.Errorf("the user's .git (-before +after):\n%s", diff)
	}

	noted := func(i int) (files map[string]string) {
		text := readFile(t, filepath.Join(notes, strconv.Itoa(i)+".json"))
		if err := json.Unmarshal([]byte(text), &files); err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasPrefix(name, "inner") }) // repositories are left out
		return files
	}
	if diff := cmp.Diff(noted(best), filesBelow(t, from)); diff != "" {
		t.Errorf("iteration %d was the best (-left +handed back):\n%s", best, diff)
	}
	if len(logged) < n/4 {
		t.Errorf("the log has the trees of %d of %d iterations", len(logged), n)
	}
	tree, err := workspace.Open(t.Context(), workspace.Config{From: from, Store: runfiles.Store(from), Run: "s"})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	for i, h := range logged {
		if _, err := tree.Restore(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(noted(i), filesBelow(t, tree.Dir())); diff != "" {
			t.Errorf("iteration %d, %s (-left +as the log says):\n%s", i, all[i-1], diff)
		}
	}
	t.Logf("%d trees, best in iteration %d", len(logged), best)
}
