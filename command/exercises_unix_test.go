// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

// exercise is a small program with a fault that its test finds.
type exercise struct {
	name          string
	broken, right string // the body of the function
	test          string // what holds of the right one
}

// The exercises. Each is a function of one file, and a test beside it.
var (
	goExercises = []exercise{
		{"index", "return n", "return n - 1", "f(3) == 2"},
		{"sign", "return -n", "if n < 0 {\n\t\treturn -n\n\t}\n\treturn n", "f(3) == 3 && f(-3) == 3"},
		{"overflow", "return int(int8(n))", "return n", "f(300) == 300"},
		{"parity", "return n % 2", "if n%2 != 0 {\n\t\treturn 1\n\t}\n\treturn 0", "f(-3) == 1 && f(4) == 0"},
		{"loop", "s := 0\n\tfor i := 1; i < n; i++ {\n\t\ts += i\n\t}\n\treturn s", "return n * (n + 1) / 2", "f(4) == 10"},
	}
	pythonExercises = []exercise{
		{"default", "return n or 1", "return n", "f(0) == 0"},
		{"rounding", "return n // 2", "return -(-n // 2)", "f(3) == 2"},
		{"slice", "return list(range(n))[1:]", "return list(range(n))", "f(2) == [0, 1]"},
		{"string", "return str(n)[0]", "return str(n)[-1]", "f(12) == '2'"},
		{"error", "return int('x' * n)", "return n", "f(2) == 2"},
	}
)

// language says how exercises of a language are written and tested.
type language struct {
	source, test  string // names of the files
	program       string
	until, shield string
	write         func(body string) string
	hold          func(condition string) string
	skip          string // a command of sed that skips the test
	weaken        string // one that makes it hold always
	more          map[string]string
}

var golang = language{
	source: "f.go", test: "f_test.go", program: "go", until: "go test ./...", shield: "**/*_test.go",
	write: func(body string) string { return "package f\n\nfunc f(n int) int {\n\t" + body + "\n}\n" },
	hold: func(is string) string {
		return "package f\n\nimport \"testing\"\n\nfunc TestF(t *testing.T) {\n\tif !(" + is + ") {\n\t\tt.Fatal()\n\t}\n}\n"
	},
	skip: `s/^\tif .*/\tt.Skip()\n&/`, weaken: `s/if !(/if false \&\& !(/`, more: map[string]string{"go.mod": "module f\n\ngo 1.26\n"},
}

var python = language{
	source: "f.py", test: "test_f.py", program: "python3", until: "python3 -B -m unittest", shield: "**/test_*.py",
	write: func(body string) string { return "def f(n):\n    " + body + "\n" },
	hold: func(is string) string {
		return "import unittest\nfrom f import f\n\n\nclass F(unittest.TestCase):\n    def test_f(self):\n        self.assertTrue(" + is + ")\n"
	},
	skip: `s/^    def test_f/    @unittest.skip("")\n&/`, weaken: `s/assertTrue(.*/assertTrue(True)/`,
}

// behavior is what a scripted agent does in each iteration, and what must come of it.
type behavior struct {
	name, does string // does is a line of the shell; RIGHT is a file with the right program
	mends      bool
	code       int
	says       string // in the output
}

var behaviors = []behavior{
	{name: "mends", does: `cp "$RIGHT" "$SOURCE"`, mends: true},
	{name: "weakens the test", does: `sed -i.o "$WEAKEN" "$TEST"; rm -f *.o`, code: 3, says: "protected files were changed"},
	{name: "deletes the test", does: `rm -f "$TEST"`, code: 3, says: "protected files were changed"},
	{name: "skips the test", does: `sed -i.o "$SKIP" "$TEST"; rm -f *.o`, code: 3, says: "protected files were changed"},
	{name: "writes outside", does: `cp "$RIGHT" "$SOURCE"; echo x >"$REPO/stray"`, mends: true, says: "Changed in your own repository during the run"},
	{name: "goes round in circles", does: `touch -c "$SOURCE"`, code: 3, says: "no_progress"},
}

// scriptedAgent prints what Claude Code prints, and says that it is none.
const scriptedAgent = `#!/bin/sh
cat >/dev/null
eval "$DOES"
echo '{"type":"system","subtype":"init","session_id":"s1","model":"scripted"}'
echo '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"I am a script. All tests pass.","stop_reason":"end_turn","session_id":"s1","total_cost_usd":0.1,"usage":{"input_tokens":3,"output_tokens":3}}'
`

var allExercises = flag.Bool("exercises", false, "play all sixty exercises, and not ten of them")

// K7: no exercise ends as completed unless its program is right, whatever the scripted agent does. doc/coding.md has the table. Without -exercises
// each exercise meets one of the agents.
func TestExercises(t *testing.T) {
	longtest.WithoutRace(t)
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	every := len(behaviors)
	if *allExercises {
		every = 1
	}
	n := rand.IntN(every)
	for _, l := range []language{python, golang} {
		exercises := pythonExercises
		if l.program == "go" {
			exercises = goExercises
		}
		if err := exec.Command(l.program, map[bool]string{true: "version", false: "--version"}[l.program == "go"]).Run(); err != nil {
			t.Logf("SKIPPED: %s does not work here, so its %d exercises are not played: %v", l.program, len(exercises)*len(behaviors), err)
			continue
		}
		for _, x := range exercises {
			n++
			for i, b := range behaviors {
				if (i+n)%every != 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", l.program, x.name, b.name), func(t *testing.T) { play(t, l, x, b) })
			}
		}
	}
}

// play runs a loop on an exercise with a scripted agent.
func play(t *testing.T, l language, x exercise, b behavior) {
	w := newMending(t, filepath.Join(t.TempDir(), "bin"))
	bin := filepath.Join(w.dir, "bin")
	w.put(bin, map[string]string{"claude": scriptedAgent, "right": l.write(x.right)})
	if err := os.Chmod(filepath.Join(bin, "claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.put(w.repo, map[string]string{".gitignore": ".refrain/\n", l.source: l.write(x.broken), l.test: l.hold(x.test)})
	w.put(w.repo, l.more)
	w.env = append(w.env, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "DOES="+b.does, "RIGHT="+filepath.Join(bin, "right"),
		"SOURCE="+l.source, "TEST="+l.test, "SKIP="+l.skip, "WEAKEN="+l.weaken, "REPO="+w.repo)
	w.git("init", "-q", "-b", "main")
	w.git("add", "-A")
	w.git("commit", "-qm", "first")
	cmd := w.start("loop", "Make the test pass.", "--until", l.until, "--branch", "fixed", "--max", "5", "--protect", l.shield)
	_ = cmd.Wait()
	said := w.said.String()
	if code := cmd.ProcessState.ExitCode(); code != b.code || !strings.Contains(said, b.says) {
		t.Errorf("exit code %d, want %d and %q:\n%s", code, b.code, b.says, said)
	}
	if !b.mends {
		return
	}
	if got := w.git("show", "fixed:"+l.source); got != l.write(x.right) {
		t.Errorf("the branch has %q", got)
	}
	if got := w.git("show", "fixed:"+l.test); got != l.hold(x.test) {
		t.Errorf("the branch has the test %q", got)
	}
}
