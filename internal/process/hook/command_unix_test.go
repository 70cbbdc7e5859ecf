// SPDX-License-Identifier: Apache-2.0

//go:build unix

package hook_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/process/hook"
)

func sh(t *testing.T, script string, cfg hook.Config) *hook.Hook {
	t.Helper()
	h, err := hook.NewCommand(hook.CommandConfig{Config: cfg, Args: []string{"sh", "-c", script}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// E7: a command reads the event, and stops what is to be done by exit code 1.
func TestCommands(t *testing.T) {
	t.Setenv("HOOK_API_KEY", "sk-SECRETKEY")
	t.Setenv("REFRAIN_TOKEN", "sk-OURTOKEN1")
	file := filepath.Join(t.TempDir(), "told.json")
	if err := sh(t, "cat > "+file, hook.Config{}).Call(t.Context(), told); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	var got hook.Event
	if err == nil {
		err = json.Unmarshal(data, &got)
	}
	if err != nil || got.ID != told.ID || got.Data.Tool.Args["to"] != "ana" {
		t.Errorf("it read %s, %v", data, err)
	}
	for _, tt := range []struct {
		name, script string
		cfg          hook.Config
		veto, fails  string // "-": none
	}{
		{"a veto", "echo 'not today' >&2; exit 1", hook.Config{Veto: true}, "not today", "-"},
		{"a failure that is no veto", "echo broken >&2; exit 2", hook.Config{Veto: true}, "-", "exit status 2: broken"},
		{"a failure that is no matter", "exit 2", hook.Config{Veto: true, OnError: hook.Continue}, "-", "-"},
		{"no key of its environment", `echo "bad key $HOOK_API_KEY" >&2; exit 2`, hook.Config{Veto: true}, "-", "exit status 2: bad key [secret]"},
		{"nothing of Refrain's own", `echo "a token: $REFRAIN_TOKEN." >&2; exit 1`, hook.Config{Veto: true}, "a token: .", "-"},
		{"who only watches cannot veto", "exit 1", hook.Config{}, "-", "-"},
		{"and can fail", "exit 1", hook.Config{OnError: hook.Fail}, "-", "exit status 1"},
		{"it need not read", "exec 0<&-; exit 0", hook.Config{Veto: true}, "-", "-"},
		{"a veto that is none", `echo '{"veto": true}'`, hook.Config{Veto: true}, "-", "a command vetoes by exit code 1"},
		{"no veto, in words", `echo '{"veto": false}'; echo 'it is fine'`, hook.Config{Veto: true}, "-", "-"},
		{"who only watches says what it wants", `echo '{"veto": true}'`, hook.Config{OnError: hook.Fail}, "-", "-"},
		{"a lot of words", "i=0; while [ $i -lt 2000 ]; do echo yes >&2; i=$((i+1)); done; exit 1", hook.Config{Veto: true}, "yes", "-"},
		{"too slow", "sleep 30 & sleep 30", hook.Config{Veto: true, Timeout: 100 * time.Millisecond}, "-", "it did not answer in 100ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Failed = func(error) {}
			err := sh(t, tt.script, tt.cfg).Call(t.Context(), told)
			veto, stops := errors.AsType[*hook.VetoError](err)
			switch {
			case tt.veto != "-":
				if !stops || !strings.HasPrefix(veto.Reason, tt.veto) || len(veto.Reason) > 600 {
					t.Errorf("got error %v", err)
				}
			case tt.fails != "-":
				if err == nil || stops || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("got error %v", err)
				}
			case err != nil:
				t.Errorf("got error %v", err)
			}
		})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := sh(t, "head -c 100000000 /dev/zero >&2; exit 1", hook.Config{Veto: true}).Call(t.Context(), told); err == nil {
		t.Error("no veto")
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 20_000_000 {
		t.Errorf("it took %d bytes to hear a long reason", after.TotalAlloc-before.TotalAlloc)
	}
	if _, err := hook.NewCommand(hook.CommandConfig{}); err == nil {
		t.Error("no program is one")
	}
	h, err := hook.NewCommand(hook.CommandConfig{Args: []string{"/no/such/program"}, Config: hook.Config{Veto: true}})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Call(t.Context(), told); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got error %v", err)
	}
}

// What a command has started ends with it.
func TestNothingIsLeftOfACommand(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// The child has the pipe open, so that its end is the pipe's.
	if err := sh(t, "exec 3>"+fifo+"; echo begun >&3; sleep 100 >/dev/null 2>&1 &", hook.Config{Veto: true}).Call(t.Context(), told); err != nil {
		t.Fatal(err)
	}
	if err := f.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(f); err != nil || string(data) != "begun\n" {
		t.Errorf("read %q, %v: the child goes on", data, err)
	}
}
