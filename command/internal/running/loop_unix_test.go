// SPDX-License-Identifier: Apache-2.0

//go:build unix

package running

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// coder puts a program claude into PATH that answers once and says that all is done.
func (a *typing) coder() {
	a.Helper()
	bin := a.TempDir()
	script := "#!/bin/sh\ncat >>asked\n" +
		`echo '{"type":"system","subtype":"init","session_id":"s1","model":"stand-in"}'
echo '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"ALL DONE","stop_reason":"end_turn","session_id":"s1"}'
`
	if err := os.WriteFile(filepath.Join(bin, "claude"), []byte(script), 0o700); err != nil {
		a.Fatal(err)
	}
	a.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

// loops runs refrain loop, and returns what it says.
func (a *typing) loops(args ...string) (said string, err error) {
	stderr := new(bytes.Buffer)
	e := *a.env
	e.Stderr = stderr
	cmd := NewLoop(&e)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(a.Context())
	return stderr.String(), err
}

func TestLoopWithoutACommand(t *testing.T) {
	a := newTyping(t)
	a.coder()
	for _, args := range [][]string{{"--max", "1"}, {"--done", "ALL DONE"}} {
		if said, err := a.loops(append(args, "hi", "--progress", "plain")...); err != nil {
			t.Errorf("%q: %v: %s", args, err, said)
		}
	}
}

// A log for people that cannot be written ends no run.
func TestLoopWithoutItsLog(t *testing.T) {
	a := newTyping(t)
	a.coder()
	a.put(".refrain/runs", "no folder")
	said, err := a.loops("hi", "--max", "1", "--progress", "plain")
	if err != nil || strings.Count(said, "The run goes on without its log: ") != 1 {
		t.Errorf("%v: %s", err, said)
	}
}

// The steps that are verbs of this program name no file, so that the definition runs on after the program has moved.
func TestStepsOfALoopFindTheProgram(t *testing.T) {
	a := newTyping(t)
	a.coder()
	a.put("moved", "#!/bin/sh\necho \"$1\" >>verbs\ncase $1 in count-tests) echo '{\"passed\":1,\"failed\":0,\"skipped\":0}' ;; read-prompt) cat ;; esac\n")
	a.put("PROMPT.md", "hi")
	if err := os.Chmod("moved", 0o700); err != nil {
		t.Fatal(err)
	}
	moved, err := filepath.Abs("moved")
	if err != nil {
		t.Fatal(err)
	}
	a.env.Code.Refrain = moved
	if said, err := a.loops("-p", "PROMPT.md", "--until", "test -e asked", "--max", "1", "--progress", "plain", "--write", "kept.yaml"); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if verbs, _ := os.ReadFile("verbs"); string(verbs) != "read-prompt\ncount-tests\n" {
		t.Errorf("verbs %q", verbs)
	}
	text, _ := os.ReadFile("kept.yaml")
	if self, err := os.Executable(); err != nil || strings.Contains(string(text), self) || strings.Contains(string(text), moved) ||
		strings.Count(string(text), "- refrain\n") != 2 {
		t.Errorf("the definition names a file of the program: %v\n%s", err, text)
	}
}
