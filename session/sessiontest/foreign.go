// SPDX-License-Identifier: Apache-2.0

package sessiontest

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/store"
)

// foreign is a session as somebody else might write it, of ana's.
type foreign struct {
	id     string
	state  foreignState
	events foreignEvents
}

func (f *foreign) ID() string                { return f.id }
func (f *foreign) AppName() string           { return app }
func (f *foreign) UserID() string            { return ana }
func (f *foreign) State() session.State      { return f.state }
func (f *foreign) Events() session.Events    { return f.events }
func (f *foreign) LastUpdateTime() time.Time { return time.Time{} }

type foreignState map[string]any

func (s foreignState) All() iter.Seq2[string, any] { return maps.All(s) }

func (s foreignState) Get(key string) (any, error) {
	if v, ok := s[key]; ok {
		return v, nil
	}
	return nil, session.ErrStateKeyNotExist
}

func (s foreignState) Set(key string, value any) error {
	s[key] = value
	return nil
}

type foreignEvents []*session.Event

func (e foreignEvents) All() iter.Seq[*session.Event] { return slices.Values(e) }
func (e foreignEvents) Len() int                      { return len(e) }
func (e foreignEvents) At(i int) *session.Event       { return e[i] }

func (s *suite) foreignSession() {
	s.make("s1", nil)
	mine := &foreign{id: "s1"}
	one := says("one")
	one.Actions.StateDelta = map[string]any{"k": 1}
	s.must(s.svc.AppendEvent(s.Context(), mine, one), "AppendEvent takes any implementation of Session, by its names")
	if one.Seq != 1 {
		s.Errorf("an event appended through a foreign session gets its Seq, want 1, got %d", one.Seq)
	}
	s.wantTexts(s.get("s1"), []string{"one"}, "an event appended through a foreign session is stored")
	s.wantState(s.get("s1"), map[string]any{"k": 1}, "an event appended through a foreign session changes the state")

	s.wantErr(s.svc.AppendEvent(s.Context(), mine, says("late")), session.ErrConflict,
		"a foreign session whose last event is not the newest is stale")
	mine.events = append(mine.events, one)
	if two := s.append(mine, says("two")); two.Seq != 2 {
		s.Errorf("the last event of a foreign session says what comes next, want Seq 2, got %d", two.Seq)
	}
}

// eventless is a session that shows neither events nor state.
type eventless struct{ foreign }

func (*eventless) State() session.State   { return nil }
func (*eventless) Events() session.Events { return nil }

func (s *suite) eventlessSession() {
	stranger := &eventless{foreign{id: "s1"}}
	s.wantErr(s.svc.AppendEvent(s.Context(), stranger, says("lost")), session.ErrNotFound,
		"a session whose Events is nil and that is not in the store")
	s.make("s1", nil)
	if one := s.append(stranger, says("one")); one.Seq != 1 {
		s.Errorf("a session whose Events is nil has seen no event, want Seq 1, got %d", one.Seq)
	}
	s.wantErr(s.svc.AppendEvent(s.Context(), stranger, says("late")), session.ErrConflict,
		"a session whose Events is nil is stale once there is an event")
	two := says("two")
	if two.Seq = 2; s.append(stranger, two).Seq != 2 {
		s.Errorf("a preset Seq counts where Events is nil, want 2, got %d", two.Seq)
	}
	if bulk, ok := s.svc.(store.BulkAppender); ok {
		s.wantErr(bulk.AppendEvents(s.Context(), stranger, []*session.Event{says("late")}), session.ErrConflict,
			"several events to a session whose Events is nil")
		s.wantErr(bulk.AppendEvents(s.Context(), &eventless{foreign{id: "s2"}}, []*session.Event{says("lost")}),
			session.ErrNotFound,
			"several events to a session whose Events is nil and that is not in the store")
	}
	s.wantTexts(s.get("s1"), []string{"one", "two"}, "what is appended through a session whose Events is nil is stored")
	if v := session.ViewOf(stranger); v.Events().Len() != 0 || v.LastSeq() != 0 {
		s.Errorf("a view of a session whose Events is nil shows no events, got %d", v.Events().Len())
	}
}
