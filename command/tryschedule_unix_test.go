// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// The second try of a schedule within a second has the ID of the first.
func TestTryTwiceInASecond(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.yaml": "name: a\ntext: hi\n", "schedules.yaml": "schedules: [{name: s, definition: a, every: 1h}]\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db := filepath.Join(t.TempDir(), "runs.db")
	store, err := sqlite.Open(t.Context(), db, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for now, i := time.Now().UTC(), 0; i < 180; i++ { // the command takes less
		_, err := store.Create(t.Context(), &session.CreateRequest{AppName: runstore.AppName, UserID: runstore.UserName,
			SessionID: "s@" + now.Add(time.Duration(i)*time.Second).Format("20060102T150405Z")})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	cmd, said := programIn(t, dir, "schedules", "try", "s", "--store", "sqlite:"+db)
	if err := cmd.Run(); err == nil || !strings.Contains(said.String(), `schedule "s": a run of this second exists; try again`) {
		t.Errorf("%v\n%s", err, said)
	}
}
