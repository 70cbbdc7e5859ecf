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
