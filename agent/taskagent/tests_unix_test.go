// SPDX-License-Identifier: Apache-2.0

//go:build unix

package taskagent_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/refrain-dev/refrain/agent/taskagent"
)

// The counts are the output, and a test that failed does not fail the step.
func TestTestsAreCounted(t *testing.T) {
	printed := `{"Action":"run","Package":"p","Test":"T"}
{"Action":"output","Package":"p","Test":"T","Output":"1 is not 2\n"}
{"Action":"fail","Package":"p","Test":"T"}
{"Action":"pass","Package":"p","Test":"U"}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"fail","Package":"p"}`
	got := command(t, taskagent.CommandConfig{Args: []string{"sh", "-c", "cat; exit 1"}, Stdin: printed, Tests: taskagent.TestsGo}, nil)
	if got.err != nil {
		t.Fatal(got.err)
	}
	said := "1 passed, 1 failed, 0 skipped\n1 is not 2"
	equal(t, "state", any(map[string]any{"passed": 1.0, "failed": 1.0, "skipped": 0.0, "total": 2.0, "score": 0.5, "said": said}), got.state["out"])
	equal(t, "words", []string{said}, got.words())

	got = command(t, taskagent.CommandConfig{Tests: taskagent.TestsCounts, Args: []string{"sh", "-c", `echo '{"passed": 0, "failed": 0}'`},
		Config: taskagent.Config{Name: "c", OutputKey: "out", ExitWhen: "result.json.total == 0"}}, nil)
	equal(t, "state", any(map[string]any{"passed": 0.0, "failed": 0.0, "skipped": 0.0, "total": 0.0}), got.state["out"])
	if !got.events[0].Actions.Escalate {
		t.Error("exit_when did not see the counts")
	}
}

// A step fails whose tests cannot be counted, and writes nothing that could be taken for counts.
func TestTestsThatCannotBeCounted(t *testing.T) {
	for _, tt := range []struct{ tests, script, want string }{
		{"go_json", "echo ok p 0.1s; echo no such flag >&2", "count the tests in the output of command \"sh\": it has no result of a package, as go test -json prints it; add -json to the command; it wrote to stderr: no such flag"},
		{"counts", `echo '{"passed": "all", "failed": 0}'`, `"passed" is all, and not a number of tests`},
		{"junit", "echo '<testsuite><testcase'", "cut off"},
		{"report.xml", "true", "count the tests in report.xml"},
		{"report.xml", "mkfifo report.xml", "report.xml is not a file"},
		{"report.xml", "ln -s /etc/passwd report.xml", "report.xml is not a file"},
		{"report.xml", "head -c 17000000 /dev/zero >report.xml", "report.xml is longer than the limit of 16777216 bytes"},
		{"go_json", "exit 2", "exit status 2"},
	} {
		got := command(t, taskagent.CommandConfig{Args: []string{"sh", "-c", tt.script}, Tests: tt.tests, Root: t.TempDir()}, nil)
		has(t, got.err, tt.want)
		if _, ok := got.state["out"]; ok {
			t.Errorf("%s: the state has %v", tt.script, got.state["out"])
		}
	}
}

// A report is read below the folder of the command, and one that was there before does not count.
func TestTestsInAReport(t *testing.T) {
	root := t.TempDir()
	report := filepath.Join(root, "in", "out", "report.xml")
	if err := os.MkdirAll(filepath.Dir(report), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(report, []byte("<testsuite><testcase/><testcase/></testsuite>"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := taskagent.CommandConfig{Tests: "out/report.xml", Root: root, Dir: "in", Args: []string{"sh", "-c", "true"}}
	has(t, command(t, cfg, nil).err, "no <testsuite>")
	cfg.Args[2] = "echo noise; echo '<testsuite><testcase name=\"t\"><failure>no</failure></testcase></testsuite>' > out/report.xml; exit 1"
	got := command(t, cfg, nil)
	if got.err != nil {
		t.Fatal(got.err)
	}
	equal(t, "words", []string{"0 passed, 1 failed, 0 skipped\nFAIL: t\nno"}, got.words())
}

func TestTestsAreCheckedAtConstruction(t *testing.T) {
	for tests, want := range map[string]string{"go": `"go" is not one of go_json, junit, counts`, "../x.xml": "not a path below the working directory"} {
		_, err := taskagent.NewCommand(taskagent.CommandConfig{Config: taskagent.Config{Name: "c"}, Args: []string{"x"}, Tests: tests})
		has(t, err, want)
	}
	_, err := taskagent.NewCommand(taskagent.CommandConfig{Config: taskagent.Config{Name: "c"}, Args: []string{"x"}, Tests: "junit", JSON: true})
	has(t, err, "JSON too")
}
