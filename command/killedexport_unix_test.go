// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

// An export that is killed while it writes leaves no half file under its name: none, or the file that was there before. A whole one
// can be there only if the kill came late.
func TestKilledExportsLeaveNoHalfFile(t *testing.T) {
	longtest.WithoutRace(t)
	dir := t.TempDir()
	do := func(args ...string) {
		t.Helper()
		c := exec.Command("refrain", args...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	def := "name: long\nmax_iterations: 300\nstate: {n: 0, text: \"" + strings.Repeat("x", 4000) + "\"}\nsub_agents:\n" +
		"  - {name: raise, set: {n: int(state.n) + 1, kept: \"state.text + string(state.n)\"}}\n"
	if err := os.WriteFile(filepath.Join(dir, "long.yaml"), []byte(def), 0o600); err != nil {
		t.Fatal(err)
	}
	do("run", "long.yaml", "--progress", "quiet")
	out, cut := filepath.Join(dir, "out.jsonl"), map[string]int{}
	for i := 0; i < 40 && len(cut) < 2; i++ {
		before := []string{"", "what was there before\n"}[i%2]
		if err := errors.Join(os.RemoveAll(out), os.WriteFile(out, []byte(before), 0o600)); err != nil {
			t.Fatal(err)
		}
		if before == "" {
			os.Remove(out)
		}
		c := exec.Command("refrain", "export", "last", "-o", "out.jsonl", "--force")
		c.Dir = dir
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		for writes := false; !writes; { // its first bytes are on the disk
			select {
			case err := <-ended:
				ended <- err
				writes = true
			case <-time.After(time.Millisecond):
				parts, _ := filepath.Glob(out + ".*.part")
				for _, part := range parts {
					info, err := os.Stat(part)
					writes = writes || err == nil && info.Size() > 0
				}
			}
		}
		_ = c.Process.Kill()
		<-ended
		text, err := os.ReadFile(out)
		switch {
		case before == "" && errors.Is(err, fs.ErrNotExist), before != "" && string(text) == before:
			cut[before]++
		default: // it was faster
			do("verify", "out.jsonl")
		}
	}
	if len(cut) < 2 {
		t.Errorf("no export was killed while it wrote: %v", cut)
	}
}
