// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
)

// Acts are those of people, not of processes. A fork begins with whoever made it, and a log with many answers keeps the last ones.
func TestActs(t *testing.T) {
	var acts progress.Acts
	add := func(kind mark.Kind, data any) {
		t.Helper()
		m, err := mark.New(kind, data)
		if err != nil {
			t.Fatal(err)
		}
		acts.Add(&session.Event{Mark: m})
	}
	said := func() (all []string) {
		for _, a := range acts.All() {
			all = append(all, fmt.Sprintf("%s %s %s", a.By, a.Deed, a.Text))
		}
		return all
	}
	acts.Add(new(session.Event))
	add(mark.KindRunStarted, mark.RunStarted{By: "ana"})
	add(mark.KindHinted, mark.Hinted{Hints: []mark.Hint{{By: "bob", Text: "Be brief"}, {By: lease.Process(), Text: "from the command"}}})
	add(mark.KindRunPaused, mark.RunPaused{By: "bob", Reason: "lunch"})
	add(mark.KindRunTaken, mark.RunTaken{By: lease.Process()})
	add(mark.KindRunTaken, mark.RunTaken{By: "temporal w r a 3 by " + lease.Process()})
	add(mark.KindAnswered, mark.Answer{By: "local"})
	add(mark.KindAnswered, mark.Answer{By: "ana", Reason: "looks good"})
	add(mark.KindRunTaken, mark.RunTaken{By: "ana"})
	add(mark.KindRunEnded, mark.RunEnded{Status: mark.RunCanceled, By: "bob", Error: "wrong topic"})
	if diff := cmp.Diff([]string{"ana started ", "bob told Be brief", "bob paused lunch", "ana answered looks good", "ana continued ",
		"bob canceled wrong topic"}, said()); diff != "" {
		t.Error(diff)
	}
	add(mark.KindRunPaused, mark.RunPaused{By: "uli", Session: "r_2"})
	add(mark.KindRunEnded, mark.RunEnded{Status: mark.RunCompleted, By: "the server"})
	if diff := cmp.Diff([]string{"uli forked "}, said()); diff != "" {
		t.Error(diff)
	}
	for i := range 1000 {
		add(mark.KindAnswered, mark.Answer{By: "ana", Reason: fmt.Sprint(i)})
	}
	if all := said(); len(all) != 100 || all[0] != "uli forked " || all[99] != "ana answered 999" {
		t.Errorf("%d acts: %q … %q", len(all), all[0], all[len(all)-1])
	}
}
