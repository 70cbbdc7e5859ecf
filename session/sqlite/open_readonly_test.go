// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// 12k: a database that cannot be written can be read, and nothing is made beside it. One
// of an older version says what to do.
func TestOpenReadOnly(t *testing.T) {
	path := written(t, 3)
	svc := open(t, path, sqlite.Config{ReadOnly: true})
	s := get(t, svc, "s1")
	wantCount(t, s, 3)
	if err := svc.AppendEvent(t.Context(), s, &session.Event{Author: "a"}); err == nil {
		t.Error("it was written")
	}
	if beside, err := filepath.Glob(path + "-*"); err != nil || len(beside) > 0 {
		t.Errorf("there is %q beside it, %v", beside, err)
	}
	old, err := os.ReadFile("testdata/v1.db")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "old.db")
	write(t, path, old)
	if _, err := sqlite.Open(t.Context(), path, sqlite.Config{ReadOnly: true}); err == nil ||
		!strings.Contains(err.Error(), "open it once as a user with write permission") {
		t.Errorf("got error %v", err)
	}
	if now := read(t, path); string(now) != string(old) {
		t.Error("it was changed")
	}
}
