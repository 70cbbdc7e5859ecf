// SPDX-License-Identifier: Apache-2.0

//go:build unix

package running

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// The event of a notice is how the run stands, also if it was handed over to another process.
func TestNoticeHasTheStatusOfTheRun(t *testing.T) {
	a := newTyping(t)
	s, err := runstore.MakeStock(t.Context(), a.env, "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, tt := range []struct {
		stands mark.RunStatus
		ended  error
		want   string // "" for no notice
	}{
		{mark.RunRunning, nil, ""},
		{mark.RunCompleted, nil, "completed"},
		{mark.RunWaiting, nil, "waiting"},
		{mark.RunIsPaused, nil, "waiting"},
		{mark.RunFailed, nil, "failed"},
		{mark.RunCanceled, nil, "failed"},
		{mark.RunIsPaused, &term.Exit{Code: term.ExitInterrupted}, "interrupted"},
		{mark.RunCompleted, &term.Exit{Code: term.ExitLimit}, "limit"},
		{mark.RunRunning, errors.New("the store is away"), "failed"},
	} {
		made, err := s.Service.Create(t.Context(), &session.CreateRequest{AppName: runstore.AppName, UserID: runstore.UserName})
		if err != nil {
			t.Fatal(err)
		}
		ev, err := session.NewRunEvent(mark.Run{ID: "e", Name: "loop", Status: tt.stands}, "user", mark.KindRunStarted, mark.RunStarted{})
		if err == nil {
			err = s.Service.AppendEvent(t.Context(), made.Session, ev)
		}
		if err != nil {
			t.Fatal(err)
		}
		f := &loopFlags{notifier: "cat >told"}
		f.run.session = made.Session.ID()
		stderr := new(bytes.Buffer)
		a.env.Stderr = stderr
		f.notify(t.Context(), a.env, tt.ended)
		var n notice
		text, _ := os.ReadFile("told")
		_ = os.Remove("told")
		_ = json.Unmarshal(text, &n)
		if n.Event != tt.want || (tt.want == "") != strings.Contains(stderr.String(), "goes on in another process") {
			t.Errorf("%s, %v: event %q, want %q: %s", tt.stands, tt.ended, n.Event, tt.want, stderr)
		}
	}
}
