// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/command/internal/events"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/show"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/session"
)

// FuzzReadLog: a file of somebody else's is read or refused, and what is imported
// can be exported.
func FuzzReadLog(f *testing.F) {
	for _, name := range []string{"failed", "waiting"} {
		text, err := os.ReadFile("testdata/v1/" + name + ".jsonl")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add(`{"type":"run","schema":1,"id":"r_1","events":1,"state":{"temp:x":1}}` + "\n" + `{"invocationId":"i","seq":1,"author":"user","actions":{}}`)
	f.Fuzz(func(t *testing.T, text string) {
		log, err := runlog.ReadFile("-", strings.NewReader(text))
		if err != nil {
			return
		}
		defer log.Close()
		if log.Len() == 0 {
			return
		}
		run := &runlog.Run{ID: "r_1", File: log}
		if log.Head != nil {
			run.Initial = log.Head.State
		}
		if _, err := run.Sound(); err != nil {
			return
		}
		store := session.InMemoryService()
		if err := run.Save(t.Context(), store, runstore.KeyOf("r_1")); err != nil {
			return
		}
		back, err := runlog.Read(t.Context(), store, runstore.KeyOf("r_1"))
		if err != nil {
			t.Fatal(err)
		}
		if back.Len() != log.Len() {
			t.Errorf("%d events, want %d", back.Len(), log.Len())
		}
		n := 0
		for ev := range back.All() {
			n++
			if line := events.Line(ev); strings.ContainsAny(line, "\x1b\n\r") {
				t.Errorf("line %q", line)
			}
		}
		if err := back.Err(); err != nil || n != back.Len() {
			t.Errorf("read %d events of %d, %v", n, back.Len(), err)
		}
		if _, err := show.Of(t.Context(), &runstore.Run{Run: back}, runlog.ReportOptions{}); err != nil {
			t.Error(err)
		}
	})
}
