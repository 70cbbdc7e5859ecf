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
	listEvery   = time.Second            // the time between two reads of the store, while a client watches the list
	listSoon    = 200 * time.Millisecond // the time between two reads after a run of this process has begun or ended
	rowsMost    = 2000                   // the most rows that are cached
	chartMost   = 60                     // the most scores of a row
	chartEvents = 640                    // how many of the last events of a run are searched for scores
)

// listRuns lists the runs, the newest first. In the query, status, definition, stop_reason and q choose some of the runs;
// after is the ID of the last run of the previous page; scores adds the last scores of each run. A client that accepts a
// stream gets the list again each time that it has changed.
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
	page, err := s.listPage(r.Context(), want)
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

// sendTagged answers with a JSON text and its ETag, or with status 304 if the client has the text. cache is the Cache-Control.
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

// statusesOf returns the statuses that a client asks for, without empty ones. It fails if one is not a status of a run.
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

// listPage returns a page of the list as it is now.
func (s *Server) listPage(ctx context.Context, want *filter) (*runsPage, error) {
	all, err := s.runs.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	s.list.mu.Lock()
	defer s.list.mu.Unlock()
	return s.list.makePage(ctx, all, want, 0)
}

// streamRuns sends the list as an event "runs", at once and each time that it has changed, until the client leaves.
func (s *Server) streamRuns(w http.ResponseWriter, r *http.Request, q url.Values, want *filter) error {
	leave, err := s.place(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	c := &client{s: s, w: w}
	var sent []byte
	return c.keepOpen(r, func() (<-chan struct{}, <-chan time.Time, error) {
		text, news, next, err := s.list.page(r.Context(), q.Encode(), want)
		if err != nil {
			c.fail(err)
		}
		if err == nil && !bytes.Equal(text, sent) {
			sent = text
			err = c.write([]byte("event: runs\ndata: "), text, []byte("\n\n"))
		}
		return news, time.After(next), err
	})
}

// filter chooses the runs of a page of the list, and what the page shows of them.
type filter struct {
	statuses, reasons []string
	name, text, after string
	scores            bool
	limit             int
}

// mayHave returns false if the session alone, without the run's log, shows that the filter excludes the run.
func (f *filter) mayHave(one session.Session) bool {
	run := session.RunOf(one)
	if run == nil {
		return len(f.statuses) == 0 && f.name == "" && len(f.reasons) == 0 && strings.Contains(strings.ToLower(one.ID()), f.text)
	}
	fits := len(f.statuses) == 0 || slices.ContainsFunc(f.statuses, func(want string) bool { return runlog.MayHave(run.Status, want) })
	return fits && (f.name == "" || run.Name == f.name) &&
		strings.Contains(strings.ToLower(one.ID()+" "+run.Name+" "+run.Error+" "+run.Input), f.text)
}

// has reports whether a row fits the statuses and the stop reasons of the filter.
func (f *filter) has(row *runlog.Row) bool {
	return (len(f.statuses) == 0 || slices.Contains(f.statuses, row.Status)) &&
		(len(f.reasons) == 0 || slices.Contains(f.reasons, row.StopReason))
}

// board is the list of runs for all clients that watch it. It reads the store, and each run that has changed, once for all of
// them.
type board struct {
	s *Server

	mu       sync.Mutex            // held while a page is made; guards the fields up to pages
	all      []session.Session     // the sessions of all runs, as the store has listed them
	listedAt time.Time             // when the store listed them
	version  int64                 // counts these lists
	rows     map[string]*cachedRow // by the ID of the run
	pages    map[string]rendering  // by the query

	newsMu sync.Mutex    // guards news; held only for a moment, because the run waits meanwhile
	news   chan struct{} // closed when a run of this process has begun or ended; nil after that, until the next look
}

func newBoard(s *Server) *board {
	return &board{s: s, rows: make(map[string]*cachedRow), pages: make(map[string]rendering)}
}

// onEvent receives an event of a run that this process drives. If the event changes the run's status, onEvent closes news.
func (b *board) onEvent(ev *session.Event) {
	if ev.Mark == nil || ev.Actions.StateDelta[mark.KeyRun] == nil {
		return
	}
	b.newsMu.Lock()
	defer b.newsMu.Unlock()
	if b.news != nil {
		close(b.news)
		b.news = nil
	}
}

// refresh reads the list of runs from the store, unless it did so less than listEvery ago, or less than listSoon ago if there is
// news. It returns the time until the next read; if news is closed, the next read is earlier. b.mu is held.
func (b *board) refresh(ctx context.Context) (news <-chan struct{}, next time.Duration, err error) {
	b.newsMu.Lock()
	next = listEvery - time.Since(b.listedAt)
	if b.news == nil {
		next = listSoon - time.Since(b.listedAt)
	}
	if next <= 0 {
		b.news = make(chan struct{})
	}
	news = b.news
	b.newsMu.Unlock()
	if next > 0 {
		return news, next, nil
	}
	if b.all, err = b.s.runs.Sessions(ctx); err == nil {
		b.listedAt = time.Now()
		b.version++
	}
	return news, listEvery, err
}

// page returns the page for a query as JSON. It makes each page once for all clients with the same query. The caller must call
// now again after next, or when news is closed, because the page may have changed then.
func (b *board) page(ctx context.Context, query string, want *filter) (text []byte, news <-chan struct{}, next time.Duration, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	news, next, err = b.refresh(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	if p, ok := b.pages[query]; ok && p.version >= b.version {
		return p.text, news, next, nil
	}
	page, err := b.makePage(ctx, b.all, want, 2*listEvery)
	if err == nil {
		text, err = page.text(want.scores)
	}
	if err != nil {
		return nil, nil, 0, err
	}
	for other, p := range b.pages {
		if p.version < b.version-1 { // no client asks for this page any more
			delete(b.pages, other)
		}
	}
	b.pages[query] = rendering{text: text, version: b.version}
	return text, news, next, nil
}

// runsPage is a page of the list.
type runsPage struct {
	runs []cachedRow
	next string // the value of after for the next page; "" if this is the last page
}

// text returns the page as JSON without secrets, with the scores of each run if scores is true.
func (p *runsPage) text(scores bool) ([]byte, error) {
	out := struct {
		Runs []any  `json:"runs"`
		Next string `json:"next,omitempty"`
	}{[]any{}, p.next}
	for _, k := range p.runs {
		if scores {
			out.Runs = append(out.Runs, rowWithScores{k.row, k.chart.points, k.chart.target})
		} else {
			out.Runs = append(out.Runs, k.row)
		}
	}
	text, err := progress.MarshalJSON(out)
	return []byte(credential.Masked(string(text))), err
}

// makePage makes a page from the sessions of all runs. The rows of unfinished runs may be up to old out of date. b.mu is held.
func (b *board) makePage(ctx context.Context, all []session.Session, want *filter, old time.Duration) (*runsPage, error) {
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
			continue // the run was deleted meanwhile
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

// cachedRow is the cached row of a run. It is valid until the run has a last event other than seq.
type cachedRow struct {
	row     *runlog.Row
	seq     int64
	updated time.Time // the time of that event
	at      time.Time // when the row was read
	chart   chart
}

// rowWithScores is a row with its last scores.
type rowWithScores struct {
	*runlog.Row
	Scores []chartScore `json:"scores,omitzero"`
	Target *float64     `json:"target,omitzero"`
}

// rowOf returns the row of a run as it is now.
func (b *board) rowOf(ctx context.Context, one session.Session) (*runlog.Row, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k, err := b.row(ctx, one, false, 0)
	if err != nil {
		return nil, err
	}
	return k.row, nil
}

// row returns the row of a run, from the cache if the run has not changed. The row of an unfinished run may be up to old out
// of date. If scores is true, the row also has the run's last scores. b.mu is held.
func (b *board) row(ctx context.Context, one session.Session, scores bool, old time.Duration) (*cachedRow, error) {
	id, seq, updated := one.ID(), session.LastSeen(one), one.LastUpdateTime()
	k := b.rows[id]
	if k == nil || k.seq != seq || !k.updated.Equal(updated) || mayChange(k.row.Status) && time.Since(k.at) >= old {
		row, err := runlog.RowOf(ctx, b.s.runs.Service, one, b.s.runs.Dead)
		if err != nil {
			return nil, err
		}
		if k == nil || k.seq > seq { // the run was deleted, and a new run has its ID
			if len(b.rows) >= rowsMost {
				clear(b.rows)
			}
			k = new(cachedRow)
			b.rows[id] = k
		}
		k.row, k.seq, k.updated, k.at = row, seq, updated, time.Now()
	}
	if scores && k.row.Iteration > 0 && k.chart.seq < seq {
		whole, err := b.s.runs.Brief(ctx, id, 0)
		if err != nil {
			return nil, err
		}
		if err := k.chart.read(whole); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// mayChange reports whether the status of a run can change without an event, because the process that drives it may die.
func mayChange(status string) bool {
	return status == string(mark.RunRunning) || status == runlog.StatusInterrupted || status == runlog.StatusNotBegun
}

// chart is the chart of a row: the last scores of the run's last outermost loop.
type chart struct {
	seq      int64 // the sequence number of the last event that was read
	points   []chartScore
	target   *float64
	searched bool // read has looked for the target
}

// chartScore is an iteration in a chart. Its Score is nil if the iteration has none.
type chartScore struct {
	Iteration int      `json:"iteration"`
	Score     *float64 `json:"score,omitzero"`
	Best      bool     `json:"best,omitzero"`
	Undone    bool     `json:"undone,omitzero"`
}

// read adds the events of a log that it has not read yet, but at most the last drawEvents.
func (d *chart) read(view *session.View) error {
	log := view.Log()
	gone := log.Superseded()
	n := log.Len()
	before := view.LastSeq() - int64(n)
	from := max(0, int(d.seq-before), n-chartEvents)
	points := slices.Clone(d.points) // a copy, because pages may still use the old slice
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
			if d.searched = true; ev.Mark.Kind == mark.KindLoopStarted {
				points = nil
			}
		case mark.KindIterationFinished:
			var it loop.IterationRecord
			if ev.Mark.Decode(&it) != nil {
				return
			}
			points = slices.DeleteFunc(points, func(p chartScore) bool { return p.Iteration >= it.Number })
			if it.Best {
				for i := range points {
					points[i].Best = false
				}
			}
			points = append(points, chartScore{Iteration: it.Number, Score: it.Score, Best: it.Best})
		case mark.KindRolledBack:
			var back mark.RolledBack
			if ev.Mark.Decode(&back) == nil {
				for i := range points {
					points[i].Undone = points[i].Undone || points[i].Iteration == back.Iteration
				}
			}
		}
	}
	if !d.searched { // the loop's plan, with the target, is among the first events
		for i := range min(from, chartBegin) {
			take(log.At(i))
		}
		points, d.searched = nil, true
	}
	for i := from; i < n; i++ {
		take(log.At(i))
	}
	d.points, d.seq = slices.Clone(points[max(0, len(points)-chartMost):]), view.LastSeq()
	return view.Err()
}

// chartBegin is how many of the first events of a log are searched for the loop's plan.
const chartBegin = 16
