// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/session"
)

// The sandbox of the config limits the commands that have none.
func TestSandboxOfTheConfig(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	for file, text := range map[string]string{filepath.Join(home, "key"): "KEY",
		filepath.Join(dir, "peek.yaml"): "name: peek\ncommand: [sh, -c, 'cat ~/key || echo none']\noutput_key: out\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, level := range append(taskagent.SandboxLevels(), "") {
		cfg, want := Config{Service: session.InMemoryService(), AppName: "app", UserID: "ana", Dir: dir}, "KEY"
		if level != "" {
			if err := taskagent.SandboxCheck(level); err != nil {
				t.Logf("*** LEFT OUT: %s: %v", level, err)
				continue
			}
			cfg.Sandbox, want = &taskagent.Sandbox{Level: level}, "none"
		}
		r, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		req := &StartRequest{StartArgs: StartArgs{Definition: "peek"}}
		if _, err = r.Start(t.Context(), req, "", nil); err == nil {
			_, err = r.Supervisor.Wait(t.Context(), req.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		s, err := r.Session(t.Context(), req.ID)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := s.State().Get("out"); err != nil || out != want {
			t.Errorf("%s: it reads %q, %v", level, out, err)
		}
		if err := errors.Join(r.Close(context.Background()), r.Folder.Close()); err != nil {
			t.Error(err)
		}
	}
}
