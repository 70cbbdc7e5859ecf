// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/values/suggest"
	"github.com/refrain-dev/refrain/internal/web/wire"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Times and sizes of the list of runs.
const (
	listEvery  = time.Second            // between two looks at the store, while somebody watches
	listSoon   = 200 * time.Millisecond // at least, also if a run begins or ends
	rowsMost   = 2000                   // that are kept
	drawMost   = 60                     // scores of a row
	drawEvents = 640                    // the last events of a run in which they are looked for
)

// listRuns lists the runs, the newest first. status, name, stop_reason and q choose some of them;
// after is the ID of the last run of the page before; scores asks for the last scores of each. Who
// accepts a stream gets the list each time that it has changed.
func (s *Server) listRuns(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	limit, err := number(q, "limit", pageSize, 1, pageMost)
	if err != nil {
		return err
	}
	statuses, err := statusesOf(q["status"])
	if err != nil {
		return err
	}
	want := &filter{
		statuses: statuses, name: q.Get("definition"), reasons: q["stop_reason"], text: strings.ToLower(q.Get("q")),
		after: q.Get("after"), scores: isSet(q, "scores"), limit: int(limit),
	}
	w.Header().Set("Vary", "Accept")
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		return s.streamRuns(w, r, q, want)
	}
	page, err := s.listed(r.Context(), want)
	if err != nil {
		return err
	}
	body, err := page.text(want.scores)
	if err != nil {
		return err
	}
	sendTagged(w, r, body, "no-cache")
	return nil
}

// sendTagged answers with a JSON text and its tag, or says that the client has it. cache is the Cache-Control.
func sendTagged(w http.ResponseWriter, r *http.Request, body []byte, cache string) {
	sum := sha256.Sum256(body)
	tag := `W/"` + hex.EncodeToString(sum[:12]) + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", cache)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	wire.SendText(w, http.StatusOK, body)
}

// statusesOf are those that somebody asks for; an empty one is none.
func statusesOf(asked []string) (statuses []string, err error) {
	all := runlog.AllStatuses()
	for _, one := range asked {
		switch {
		case one == "":
		case slices.Contains(all, one):
			statuses = append(statuses, one)
		default:
			hint := ""
			if near := suggest.Nearest(one, all); near != "" {
				hint = fmt.Sprintf(" (did you mean %q?)", near)
			}
			return nil, problem.Bad("there is no status %q%s; use some of %s", one, hint, strings.Join(all, ", "))
		}
	}
	return statuses, nil
}

// listed is a page of the list as it is now.
func (s *Server) listed(ctx context.Context, want *filter) (*runsPage, error) {
	all, err := s.runs.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	s.list.making.Lock()
	defer s.list.making.Unlock()
	return s.list.make(ctx, all, want, 0)
}

// streamRuns sends the list as "runs", now and each time that it has changed, as long as the client
// listens.
func (s *Server) streamRuns(w http.ResponseWriter, r *http.Request, q url.Values, want *filter) error {
	leave, err := s.place(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	c := &client{s: s, w: w}
	var told []byte
	return c.keep(r, func() (<-chan struct{}, <-chan time.Time, error) {
		text, news, next, err := s.list.now(r.Context(), q.Encode(), want)
		if err != nil {
			c.fail(err)
		}
		if err == nil && !bytes.Equal(text, told) {
			told = text
			err = c.write([]byte("event: runs\ndata: "), text, []byte("\n\n"))
		}
		return news, time.After(next), err
	})
}

// filter says which runs somebody wants to see, and what of them.
type filter struct {
	statuses, reasons []string
	name, text, after string
	scores            bool
	limit             int
}

// mayHave leaves out what can be told without a run's log.
func (f *filter) mayHave(one session.Session) bool {
	run := session.RunOf(one)
	if run == nil {
		return len(f.statuses) == 0 && f.name == "" && len(f.reasons) == 0 && strings.Contains(strings.ToLower(one.ID()), f.text)
	}
	fits := len(f.statuses) == 0 || slices.ContainsFunc(f.statuses, func(want string) bool { return runlog.MayHave(run.Status, want) })
	return fits && (f.name == "" || run.Name == f.name) &&
		strings.Contains(strings.ToLower(one.ID()+" "+run.Name+" "+run.Error+" "+run.Input), f.text)
}

func (f *filter) has(row *runlog.Row) bool {
	return (len(f.statuses) == 0 || slices.Contains(f.statuses, row.Status)) &&
		(len(f.reasons) == 0 || slices.Contains(f.reasons, row.StopReason))
}

// board is the list of runs for all who watch it: the store is read once for all of them, and so is
// each run that has changed.
type board struct {
	s *Server

	making  sync.Mutex // held while a page is made
	all     []session.Session
	looked  time.Time // when the store listed all
	version int64     // counts looks at the store
	rows    map[string]*kept
	pages   map[string]shown // by the query

	hearing sync.Mutex    // never held for long: the run waits
	news    chan struct{} // closed when a run of this process has begun or ended since the look
}

func newBoard(s *Server) *board {
	return &board{s: s, rows: make(map[string]*kept), pages: make(map[string]shown)}
}

// hear takes an event of a run that this process drives.
func (b *board) hear(ev *session.Event) {
	if ev.Mark == nil || ev.Actions.StateDelta[mark.KeyRun] == nil {
		return
	}
	b.hearing.Lock()
	defer b.hearing.Unlock()
	if b.news != nil {
		close(b.news)
		b.news = nil
	}
}

// look looks at the store, unless that was done a moment ago. It returns when to look again: then, or soon if there is
// news. b.making is held.
func (b *board) look(ctx context.Context) (news <-chan struct{}, next time.Duration, err error) {
	b.hearing.Lock()
	next = listEvery - time.Since(b.looked)
	if b.news == nil {
		next = listSoon - time.Since(b.looked)
	}
	if next <= 0 {
		b.news = make(chan struct{})
	}
	news = b.news
	b.hearing.Unlock()
	if next > 0 {
		return news, next, nil
	}
	if b.all, err = b.s.runs.Sessions(ctx); err == nil {
		b.looked = time.Now()
		b.version++
	}
	return news, listEvery, err
}

// now is the page that a query asks for, made once for all who ask the same. It may have changed when there is news,
// and has to be asked for again at the next look.
func (b *board) now(ctx context.Context, query string, want *filter) (text []byte, news <-chan struct{}, next time.Duration, err error) {
	b.making.Lock()
	defer b.making.Unlock()
	news, next, err = b.look(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	if p, ok := b.pages[query]; ok && p.version >= b.version {
		return p.text, news, next, nil
	}
	page, err := b.make(ctx, b.all, want, 2*listEvery)
	if err == nil {
		text, err = page.text(want.scores)
	}
	if err != nil {
		return nil, nil, 0, err
	}
	for other, p := range b.pages {
		if p.version < b.version-1 { // nobody asks for it any more
			delete(b.pages, other)
		}
	}
	b.pages[query] = shown{text: text, version: b.version}
	return text, news, next, nil
}

// runsPage is a page of the list.
type runsPage struct {
	runs []kept
	next string // what to give as after for the next page; empty at the end
}

// text is the page as clients get it, with the scores of each run if they are wanted.
func (p *runsPage) text(scores bool) ([]byte, error) {
	out := struct {
		Runs []any  `json:"runs"`
		Next string `json:"next,omitempty"`
	}{[]any{}, p.next}
	for _, k := range p.runs {
		if scores {
			out.Runs = append(out.Runs, drawnRow{k.row, k.drawn.points, k.drawn.target})
		} else {
			out.Runs = append(out.Runs, k.row)
		}
	}
	text, err := progress.MarshalJSON(out)
	return []byte(credential.Masked(string(text))), err
}

// make makes a page. Rows of runs that go on may be so old; b.making is held.
func (b *board) make(ctx context.Context, all []session.Session, want *filter, old time.Duration) (*runsPage, error) {
	if want.after != "" {
		i := slices.IndexFunc(all, func(one session.Session) bool { return one.ID() == want.after })
		if i < 0 {
			return nil, problem.Bad("after=%s: there is no such run any more; read the list from its beginning", want.after)
		}
		all = all[i+1:]
	}
	page := new(runsPage)
	for _, one := range all {
		if !want.mayHave(one) {
			continue
		}
		k, err := b.row(ctx, one, want.scores, old)
		if errors.Is(err, session.ErrNotFound) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		if !want.has(k.row) {
			continue
		}
		if len(page.runs) == want.limit {
			page.next = page.runs[want.limit-1].row.ID
			break
		}
		page.runs = append(page.runs, *k)
	}
	return page, nil
}

// kept is the row of a run. It is right until the run has another last event than seq.
type kept struct {
	row     *runlog.Row
	seq     int64
	updated time.Time
	at      time.Time
	drawn   drawing
}

// drawnRow is a row with its last scores.
type drawnRow struct {
	*runlog.Row
	Scores []drawnScore `json:"scores,omitzero"`
	Target *float64     `json:"target,omitzero"`
}

// rowOf is the row of a run as it is now.
func (b *board) rowOf(ctx context.Context, one session.Session) (*runlog.Row, error) {
	b.making.Lock()
	defer b.making.Unlock()
	k, err := b.row(ctx, one, false, 0)
	if err != nil {
		return nil, err
	}
	return k.row, nil
}

// row is the row of a run: the one that there is, if the run has not changed.
func (b *board) row(ctx context.Context, one session.Session, scores bool, old time.Duration) (*kept, error) {
	id, seq, updated := one.ID(), session.LastSeen(one), one.LastUpdateTime()
	k := b.rows[id]
	if k == nil || k.seq != seq || !k.updated.Equal(updated) || goesOn(k.row.Status) && time.Since(k.at) >= old {
		row, err := runlog.RowOf(ctx, b.s.runs.Service, one, b.s.runs.Dead)
		if err != nil {
			return nil, err
		}
		if k == nil || k.seq > seq { // another run has the ID now
			if len(b.rows) >= rowsMost {
				clear(b.rows)
			}
			k = new(kept)
			b.rows[id] = k
		}
		k.row, k.seq, k.updated, k.at = row, seq, updated, time.Now()
	}
	if scores && k.row.Iteration > 0 && k.drawn.seq < seq {
		whole, err := b.s.runs.Brief(ctx, id, 0)
		if err != nil {
			return nil, err
		}
		if err := k.drawn.read(whole); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// goesOn reports whether a run can change without an event: who drives it may have died.
func goesOn(status string) bool {
	return status == string(mark.RunRunning) || status == runlog.StatusInterrupted || status == runlog.StatusNotBegun
}

// drawing is what a row draws: the last scores of the run's last outermost loop.
type drawing struct {
	seq    int64 // of the last event in it
	points []drawnScore
	target *float64
	begun  bool // the target was looked for
}

// drawnScore is the score of an iteration; nil if it has none.
type drawnScore struct {
	Iteration int      `json:"iteration"`
	Score     *float64 `json:"score,omitzero"`
	Best      bool     `json:"best,omitzero"`
	Undone    bool     `json:"undone,omitzero"`
}

// read takes the new events of a log, or the last ones of a long one.
func (d *drawing) read(view *session.View) error {
	log, gone := view.Log(), view.Superseded()
	n := log.Len()
	before := view.LastSeq() - int64(n)
	from := max(0, int(d.seq-before), n-drawEvents)
	points := slices.Clone(d.points) // those that are shown do not change
	take := func(ev *session.Event) {
		if ev.Mark == nil || ev.Iteration != 0 || gone.Has(ev.Seq) {
			return
		}
		switch ev.Mark.Kind {
		case mark.KindLoopStarted, mark.KindLoopContinued:
			var p loop.Plan
			if ev.Mark.Decode(&p) == nil && p.Score != nil {
				d.target = p.Score.Target
			}
			if d.begun = true; ev.Mark.Kind == mark.KindLoopStarted {
				points = nil
			}
		case mark.KindIterationFinished:
			var it loop.IterationRecord
			if ev.Mark.Decode(&it) != nil {
				return
			}
			points = slices.DeleteFunc(points, func(p drawnScore) bool { return p.Iteration >= it.Number })
			if it.Best {
				for i := range points {
					points[i].Best = false
				}
			}
			points = append(points, drawnScore{Iteration: it.Number, Score: it.Score, Best: it.Best})
		case mark.KindRolledBack:
			var back mark.RolledBack
			if ev.Mark.Decode(&back) == nil {
				for i := range points {
					points[i].Undone = points[i].Undone || points[i].Iteration == back.Iteration
				}
			}
		}
	}
	if !d.begun { // the plan is at the beginning
		for i := range min(from, drawBegin) {
			take(log.At(i))
		}
		points, d.begun = nil, true
	}
	for i := from; i < n; i++ {
		take(log.At(i))
	}
	d.points, d.seq = slices.Clone(points[max(0, len(points)-drawMost):]), view.LastSeq()
	return view.Err()
}

// drawBegin is in how many of the first events of a log the loop's plan is looked for.
const drawBegin = 16
