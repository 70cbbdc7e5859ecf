// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// ended reports whether a message is the end of its run.
func ended(m message) bool {
	var ev session.Event
	return json.Unmarshal([]byte(m.data), &ev) == nil && ev.Mark != nil && ev.Mark.Kind == mark.KindRunEnded
}

// M16: whoever follows a run gets each event once, whenever the connection breaks.
func TestStreamGivesEachEventOnce(t *testing.T) {
	s := open(t, map[string]string{"counting.yaml": counting})
	id := s.run(map[string]any{"definition": "counting"}).Run
	var watchers sync.WaitGroup
	got := make([][]int64, 8)
	for i := range got {
		watchers.Go(func() {
			dice, last, over := rand.New(rand.NewPCG(uint64(i), 7)), int64(0), false
			for !over {
				left := 1 + dice.IntN(30)
				s.listen(t.Context(), "/api/v1/runs/"+id+"/events", last, func(m message) bool {
					got[i], last = append(got[i], m.id), m.id
					over = ended(m)
					left--
					return left > 0 && !over
				})
			}
		})
	}
	watchers.Wait()
	n := len(s.log(id))
	for i, ids := range got {
		for j, seq := range ids {
			if seq != int64(j+1) {
				t.Fatalf("watcher %d: event %d came as number %d", i, seq, j+1)
			}
		}
		if len(ids) != n {
			t.Errorf("watcher %d got %d of %d events", i, len(ids), n)
		}
	}
}

// M16: the same for a run that is over, from any place, as a stream, as lines and by pages.
func TestEventsOfARunThatIsOver(t *testing.T) {
	s := open(t, map[string]string{"counting.yaml": counting})
	id := s.run(map[string]any{"definition": "counting"}).Run
	if got := s.wait(id); got != "completed" {
		t.Fatal(got)
	}
	log := s.log(id)
	n := len(log)
	path := "/api/v1/runs/" + id + "/events"
	for _, after := range []int{0, 1, n / 2, n - 1, n} {
		want := n - after
		text := string(s.ok("GET", fmt.Sprint(path, "?after=", after), nil, nil, "Accept", "application/x-ndjson").body)
		if got := strings.Count(text, "\n"); got != want {
			t.Errorf("after %d: %d lines, want %d", after, got, want)
		}
		if want == 0 {
			continue
		}
		first := int64(0)
		s.listen(t.Context(), path, int64(after), func(m message) bool { first = m.id; return false })
		if first != int64(after+1) {
			t.Errorf("after %d the first event is %d", after, first)
		}
	}
	var page struct {
		Last   int64 `json:"last"`
		First  int64 `json:"first_seq"`
		End    int64 `json:"last_seq"`
		Events []session.Event
	}
	var all []session.Event
	for after := int64(0); after < int64(n); after = page.End {
		s.ok("GET", fmt.Sprint(path, "?limit=7&after=", after), nil, &page)
		all = append(all, page.Events...)
	}
	for i := range all {
		if all[i].Seq != int64(i+1) || all[i].ID != log[i].ID {
			t.Fatalf("event %d is %d", i+1, all[i].Seq)
		}
	}
	s.ok("GET", fmt.Sprint(path, "?limit=5&before=", n), nil, &page)
	if page.First != int64(n-5) || page.End != int64(n-1) || page.Last != int64(n) {
		t.Errorf("the page before the end is %d to %d of %d", page.First, page.End, page.Last)
	}
	s.ok("GET", path+"?kind=iteration_finished&limit=1000", nil, &page)
	if len(page.Events) != 40 {
		t.Errorf("%d iterations have ended", len(page.Events))
	}
}

// M9–M12, M16: the run as a whole comes with the stream, up to its end.
func TestSnapshots(t *testing.T) {
	g := newGate(t)
	s := open(t, map[string]string{"gated.yaml": g.gated(3)}, private)
	id := s.run(map[string]any{"definition": "gated"}).Run
	<-g.came
	type snap struct {
		Seq    int64
		Status string
		Tree   struct {
			Root struct {
				Loop struct{ Iterations []struct{ Number int } }
			}
		}
		Loops []struct {
			Loop  string
			Count int
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	var last snap
	seen := map[string]bool{}
	s.listen(ctx, "/api/v1/runs/"+id+"/events?include=snapshots", 0, func(m message) bool {
		if m.event != "snapshot" {
			t.Errorf("a message %q", m.event)
			return true
		}
		if !seen["one"] {
			seen["one"] = true
			g.let <- struct{}{}
			g.let <- struct{}{}
			g.let <- struct{}{}
		}
		last = snap{}
		if err := json.Unmarshal([]byte(m.data), &last); err != nil {
			t.Fatal(err)
		}
		if m.id != last.Seq {
			t.Errorf("the snapshot of %d has the id %d", last.Seq, m.id)
		}
		return last.Status != "completed"
	})
	if last.Status != "completed" || len(last.Tree.Root.Loop.Iterations) != 3 || len(last.Loops) != 1 || last.Loops[0].Count != 3 {
		t.Errorf("the last snapshot is %+v", last)
	}
	var direct snap
	s.ok("GET", "/api/v1/runs/"+id, nil, &direct)
	var said struct {
		Outlooks []struct{ Words struct{ Sentence string } }
	}
	text := s.ok("GET", "/api/v1/runs/"+id+"?lang=pt-BR", nil, &said).body
	if len(said.Outlooks) != 1 {
		t.Errorf("the outlooks are %s", text)
	}
	if direct.Seq != last.Seq || direct.Status != "completed" {
		t.Errorf("the run is %+v", direct)
	}
}

// M16: lines can be followed until the run ends; leaving early does not end the run.
func TestLinesFollowToTheEnd(t *testing.T) {
	g := newGate(t)
	s := open(t, map[string]string{"gated.yaml": g.gated(2)}, private)
	id := s.run(map[string]any{"definition": "gated"}).Run
	<-g.came
	ctx, cancel := context.WithCancel(t.Context())
	s.listen(ctx, "/api/v1/runs/"+id+"/events", 0, func(message) bool { return false })
	cancel() // this client has left
	g.let <- struct{}{}
	g.let <- struct{}{}
	text := string(s.ok("GET", "/api/v1/runs/"+id+"/events?follow=1", nil, nil, "Accept", "application/x-ndjson").body)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if n := len(s.log(id)); len(lines) != n || !ended(message{data: lines[n-1]}) {
		t.Errorf("got %d of %d lines", len(lines), n)
	}
}
