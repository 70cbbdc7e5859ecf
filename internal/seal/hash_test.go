// SPDX-License-Identifier: Apache-2.0

package seal_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/seal"
	"github.com/refrain-dev/refrain/session"
)

func digestOf(t *testing.T, evs ...*session.Event) string {
	t.Helper()
	d := seal.New()
	for _, ev := range evs {
		if err := d.Add(ev); err != nil {
			t.Fatal(err)
		}
	}
	return d.String()
}

func digested(text string) *session.Event {
	ev := &session.Event{ID: "1", Seq: 1, Author: "a", Timestamp: time.Unix(5, 123456789)}
	ev.Content = genai.NewContentFromText(text, genai.RoleModel)
	ev.Actions.StateDelta = map[string]any{"n": 3, "s": struct {
		B int `json:"b"`
		A int `json:"a"`
	}{1, 2}}
	return ev
}

// A store that writes JSON and reads it back does not change the digest.
func TestDigestSurvivesAStore(t *testing.T) {
	ev := digested("hello <world>")
	b, err := json.Marshal(ev)
	if err != nil {
		t.Fatal(err)
	}
	var back session.Event
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	back.Timestamp = back.Timestamp.Truncate(time.Microsecond).In(time.FixedZone("x", 3600))
	if got, want := digestOf(t, &back), digestOf(t, ev); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

// Keys that end with the invocation are in no store, and in no digest.
func TestDigestLeavesOutWhatNoStoreKeeps(t *testing.T) {
	ev, kept := digested("one"), digested("one")
	ev.Actions.StateDelta["temp:seen"] = true
	if got, want := digestOf(t, ev), digestOf(t, kept); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	if ev.Actions.StateDelta["temp:seen"] != true {
		t.Error("the event is not as it was")
	}
	ev, kept = digested("one"), digested("one") // with no others
	ev.Actions.StateDelta, kept.Actions.StateDelta = map[string]any{"temp:seen": true}, nil
	if got, want := digestOf(t, ev), digestOf(t, kept); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

func TestDigestNoticesChanges(t *testing.T) {
	one, two := digested("one"), digested("two")
	same := digestOf(t, one, two)
	other := digested("one")
	other.Actions.StateDelta["n"] = 4
	for name, got := range map[string]string{
		"order":   digestOf(t, two, one),
		"missing": digestOf(t, one),
		"changed": digestOf(t, other, two),
		"added":   digestOf(t, one, two, two),
	} {
		if got == same {
			t.Errorf("%s: the digest is the same", name)
		}
	}
}

func BenchmarkDigest(b *testing.B) {
	ev := &session.Event{Author: "writer"}
	ev.Actions.StateDelta = map[string]any{"draft": strings.Repeat("A line of the draft, and \"more\".\n", 3000), "count": 3}
	for b.Loop() {
		if err := seal.New().Add(ev); err != nil {
			b.Fatal(err)
		}
	}
}
