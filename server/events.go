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

// Times and sizes of a stream.
const (
	keepAlive     = 15 * time.Second       // the time between two keep-alive lines
	snapshotEvery = 100 * time.Millisecond // the least time between two snapshots
	chunk         = wire.Chunk             // the size of the pieces that are sent to a client, in bytes
)

// events sends the events of a run. The Accept header of the client decides the form: a stream for browsers, lines for
// scripts, or one page.
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

// lastSeen returns the sequence number of the last event that a client has, from Last-Event-ID or the query; the default is 0.
func lastSeen(r *http.Request) (int64, error) {
	if text := r.Header.Get("Last-Event-ID"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return 0, problem.Bad("Last-Event-ID: %q is not the number of an event", text)
		}
		return n, nil
	}
	return number(r.URL.Query(), "after", 0, 0, 1<<62)
}

// streams counts the open streams. One client can have at most half of the places, so that some are left for others.
type streams struct {
	most int

	mu  sync.Mutex
	all int
	of  map[netip.Prefix]int
}

// place takes a place among the streams for the caller in ctx. The caller must call leave. The error says that there is no
// place.
func (s *Server) place(ctx context.Context) (leave func(), err error) {
	var client netip.Prefix // stays invalid for a client on standard input, which has no address
	if c := operations.CallerOf(ctx); c != nil {
		client = clientOf(c.Address)
	}
	p := &s.places.streams
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

// tryPlace takes a place in the channel, or returns the problem full if there is none. It does not wait.
func tryPlace(at chan struct{}, full *problem.Problem) (leave func(), err error) {
	select {
	case at <- struct{}{}:
		return func() { <-at }, nil
	default:
		return nil, full
	}
}

// waitForPlace waits for a place in the channel, and takes it. It fails if ctx ends first.
func waitForPlace(ctx context.Context, at chan struct{}) (leave func(), err error) {
	select {
	case at <- struct{}{}:
		return func() { <-at }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// stream sends server-sent events: each event of the log as "event", with its sequence number as id, and, with
// include=snapshots, the whole run as "snapshot", at most ten times a second. The stream stays open after the run has ended,
// because the run may be resumed.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) error {
	seen, err := lastSeen(r)
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
		return s.streamChanges(r, c, f, "", nil)
	}
	lang := wire.LanguageOf(r)
	return s.streamChanges(r, c, f, "snapshot", func(old time.Duration) (rendering, error) { return f.snapshot(lang, old) })
}

// streamChanges keeps a stream open until the client leaves. It sends the events that the client lacks. After each change of the run
// it also sends the result of whole as an event with that name, at most ten times a second. If whole is nil, streamChanges sends only
// the events of the log.
func (s *Server) streamChanges(r *http.Request, c *client, f *feed, name string, whole func(old time.Duration) (rendering, error)) error {
	leave, err := s.place(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	if !c.quiet {
		defer f.beginReading()()
	}
	var sent int64 = -1
	return c.keepOpen(r, func() (<-chan struct{}, <-chan time.Time, error) {
		version, changed, err := c.catchUp(r.Context(), f)
		if err != nil {
			c.fail(err)
			return nil, nil, err
		}
		if whole == nil || version <= sent {
			return changed, nil, nil
		}
		now, err := whole(snapshotEvery)
		if err != nil {
			return nil, nil, err
		}
		if now.version > sent {
			head := "event: " + name + "\n"
			if c.quiet {
				head += "id: " + strconv.FormatInt(now.seq, 10) + "\n"
			}
			if err := c.write([]byte(head), []byte("data: "), now.text, []byte("\n\n")); err != nil {
				return nil, nil, err
			}
			sent = now.version
		}
		if sent < version { // the next snapshot contains all changes until then
			return nil, time.After(snapshotEvery - time.Since(now.at)), nil
		}
		return changed, nil, nil
	})
}

// keepOpen begins a stream, and keeps it open until the client leaves. It calls say, which sends what is new, at the beginning
// and whenever one of the channels that say returned is ready. An error of say ends the stream.
func (c *client) keepOpen(r *http.Request, say func() (changed <-chan struct{}, later <-chan time.Time, err error)) error {
	if c.begin() != nil {
		return nil
	}
	alive := time.NewTicker(keepAlive)
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

// client is the receiver of a stream.
type client struct {
	s      *Server
	w      http.ResponseWriter
	seen   int64                              // the sequence number of the last event that was sent
	quiet  bool                               // the client wants no events of the log
	format func(*bytes.Buffer, int64, []byte) // writes an event to buf
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

// fail sends the client an event with the error that ends the stream.
func (c *client) fail(err error) {
	if !errors.Is(err, context.Canceled) {
		_ = c.write([]byte("event: error\ndata: " + strconv.Quote(credential.Masked(err.Error())) + "\n\n"))
	}
}

// sse writes an event as a server-sent event. text is JSON, so it has no line breaks.
func sse(b *bytes.Buffer, seq int64, text []byte) {
	fmt.Fprintf(b, "id: %d\nevent: event\ndata: ", seq)
	b.Write(text)
	b.WriteString("\n\n")
}

// ndjson writes an event as one line of JSON.
func ndjson(b *bytes.Buffer, _ int64, text []byte) {
	b.Write(text)
	b.WriteByte('\n')
}

// write sends bytes to the client. It fails if the client does not read them in time.
func (c *client) write(parts ...[]byte) error {
	return wire.Write(c.w, parts...)
}

// flush sends what has been written to the buffer.
func (c *client) flush() error {
	if c.buf.Len() == 0 {
		return nil
	}
	defer func() {
		if c.buf.Reset(); c.buf.Cap() > 4*chunk { // a large event made the buffer grow; free that memory
			c.buf = bytes.Buffer{}
		}
	}()
	return c.write(c.buf.Bytes())
}

// catchUp sends the events that the client lacks. It takes them from the feed, and older ones from the store. It returns the
// feed's version and a channel that is closed at the next change.
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

// read sends events from the store until the feed has the next one.
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

// lines sends events as lines of JSON. It sends the present events of the log. With follow=1 it also sends later events,
// until the run ends, is paused, or waits for a person.
func (s *Server) lines(w http.ResponseWriter, r *http.Request) error {
	seen, err := lastSeen(r)
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
	defer f.beginReading()()
	follow := isSet(r.URL.Query(), "follow")
	w.Header().Set("Content-Type", "application/x-ndjson")
	c := &client{s: s, w: w, seen: seen, format: ndjson}
	for {
		f.mu.Lock()
		// The status and the channel are read under one lock, so the channel reports every change after this status.
		ends, changed := !follow || f.status != string(mark.RunRunning) && f.status != "", f.changed
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

// page sends one page of events, the oldest first: the first ones after the sequence number after or, if before is given, the
// last ones before that number. address, author and kind in the query choose among them.
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
	want := eventFilter{q.Get("address"), q.Get("author"), q.Get("kind")}
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
		text, err := wire.Event(view.Log().Full(ev))
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

// eventFilter is a filter of events. An empty field fits all events.
type eventFilter struct{ address, author, kind string }

func (c *eventFilter) has(ev *session.Event) bool {
	kind := ""
	if ev.Mark != nil {
		kind = string(ev.Mark.Kind)
	}
	return (c.address == "" || ev.Address.Under(session.Address(c.address))) && (c.author == "" || ev.Author == c.author) &&
		(c.kind == "" || c.kind == kind || c.kind == "said" && ev.Speaks() || c.kind == "problem" && runlog.ProblemIn(ev) != "")
}
