// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// An output that is also a state key is stored once, whatever is in it: an event of an
// output takes at most 1.15 times the output.
func TestOutputThatIsAStateKeyIsStoredOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "refrain.db")
	svc, err := sqlite.Open(t.Context(), path, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	made, err := svc.Create(t.Context(), &session.CreateRequest{AppName: app, UserID: ana, SessionID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	draw := rand.New(rand.NewPCG(1, 2))
	const n, size = 100, 50_000
	for range n {
		var b strings.Builder
		for b.Len() < size {
			b.WriteString([]string{`"said"`, "<b>", "word ", "line\n", "ä"}[draw.IntN(5)])
		}
		ev := &session.Event{Author: "writer"}
		ev.Content = genai.NewContentFromText(b.String()+"\n", genai.RoleModel)
		ev.Actions.StateDelta = map[string]any{"draft": strings.TrimRight(b.String(), "\n")}
		if err := svc.AppendEvent(t.Context(), made.Session, ev); err != nil {
			t.Fatal(err)
		}
	}
	if err := svc.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if each := float64(info.Size()) / n; each > 1.15*size {
		t.Errorf("an event with an output of %d bytes takes %.0f bytes, want at most %.0f", size, each, 1.15*size)
	}
}
