// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/web/wire"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Times of a stream.
const (
	beat          = 15 * time.Second       // between signs of life
	snapshotEvery = 100 * time.Millisecond // at least, between two snapshots
	chunk         = wire.Chunk             // bytes that are kept for a client
)

// events tells the events of a run: as a stream for browsers, as lines for scripts, or page by page,
// by what the client accepts.
func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	accept := r.Header.Get("Accept")
	w.Header().Set("Vary", "Accept")
	switch {
	case strings.Contains(accept, "text/event-stream"):
		return s.stream(w, r)
	case strings.Contains(accept, "ndjson") || strings.Contains(accept, "jsonl"):
		return s.lines(w, r)
	}
	return s.page(w, r)
}

// after is the number of the last event that a client has.
func after(r *http.Request) (int64, error) {
	if text := r.Header.Get("Last-Event-ID"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return 0, problem.Bad("Last-Event-ID: %q is not the number of an event", text)
		}
		return n, nil
	}
	return number(r.URL.Query(), "after", 0, 0, 1<<62)
}

// streams counts the streams under way. One client has at most half of the places, so that others find one.
type streams struct {
	most int

	mu  sync.Mutex
	all int
	of  map[netip.Prefix]int
}

// place takes a place among the streams for the caller of ctx.
func (s *Server) place(ctx context.Context) (leave func(), err error) {
	var client netip.Prefix // of no address on standard input
	if c := operations.CallerOf(ctx); c != nil {
		client = clientOf(c.Address)
	}
	p := &s.streams
	p.mu.Lock()
	defer p.mu.Unlock()
	full := ""
	switch half := max(1, p.most/2); {
	case p.all >= p.most:
		full = fmt.Sprintf("the limit (--max-streams) is %d", p.most)
	case client.IsValid() && p.of[client] >= half:
		full = fmt.Sprintf("one client has at most half of the %d streams (--max-streams)", p.most)
	}
	if full != "" {
		return nil, problem.New(http.StatusServiceUnavailable, "busy", "There are too many streams", "%s: close some, or try again later", full).
			With("Retry-After", "5")
	}
	if p.of == nil {
		p.of = make(map[netip.Prefix]int)
	}
	p.all++
	p.of[client]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.all--
		if p.of[client]--; p.of[client] == 0 {
			delete(p.of, client)
		}
	}, nil
}

// enter takes a place in the channel, or returns the problem if it is full.
func enter(at chan struct{}, full *problem.Problem) (leave func(), err error) {
	select {
	case at <- struct{}{}:
		return func() { <-at }, nil
	default:
		return nil, full
	}
}

// turn waits until fewer run at once than the channel has room for.
func turn(ctx context.Context, at chan struct{}) (leave func(), err error) {
	select {
	case at <- struct{}{}:
		return func() { <-at }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// stream sends events as server-sent events: each event of the log as "event", whose id is its number,
// and, with include=snapshots, the run as a whole as "snapshot", at most ten times a second. It goes
// on when the run has ended: it may be resumed.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) error {
	seen, err := after(r)
	if err != nil {
		return err
	}
	include := strings.Split(r.URL.Query().Get("include"), ",")
	has := func(what string) bool {
		return slices.Contains(include, what)
	}
	snapshots := has("snapshots")
	c := &client{s: s, w: w, seen: seen, quiet: snapshots && !has("events"), format: sse}
	f, err := s.follow(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	defer f.leave()
	if !snapshots {
		return s.tell(r, c, f, "", nil)
	}
	lang := wire.LanguageOf(r)
	return s.tell(r, c, f, "snapshot", func(old time.Duration) (shown, error) { return f.snapshot(lang, old) })
}

// tell keeps a stream open, for as long as the client listens: it sends the events that the client
// lacks and, each time that the run has changed, what whole makes of it, under a name; all clients get
// the same, at most ten times a second. A nil whole is for events alone.
func (s *Server) tell(r *http.Request, c *client, f *feed, name string, whole func(old time.Duration) (shown, error)) error {
	leave, err := s.place(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	if !c.quiet {
		defer f.read()()
	}
	var told int64 = -1
	return c.keep(r, func() (<-chan struct{}, <-chan time.Time, error) {
		version, changed, err := c.catchUp(r.Context(), f)
		if err != nil {
			c.fail(err)
			return nil, nil, err
		}
		if whole == nil || version <= told {
			return changed, nil, nil
		}
		now, err := whole(snapshotEvery)
		if err != nil {
			return nil, nil, err
		}
		if now.version > told {
			head := "event: " + name + "\n"
			if c.quiet {
				head += "id: " + strconv.FormatInt(now.seq, 10) + "\n"
			}
			if err := c.write([]byte(head), []byte("data: "), now.text, []byte("\n\n")); err != nil {
				return nil, nil, err
			}
			told = now.version
		}
		if told < version { // all that comes until then is in one snapshot
			return nil, time.After(snapshotEvery - time.Since(now.at)), nil
		}
		return changed, nil, nil
	})
}

// keep begins a stream, and keeps it open for as long as the client listens. say sends what is new, at the
// beginning and whenever one of the channels that it has returned says so. Its error ends the stream.
func (c *client) keep(r *http.Request, say func() (changed <-chan struct{}, later <-chan time.Time, err error)) error {
	if c.begin() != nil {
		return nil
	}
	alive := time.NewTicker(beat)
	defer alive.Stop()
	for {
		changed, later, err := say()
		if err != nil {
			return nil
		}
		select {
		case <-changed:
		case <-later:
		case <-alive.C:
			if c.write([]byte(": alive\n\n")) != nil {
				return nil
			}
		case <-r.Context().Done():
			return nil
		case <-c.s.closing:
			return nil
		}
	}
}

// client receives events.
type client struct {
	s      *Server
	w      http.ResponseWriter
	seen   int64 // the last event that was sent
	quiet  bool  // no events are wanted
	format func(*bytes.Buffer, int64, []byte)
	buf    bytes.Buffer
}

// begin begins a stream of server-sent events.
func (c *client) begin() error {
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	c.w.WriteHeader(http.StatusOK)
	return c.write([]byte("retry: 1000\n\n"))
}

// fail says why a stream ends.
func (c *client) fail(err error) {
	if !errors.Is(err, context.Canceled) {
		_ = c.write([]byte("event: error\ndata: " + strconv.Quote(credential.Masked(err.Error())) + "\n\n"))
	}
}

// sse writes an event for a browser. JSON has no line breaks.
func sse(b *bytes.Buffer, seq int64, text []byte) {
	fmt.Fprintf(b, "id: %d\nevent: event\ndata: ", seq)
	b.Write(text)
	b.WriteString("\n\n")
}

// ndjson writes an event on a line.
func ndjson(b *bytes.Buffer, _ int64, text []byte) {
	b.Write(text)
	b.WriteByte('\n')
}

// write sends something. A client that does not take it in time is dropped.
func (c *client) write(parts ...[]byte) error {
	return wire.Write(c.w, parts...)
}

// flush sends what has been written to the buffer.
func (c *client) flush() error {
	if c.buf.Len() == 0 {
		return nil
	}
	defer func() {
		if c.buf.Reset(); c.buf.Cap() > 4*chunk { // after a large event
			c.buf = bytes.Buffer{}
		}
	}()
	return c.write(c.buf.Bytes())
}

// catchUp sends the events that the client lacks: from the feed, or, of an old one, from the store.
func (c *client) catchUp(ctx context.Context, f *feed) (version int64, changed <-chan struct{}, err error) {
	f.mu.Lock()
	last := f.seq
	f.mu.Unlock()
	for {
		lines, version, changed, ok, err := f.take(c.seen)
		if err != nil {
			return 0, nil, err
		}
		if c.quiet {
			return version, changed, nil
		}
		if !ok {
			if err := c.read(ctx, f); err != nil {
				return 0, nil, err
			}
			continue
		}
		for _, l := range lines {
			c.format(&c.buf, l.seq, l.text)
			c.seen = l.seq
		}
		if err := c.flush(); err != nil {
			return 0, nil, err
		}
		if c.seen >= last {
			return version, changed, nil
		}
	}
}

// read sends events from the store, up to where the feed has them.
func (c *client) read(ctx context.Context, f *feed) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for ev, err := range c.s.runs.Supervisor.Watch(ctx, f.id, c.seen) {
		if err != nil {
			return err
		}
		text, err := wire.Event(ev)
		if err != nil {
			return err
		}
		c.format(&c.buf, ev.Seq, text)
		c.seen = ev.Seq
		if c.buf.Len() >= chunk {
			if err := c.flush(); err != nil {
				return err
			}
		}
		if _, _, _, ok, _ := f.take(c.seen); ok {
			break
		}
	}
	return c.flush()
}

// lines sends events as lines of JSON: those that there are, or, with follow=1, all until the run
// ends, is paused, or waits for a person.
func (s *Server) lines(w http.ResponseWriter, r *http.Request) error {
	seen, err := after(r)
	if err != nil {
		return err
	}
	leave, err := s.place(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	f, err := s.follow(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	defer f.leave()
	defer f.read()()
	follow := isSet(r.URL.Query(), "follow")
	w.Header().Set("Content-Type", "application/x-ndjson")
	c := &client{s: s, w: w, seen: seen, format: ndjson}
	for {
		f.mu.Lock()
		ends, changed := !follow || f.status != string(mark.RunRunning) && f.status != "", f.changed // one moment: what comes behind it wakes us
		f.mu.Unlock()
		last := int64(-1)
		if ends {
			one, err := s.runs.Brief(r.Context(), f.id, 1)
			if err != nil {
				return nil
			}
			last = session.LastSeen(one)
		}
		if _, _, err := c.catchUp(r.Context(), f); err != nil || ends && c.seen >= last {
			return nil
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return nil
		case <-s.closing:
			return nil
		}
	}
}

func isSet(q url.Values, name string) bool {
	on, _ := strconv.ParseBool(q.Get(name))
	return on
}

// page sends some events, oldest first: those behind after, or with before, the last ones before it.
// address, author and kind choose some of them.
func (s *Server) page(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	limit, err := number(q, "limit", 100, 1, 1000)
	if err != nil {
		return err
	}
	from, err := number(q, "after", 0, 0, 1<<62)
	if err != nil {
		return err
	}
	before, err := number(q, "before", 0, 0, 1<<62)
	if err != nil {
		return err
	}
	view, err := s.runs.Brief(r.Context(), r.PathValue("id"), 0)
	if err != nil {
		return err
	}
	log := view.Log()
	want := choice{q.Get("address"), q.Get("author"), q.Get("kind")}
	var found []*session.Event
	n := log.Len()
	if before > 0 {
		for i := n - 1; i >= 0 && int64(len(found)) < limit; i-- {
			if ev := log.At(i); ev.Seq < before && want.has(ev) {
				found = append(found, ev)
			}
		}
		slices.Reverse(found)
	} else {
		for i := int(min(from, int64(n))); i < n && int64(len(found)) < limit; i++ {
			if ev := log.At(i); ev.Seq > from && want.has(ev) {
				found = append(found, ev)
			}
		}
	}
	out := struct {
		Last     int64             `json:"last"`
		FirstSeq int64             `json:"first_seq"`
		LastSeq  int64             `json:"last_seq"`
		Events   []json.RawMessage `json:"events"`
	}{Last: view.LastSeq(), Events: []json.RawMessage{}}
	for i, ev := range found {
		text, err := wire.Event(view.FullEvent(ev))
		if err != nil {
			return err
		}
		if i == 0 {
			out.FirstSeq = ev.Seq
		}
		out.LastSeq, out.Events = ev.Seq, append(out.Events, text)
	}
	if err := view.Err(); err != nil {
		return err
	}
	return s.Send(w, http.StatusOK, out)
}

// choice says which events a client wants.
type choice struct{ address, author, kind string }

func (c *choice) has(ev *session.Event) bool {
	kind := ""
	if ev.Mark != nil {
		kind = string(ev.Mark.Kind)
	}
	return (c.address == "" || ev.Address.Under(session.Address(c.address))) && (c.author == "" || ev.Author == c.author) &&
		(c.kind == "" || c.kind == kind || c.kind == "said" && ev.Speaks() || c.kind == "problem" && runlog.ProblemIn(ev) != "")
}
