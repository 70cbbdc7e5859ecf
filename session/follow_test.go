// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/refrain-dev/refrain/session"
)

// encoded counts how often an event that holds it is encoded.
type encoded struct{ n *int }

func (c encoded) MarshalJSON() ([]byte, error) {
	*c.n++
	return []byte(`"counted"`), nil
}

// However many follow a view, each event is encoded once, and not at all if nobody wants it.
func TestFollowEncodesOnce(t *testing.T) {
	ctx := t.Context()
	services := map[string]func(v *session.View, s session.Service, ev *session.Event) error{
		"append": func(v *session.View, s session.Service, ev *session.Event) error { return s.AppendEvent(ctx, v, ev) },
		"apply": func(v *session.View, _ session.Service, ev *session.Event) error {
			ev.Seq = v.LastSeq() + 1
			v.Apply(ev)
			return nil
		},
	}
	for name, add := range services {
		t.Run(name, func(t *testing.T) {
			s := session.InMemoryService()
			made, err := s.Create(ctx, &session.CreateRequest{AppName: "a", UserID: "u"})
			if err != nil {
				t.Fatal(err)
			}
			v := session.ViewOf(made.Session)
			n := 0
			say := func(at session.Address) {
				t.Helper()
				ev := &session.Event{Author: "a", Address: at}
				ev.CustomMetadata = map[string]any{"n": encoded{&n}}
				if err := add(v, s, ev); err != nil {
					t.Fatal(err)
				}
			}
			say("story")
			heard := make(map[session.Address][]int64)
			var ends []func()
			for _, at := range []session.Address{"", "story", "story/refine", "other"} {
				log, _, end := v.Follow(at, func(ev *session.Event, data []byte, err error) {
					if want, _ := ev.AppendCanonical(nil); err != nil || string(want) != string(data) {
						t.Errorf("%s: event %d: %s, %v", at, ev.Seq, data, err)
					}
					n-- // the one above
					heard[at] = append(heard[at], ev.Seq)
				})
				if log.Len() != 1 {
					t.Errorf("%s: %d events before", at, log.Len())
				}
				ends = append(ends, end)
			}
			n = 0
			say("story/refine[2]/critic")
			say("story/refine2")
			say("story")
			say("")
			if n != 4 {
				t.Errorf("4 events were encoded %d times", n)
			}
			if got := fmt.Sprint(heard); got != "map[:[2 3 4 5] story:[2 3 4] story/refine:[2]]" {
				t.Errorf("heard %s", got)
			}
			for _, end := range slices.Backward(ends) {
				end()
				end()
			}
			n = 0
			say("story")
			if n != 0 || len(heard[""]) != 4 {
				t.Errorf("somebody still follows: encoded %d times, heard %v", n, heard)
			}
		})
	}
}

// A follower hears why an event has no JSON.
func TestFollowTellsOfAnEventWithoutJSON(t *testing.T) {
	v := session.NewView(session.ViewConfig{})
	var failed error
	v.Follow("", func(_ *session.Event, _ []byte, err error) { failed = err })
	ev := &session.Event{Seq: 1}
	ev.CustomMetadata = map[string]any{"f": func() {}}
	if v.Apply(ev); failed == nil {
		t.Error("no error")
	}
}
