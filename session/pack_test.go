// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/heaptest"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/sessiontest"
	"github.com/refrain-dev/refrain/session/store"
)

// fill appends to a session of its own what an in-memory service has room for, several times over:
// so it packs what else it has.
func fill(t *testing.T, svc session.Service) {
	t.Helper()
	made, err := svc.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 1<<20)
	for range 40 {
		ev := &session.Event{Author: "writer"}
		ev.Content = genai.NewContentFromText(text, genai.RoleModel)
		if err := svc.AppendEvent(t.Context(), made.Session, ev); err != nil {
			t.Fatal(err)
		}
	}
}

// wantPacked appends events to a session and has it packed. What is there then must be the same.
// It returns how many of the events are still in memory.
func wantPacked(t *testing.T, evs []*session.Event) (kept int) {
	t.Helper()
	svc := session.InMemoryService()
	s := create(t, svc)
	for i, ev := range evs {
		if err := svc.AppendEvent(t.Context(), s, ev); err != nil {
			t.Fatalf("event %d: %v", i+1, err)
		}
	}
	fill(t, svc)
	got := get(t, svc).Events()
	if got.Len() != len(evs) {
		t.Fatalf("got %d events, want %d", got.Len(), len(evs))
	}
	for i, want := range evs {
		ev := got.At(i)
		if diff := cmp.Diff(want.Kept(), ev, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("event %d (-want +got):\n%s", i+1, diff)
		}
		if ev.Timestamp.Location() != want.Timestamp.Location() {
			t.Errorf("event %d is at %v, want the time at %v", i+1, ev.Timestamp, want.Timestamp)
		}
		if ev == want {
			kept++
		}
	}
	return kept
}

// Events that are packed come back, whichever of their fields are set.
func TestPackedEventHasAllFields(t *testing.T) {
	evs := []*session.Event{sessiontest.FullEvent(), {}, {Timestamp: time.Unix(1, 2).UTC()}, {Timestamp: time.Now()},
		{Timestamp: time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC)}, {Timestamp: time.Now().In(time.FixedZone("here", 7))}}
	each := func(of reflect.Type, put func(ev *session.Event, v reflect.Value)) {
		for i := range of.NumField() {
			if name := of.Field(i).Name; name == "Partial" || name == "Seq" {
				continue // it is not stored, or the service sets it
			}
			v := reflect.New(of)
			setField(v.Elem().Field(i))
			ev := &session.Event{Timestamp: time.Unix(int64(i), 0)}
			put(ev, v)
			evs = append(evs, ev)
		}
	}
	part := func(ev *session.Event, p *genai.Part) {
		ev.Content = &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{Text: "a text"}, p}}
	}
	each(reflect.TypeFor[session.Event](), func(ev *session.Event, v reflect.Value) {
		*ev = *v.Interface().(*session.Event)
	})
	each(reflect.TypeFor[mark.Mark](), func(ev *session.Event, v reflect.Value) { ev.Mark = v.Interface().(*mark.Mark) })
	each(reflect.TypeFor[model.LLMResponse](), func(ev *session.Event, v reflect.Value) {
		reflect.ValueOf(ev).Elem().FieldByName("LLMResponse").Set(v.Elem())
	})
	each(reflect.TypeFor[session.EventActions](), func(ev *session.Event, v reflect.Value) {
		ev.Actions = *v.Interface().(*session.EventActions)
	})
	each(reflect.TypeFor[genai.Part](), func(ev *session.Event, v reflect.Value) { part(ev, v.Interface().(*genai.Part)) })
	each(reflect.TypeFor[genai.FunctionCall](), func(ev *session.Event, v reflect.Value) {
		part(ev, &genai.Part{FunctionCall: v.Interface().(*genai.FunctionCall)})
	})
	each(reflect.TypeFor[genai.FunctionResponse](), func(ev *session.Event, v reflect.Value) {
		part(ev, &genai.Part{FunctionResponse: v.Interface().(*genai.FunctionResponse)})
	})
	each(reflect.TypeFor[genai.GenerateContentResponseUsageMetadata](), func(ev *session.Event, v reflect.Value) {
		ev.UsageMetadata = v.Interface().(*genai.GenerateContentResponseUsageMetadata)
	})
	for i, ev := range evs {
		ev.Seq, ev.Partial = 0, false
		if ev.Mark != nil {
			ev.Mark.Sorted, ev.Mark.Asks = false, false // they are in no log
		}
		if ev.Mark != nil && ev.Mark.Data != nil {
			ev.Mark.Data = json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))
		}
	}
	wantPacked(t, evs)
}

// setField gives a field a value that is not zero.
func setField(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		if v.Type().Elem().Kind() != reflect.Struct {
			setField(v.Elem())
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		setField(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, val := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		setField(key)
		setField(val)
		v.SetMapIndex(key, val)
	case reflect.Interface:
		v.Set(reflect.ValueOf("any"))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1234567890, 123456789)))
			return
		}
		for _, field := range v.Fields() {
			if field.CanSet() {
				setField(field)
			}
		}
	case reflect.String:
		v.SetString("name")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64, reflect.Float32:
		v.SetFloat(2.5)
	case reflect.Uint8:
		v.SetUint('7')
	default:
		v.SetInt(3)
	}
}

// Values, texts and data of marks come back as they were, in any order.
func TestPackedEventsAreTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var evs []*session.Event
	for range 3000 {
		evs = append(evs, randomEvent(r))
	}
	if kept := wantPacked(t, evs); kept > 0 {
		t.Errorf("%d events were not packed", kept)
	}
}

func randomEvent(r *rand.Rand) *session.Event {
	one := func(all ...string) string { return all[r.IntN(len(all))] }
	ev := &session.Event{
		InvocationID: one("e-1", "e-2", strings.Repeat("long", 50)), Author: one("writer", "critic", fmt.Sprint(r.Int())),
		Branch:    one("", "", "left", "right"),
		Address:   session.Address(one("", "a", fmt.Sprintf("story/refine[%d]/writer", r.IntN(30)), "story/refine")),
		Iteration: r.IntN(40) - 1, Attempt: r.IntN(3),
		Timestamp: time.Unix(1_700_000_000+r.Int64N(9), r.Int64N(1e9)),
	}
	if r.IntN(2) == 0 {
		ev.Timestamp = ev.Timestamp.UTC()
	}
	if r.IntN(3) == 0 {
		ev.ID = one("mine", "7")
	}
	switch r.IntN(3) {
	case 0:
		ev.Mark = &mark.Mark{Kind: mark.Kind(one("step_started", "step_finished", "loop_stopped"))}
		if n := r.IntN(5); n > 0 {
			data := fmt.Appendf(nil, `{"outcome":{"finished":"%d","iteration":%d,"step":2},"seconds":%v}`, r.Int(),
				r.IntN(99), r.Float64())
			if n == 1 {
				data = data[:r.IntN(len(data))]
			}
			ev.Mark.Data = data
		}
	case 1:
		ev.Content = genai.NewContentFromText(one("", "a text", "ümläut", fmt.Sprint(r.Int())), genai.RoleModel)
		if r.IntN(2) == 0 {
			args := map[string]any{"n": anyValue(r, 3)}
			ev.Content.Parts = append(ev.Content.Parts, genai.NewPartFromFunctionCall("search", args))
		}
	}
	if r.IntN(2) == 0 {
		ev.Actions.StateDelta = map[string]any{one("draft", "score"): anyValue(r, 3), "app:n": anyValue(r, 2), "temp:x": 1.0}
	}
	return ev
}

func anyValue(r *rand.Rand, depth int) any {
	switch r.IntN(12) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return float64(r.IntN(2000) - 1000)
	case 3:
		return []float64{math.Copysign(0, -1), 0.1, 1e300, -1 << 52, 1<<53 - 1, math.SmallestNonzeroFloat64}[r.IntN(6)]
	case 4:
		return []any{int64(1<<53 + 1), int64(math.MinInt64), uint64(math.MaxUint64)}[r.IntN(3)]
	case 5, 6:
		list := make([]any, r.IntN(4))
		for i := range list {
			if depth > 0 {
				list[i] = anyValue(r, depth-1)
			}
		}
		return list
	case 7, 8:
		m := make(map[string]any)
		for i := range r.IntN(4) {
			if depth > 0 {
				m[fmt.Sprint("key", i)] = anyValue(r, depth-1)
			}
		}
		return m
	}
	return []string{"", "a text", "ümläut", "other"}[r.IntN(4)]
}

// inParts is what a service has after n events, and what it has once they are packed in part: the
// last ones are not.
func inParts(t *testing.T, n, last int) (svc session.Service, evs []*session.Event) {
	svc = session.InMemoryService()
	s := create(t, svc)
	for i := range n {
		if i == n-last {
			fill(t, svc)
		}
		ev := &session.Event{Author: fmt.Sprint("writer", i), Timestamp: time.Unix(int64(i), 0)}
		if err := svc.AppendEvent(t.Context(), s, ev); err != nil {
			t.Fatal(err)
		}
		evs = append(evs, ev)
	}
	return svc, evs
}

// Whoever asks for some of the events, or has seen some, need not know which ones are packed.
func TestPartOfAPackedSession(t *testing.T) {
	const n, last = 300, 40
	svc, evs := inParts(t, n, last)
	for _, k := range []int{1, last - 1, last, last + 1, 2 * last, n - 1, n, n + 1} {
		for name, req := range map[string]*session.GetRequest{
			"recent": {NumRecentEvents: k}, "after": {After: time.Unix(int64(n-k), 0)},
		} {
			req.AppName, req.UserID, req.SessionID = "app", "ana", "s1"
			got, err := svc.Get(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			want := evs[max(0, len(evs)-k):]
			if name == "after" {
				want = evs[max(0, n-k):]
			}
			wantAuthors(t, fmt.Sprint(name, " ", k), got.Session.Events(), want)
			more := &session.Event{Author: "more", Timestamp: time.Unix(n, 0)}
			if err := svc.AppendEvent(t.Context(), got.Session, more); err != nil {
				t.Fatal(err)
			}
			evs = append(evs, more)
			want = append(want[:len(want):len(want)], more)
			wantAuthors(t, fmt.Sprint(name, " ", k, " and one more"), got.Session.Events(), want)
		}
	}
	list, err := svc.List(t.Context(), &session.ListRequest{AppName: "app", UserID: "ana"})
	if err != nil || len(list.Sessions) != 1 || list.Sessions[0].Events().Len() != 0 {
		t.Errorf("got the sessions %v, error %v, want one without events", list, err)
	}
	key := lease.Key{AppName: "app", UserID: "ana", SessionID: "s1"}
	for _, after := range []int64{0, 1, 63, 64, n - last, n - last + 1, n - 1} {
		seq := after
		for ev, err := range svc.(store.Watcher).Watch(t.Context(), key, after) {
			if err != nil {
				t.Fatal(err)
			}
			if seq++; ev.Seq != seq || ev.Author != evs[seq-1].Author {
				t.Fatalf("watching after %d: got event %d by %s, want event %d", after, ev.Seq, ev.Author, seq)
			}
			if seq == int64(len(evs)) {
				break
			}
		}
	}
}

func wantAuthors(t *testing.T, what string, got session.Events, want []*session.Event) {
	t.Helper()
	i := 0
	for ev := range got.All() {
		if i < len(want) && (ev.Author != want[i].Author || got.At(i).Author != want[i].Author) {
			t.Fatalf("%s: event %d is by %s, want %s", what, i, ev.Author, want[i].Author)
		}
		i++
	}
	if i != len(want) || got.Len() != i {
		t.Fatalf("%s: %d events, Len says %d, want %d", what, i, got.Len(), len(want))
	}
}

// A view that has missed events gets them, and one that was taken earlier stays as it was.
func TestViewOfASessionThatIsPackedLater(t *testing.T) {
	svc, evs := inParts(t, 100, 100)
	early, view := get(t, svc).Events(), get(t, svc)
	writer := get(t, svc)
	for range 100 {
		ev := &session.Event{Author: fmt.Sprint("writer", len(evs))}
		ev.Actions.StateDelta = map[string]any{"n": float64(len(evs))}
		if err := svc.AppendEvent(t.Context(), writer, ev); err != nil {
			t.Fatal(err)
		}
		evs = append(evs, ev)
	}
	fill(t, svc)
	ev := &session.Event{Author: "last", Seq: 201}
	if err := svc.AppendEvent(t.Context(), view, ev); err != nil {
		t.Fatal(err)
	}
	if n, err := view.State().Get("n"); err != nil || n != 199.0 {
		t.Errorf("the state has n %v, %v, want 199", n, err)
	}
	wantAuthors(t, "the early view", early, evs[:100])
	wantAuthors(t, "the view that caught up", view.Events(), append(evs, ev))
	wantAuthors(t, "a rewound view", view.(*session.View).Rewind(150, nil).Events(), evs[:150])
}

// Sessions to which nothing is appended take a fraction of the memory that their events took.
func TestIdleSessionsArePacked(t *testing.T) {
	const sessions, events = 500, 100
	held := heaptest.Held(func() any {
		svc := session.InMemoryService()
		for range sessions {
			made, err := svc.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana"})
			if err != nil {
				t.Fatal(err)
			}
			for range events {
				ev := session.NewEvent(t.Context(), "e-1")
				ev.Author, ev.Content = "writer", genai.NewContentFromText(strings.Repeat("word ", 8), genai.RoleModel)
				ev.Actions.StateDelta["draft"] = ev.Content.Parts[0].Text
				if err := svc.AppendEvent(t.Context(), made.Session, ev); err != nil {
					t.Fatal(err)
				}
			}
		}
		return svc
	})
	if most := int64(26 << 20); held > most { // 53 MB without packing
		t.Errorf("%d sessions with %d events each take %d bytes, want %d at most", sessions, events, held, most)
	}
}

// Sessions are read, watched and deleted while they are packed.
func TestPackingBesideOthers(t *testing.T) {
	svc := session.InMemoryService()
	text := strings.Repeat("x", 12_000)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			id := fmt.Sprint("s", i)
			made, err := svc.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: id})
			if err != nil {
				t.Error(err)
				return
			}
			for n := range 400 {
				ev := &session.Event{Author: fmt.Sprint("writer", n)}
				ev.Content = genai.NewContentFromText(text, genai.RoleModel)
				if err := svc.AppendEvent(t.Context(), made.Session, ev); err != nil {
					t.Error(err)
					return
				}
			}
			if i%2 == 0 {
				req := &session.DeleteRequest{AppName: "app", UserID: "ana", SessionID: id}
				if err := svc.Delete(t.Context(), req); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for n := 0; n < 400; {
				got, err := svc.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: fmt.Sprint("s", i)})
				if err != nil {
					runtime.Gosched()
					if n > 0 || i%2 == 0 {
						return // deleted
					}
					continue
				}
				seq := 0
				for ev := range got.Session.Events().All() {
					if seq++; ev.Seq != int64(seq) || ev.Author != fmt.Sprint("writer", seq-1) {
						t.Errorf("event %d of session %d is event %d by %s", seq, i, ev.Seq, ev.Author)
						return
					}
				}
				if seq < n {
					t.Errorf("session %d had %d events and has %d", i, n, seq)
				}
				n = seq
			}
		})
	}
	wg.Wait()
}
