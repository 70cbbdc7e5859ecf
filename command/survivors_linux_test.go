// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const survivorLoop = `
name: w
max_iterations: 1
workspace: {result: {apply: true}}
sub_agents:
  - {name: works, %s}
`

// survivor is a program that hangs at its first time and leaves a process in a session of its own behind, which writes
// into the tree as long as it lives. Later it only waits.
const survivor = `#!/bin/sh
if test -e OUT/pid; then sleep 0.5; echo good >file; cat OUT/result; exit; fi
setsid sh -c 'echo $$ >OUT/next; mv OUT/next OUT/pid; while :; do echo bad >late; echo bad >file; sleep 0.002; done' >/dev/null 2>&1 &
sleep 60
`

// What a step that was cut off by kill -9 has left behind is ended before the step runs again: it does not write into
// the tree any more.
func TestSurvivorsOfKilledRuns(t *testing.T) {
	for _, name := range []string{"git", "setsid"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
	for step, program := range map[string]string{"cli: claude, prompt: x": "claude", "command: [worker]": "worker"} {
		t.Run(program, func(t *testing.T) {
			dir, out := t.TempDir(), t.TempDir()
			result := `{"type":"result","subtype":"success","is_error":false,"result":"done","stop_reason":"end_turn"}`
			for path, text := range map[string]string{
				filepath.Join(dir, "loop.yaml"): strings.Replace(survivorLoop, "%s", step, 1),
				filepath.Join(dir, "file"):      "old\n",
				filepath.Join(out, "result"):    result + "\n",
				filepath.Join(out, program):     strings.ReplaceAll(survivor, "OUT", out),
			} {
				if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			refrain := func(args ...string) (*exec.Cmd, *bytes.Buffer) {
				said := new(bytes.Buffer)
				cmd := exec.Command("refrain", append(args, "--progress", "plain", "--exit-zero-on-limit")...)
				cmd.Dir, cmd.Stdout, cmd.Stderr = dir, said, said
				cmd.Env = append(os.Environ(), "PATH="+out+":"+os.Getenv("PATH"), "REFRAIN_STORE=", "REFRAIN_PROGRESS=")
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				return cmd, said
			}
			cmd, said := refrain("run", "loop.yaml", "--session", "r")
			var pid int
			for until := time.Now().Add(time.Minute); pid == 0; time.Sleep(time.Millisecond) {
				text, _ := os.ReadFile(filepath.Join(out, "pid"))
				pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
				if time.Now().After(until) {
					_ = cmd.Process.Kill()
					t.Fatalf("the step has not begun: %s", said)
				}
			}
			t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
			time.Sleep(50 * time.Millisecond)
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if err := syscall.Kill(pid, 0); err != nil {
				t.Fatalf("nothing has survived: %v", err)
			}
			cmd, said = refrain("resume", "r")
			if err := cmd.Wait(); err != nil {
				t.Fatalf("resume: %v\n%s", err, said)
			}
			if env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ"); err == nil && len(env) > 0 {
				t.Errorf("process %d is still there", pid)
			}
			if text, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(text) != "good\n" {
				t.Errorf("the file is %q, %v\n%s", text, err, said)
			}
			if _, err := os.Stat(filepath.Join(dir, "late")); err == nil {
				t.Errorf("what it wrote late is in the result\n%s", said)
			}
		})
	}
}
