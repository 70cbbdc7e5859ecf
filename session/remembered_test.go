// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/sessiontest"
)

// drawn is an event with some of the fields that events can have: also with one that is added later.
func drawn(dice *rand.Rand, seq int64) *session.Event {
	zones := []*time.Location{time.UTC, time.Local, time.FixedZone("", 3600), time.FixedZone("X", 3600)}
	ev := &session.Event{Seq: seq, ID: fmt.Sprint(seq), Author: "critic", InvocationID: "e-1",
		Timestamp: time.Unix(dice.Int64N(4e9), dice.Int64N(1e9)).In(zones[dice.IntN(4)])}
	take := func(to, from reflect.Value) {
		for i := range to.NumField() {
			if dice.IntN(40) == 0 && to.Field(i).Kind() != reflect.Struct {
				to.Field(i).Set(from.Field(i))
			}
		}
	}
	full := sessiontest.FullEvent()
	full.Omitted, full.Partial = 700, true
	take(reflect.ValueOf(ev).Elem(), reflect.ValueOf(full).Elem())
	take(reflect.ValueOf(&ev.LLMResponse).Elem(), reflect.ValueOf(&full.LLMResponse).Elem())
	take(reflect.ValueOf(&ev.Actions).Elem(), reflect.ValueOf(&full.Actions).Elem())
	ev.Seq = seq
	if dice.IntN(3) == 0 {
		ev.Address = session.Address(fmt.Sprintf("story/refine[%d]/critic", seq))
		ev.Iteration, ev.Attempt = int(seq), dice.IntN(3)
	}
	if dice.IntN(3) == 0 {
		part := &genai.Part{Text: "words", Thought: dice.IntN(2) == 0}
		for _, p := range full.Content.Parts {
			take(reflect.ValueOf(part).Elem(), reflect.ValueOf(p).Elem())
		}
		ev.Content = &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{part, nil, part}[:dice.IntN(4)%3+dice.IntN(2)]}
	}
	if dice.IntN(3) == 0 {
		values := []any{nil, true, false, "", "text", 0.5, -1e300, int64(-1 << 60), uint64(1 << 63), []any{1.5}, map[string]any{"a": 1.5}}
		ev.Actions.StateDelta = make(map[string]any)
		for i := range 1 + dice.IntN(3) {
			ev.Actions.StateDelta[fmt.Sprint("key", i, dice.IntN(3))] = values[dice.IntN(len(values))]
		}
	}
	if dice.IntN(3) == 0 {
		ev.Mark = &mark.Mark{Kind: []mark.Kind{mark.KindStepStarted, mark.KindStepFinished}[dice.IntN(2)],
			Data: []json.RawMessage{nil, {}, json.RawMessage(`{"seconds":1.5}`)}[dice.IntN(3)], Batch: dice.IntN(9) == 0}
	}
	return ev
}

// alike reports whether two events have the same JSON, and lack the same of their texts.
func alike(t *testing.T, a, b *session.Event) bool {
	t.Helper()
	one, err := a.AppendJSON(nil)
	other, err2 := b.AppendJSON(nil)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	return string(one) == string(other) && a.Seq == b.Seq && a.Omitted == b.Omitted
}

// What a view remembers of its log is what its store has read, whatever the events have, for whoever
// looks at all events, at those with some kind of mark, or at one.
func TestRememberedEventsAreAsTheyWere(t *testing.T) {
	const n = 5000
	dice := rand.New(rand.NewPCG(1, 2))
	var all []*session.Event
	for seq := range int64(n) {
		all = append(all, drawn(dice, seq+1))
	}
	reads := 0
	load := func(first, last int64) ([]*session.Event, error) {
		reads++
		return all[first-1 : last], nil
	}
	v := session.NewView(session.ViewConfig{LastSeq: n, Older: n, Load: load, Outline: load})
	v.Log().CacheOutline()
	for range v.Log().Outline() {
	}
	reads = 0
	at, made := 0, 0
	for ev := range v.Log().Outline() {
		if !alike(t, ev, all[at]) {
			t.Fatalf("event %d is remembered as %+v, want %+v", at+1, ev, all[at])
		}
		if ev != all[at] {
			made++
		}
		at++
	}
	if at != n || reads != 0 {
		t.Errorf("%d events with %d reads, want %d and none", at, reads, n)
	}
	if made < n/4 {
		t.Errorf("%d events of %d are packed", made, n)
	}
	i := 0
	for ev := range v.Log().OutlineByKind(mark.KindStepFinished, mark.KindAsked) {
		for ; all[i].Mark == nil || all[i].Mark.Kind != mark.KindStepFinished; i++ {
		}
		if !alike(t, ev, all[i]) {
			t.Fatalf("event %d has the mark, got %+v", i+1, ev)
		}
		i++
	}
	for ; i < n; i++ {
		if all[i].Mark != nil && all[i].Mark.Kind == mark.KindStepFinished {
			t.Fatalf("event %d has the mark, and is missing", i+1)
		}
	}
	read := v.Log().Reader()
	v.Log().DropOutline()
	for seq := int64(1); seq <= n; seq++ {
		if ev := read(seq); !alike(t, ev, all[seq-1]) {
			t.Fatalf("event %d is read as %+v, want %+v", seq, ev, all[seq-1])
		}
	}
	if read(0) != nil || read(n+1) != nil {
		t.Error("there is an event that is not there")
	}
}

// A session of somebody else may lack events: each is read by its number all the same.
func TestReaderOfASessionWithGaps(t *testing.T) {
	var all []*session.Event
	for _, seq := range []int64{2, 3, 7, 8, 20} {
		all = append(all, &session.Event{Seq: seq})
	}
	read := session.NewView(session.ViewConfig{Events: all, LastSeq: 20}).Log().Reader()
	at := 0
	for seq := range int64(30) {
		var want *session.Event
		if at < len(all) && all[at].Seq == seq {
			want = all[at]
			at++
		}
		if got := read(seq); got != want {
			t.Errorf("event %d: got %v, want %v", seq, got, want)
		}
	}
}
