// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/definition/form"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/runlog"
	"github.com/refrain-dev/refrain/server/internal/runpage"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// view is what the page of a run shows, or, for who accepts a stream, what it shows from now on: at
// most ten times a second, when something has changed.
func (s *Server) view(w http.ResponseWriter, r *http.Request) error {
	f, err := s.follow(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	defer f.leave()
	lang := languageOf(r)
	if !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		text, _, err := f.head(lang)
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/json")
		_ = s.inTime(w)
		_, _ = w.Write(append(text, '\n'))
		return nil
	}
	leave, err := s.place()
	if err != nil {
		return err
	}
	defer leave()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	c := &client{s: s, w: w}
	alive := time.NewTicker(beat)
	defer alive.Stop()
	var told []byte
	var at time.Time
	for {
		f.mu.Lock()
		changed := f.changed
		f.mu.Unlock()
		var later <-chan time.Time
		if wait := snapshotEvery - time.Since(at); wait > 0 {
			later, changed = time.After(wait), nil // all that comes until then is in one view
		} else {
			text, seq, err := f.head(lang)
			if err != nil {
				return nil
			}
			if !bytes.Equal(text, told) {
				if err := c.write([]byte("id: "+strconv.FormatInt(seq, 10)+"\nevent: view\ndata: "), text, []byte("\n\n")); err != nil {
					return nil
				}
				told, at = text, time.Now()
				continue
			}
		}
		select {
		case <-changed:
		case <-later:
		case <-alive.C:
			if err := c.write([]byte(": alive\n\n")); err != nil {
				return nil
			}
		case <-r.Context().Done():
			return nil
		case <-s.closing:
			return nil
		}
	}
}

// head is the head of the run's page as JSON. It is made once for each change and language.
func (f *feed) head(lang progress.Language) ([]byte, int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, 0, f.err
	}
	if f.heads == nil || f.headsAt != f.version {
		f.heads, f.headsAt = make(map[progress.Language][]byte), f.version
	}
	if text := f.heads[lang]; text != nil {
		return text, f.folded, nil
	}
	text, err := progress.MarshalJSON(f.page.Head(runpage.Standing{
		ID: f.id, Name: f.name, Status: f.status, Definition: f.definition, Parent: f.parent, Here: true, Language: lang,
	}))
	if err != nil {
		return nil, 0, err
	}
	f.heads[lang] = []byte(masked(string(text)))
	return f.heads[lang], f.folded, nil
}

// begun takes down from which file of the folder the run was started.
func (f *feed) begun(events []*session.Event) {
	for _, ev := range events {
		if ev.Mark == nil || ev.Mark.Kind != mark.KindRunStarted {
			continue
		}
		var started mark.RunStarted
		if ev.Mark.Decode(&started) != nil {
			return
		}
		f.name = started.Name
		var p struct {
			Path string `json:"path"`
		}
		if json.Unmarshal(started.Program, &p) == nil {
			if name := nameIn(p.Path); name != "" {
				if _, _, err := f.s.folder.read(name); err == nil {
					f.definition = name
				}
			}
		}
		return
	}
}

// viewIterations are rows of the page's tree.
func (s *Server) viewIterations(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	from, err := number(q, "from", 1, 0, 1<<40)
	if err != nil {
		return err
	}
	limit, err := number(q, "limit", pageSize, 1, pageMost)
	if err != nil {
		return err
	}
	return s.ofPage(w, r, func(f *feed) (any, error) {
		return f.page.Iterations(session.Address(q.Get("loop")), int(from), int(limit))
	})
}

// viewStep is what the page shows of a step, or of an iteration.
func (s *Server) viewStep(w http.ResponseWriter, r *http.Request) error {
	at := session.Address(r.URL.Query().Get("address"))
	run, err := s.log(r)
	if err != nil {
		return err
	}
	return s.ofPage(w, r, func(f *feed) (any, error) { return f.page.Detail(at, stored{run}) })
}

// ofPage answers with something of a run's page, which nobody changes meanwhile.
func (s *Server) ofPage(w http.ResponseWriter, r *http.Request, tell func(*feed) (any, error)) error {
	f, err := s.follow(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	defer f.leave()
	f.mu.Lock()
	v, err := tell(f)
	var body []byte
	if err == nil {
		body, err = progress.MarshalJSON(v)
	}
	f.mu.Unlock()
	if err != nil {
		if missing, ok := err.(interface{ NotFound() bool }); ok && missing.NotFound() {
			return fault(http.StatusNotFound, "not_in_run", "The run has no such thing", "%v", err)
		}
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_ = s.inTime(w)
	_, _ = w.Write(append([]byte(masked(string(body))), '\n'))
	return nil
}

// stored is the log of a run for its page.
type stored struct{ *runlog.Run }

func (l stored) Between(first, last int64) ([]*session.Event, error) {
	var out []*session.Event
	for _, ev := range l.Events {
		if ev.Seq >= first && ev.Seq <= last {
			out = append(out, l.Wholes.Of(ev))
		}
	}
	return out, l.Wholes.Err
}

func (l stored) Line(ev *session.Event) string {
	if ev.Mark != nil {
		return strings.ReplaceAll(string(ev.Mark.Kind), "_", " ")
	}
	text, _, cut := strings.Cut(strings.TrimSpace(ev.Text()), "\n")
	if r := []rune(text); len(r) > 160 {
		text, cut = string(r[:160]), true
	}
	if cut {
		text += " …"
	}
	return ev.Author + ": " + text
}

// outline says what a form shows of a text: problems are the answer, and not an error.
func (s *Server) outline(w http.ResponseWriter, r *http.Request) error {
	text, err := s.body(w, r, yamlTypes...)
	if err != nil {
		return err
	}
	return s.send(w, http.StatusOK, form.Read("definition.yaml", text, definition.Options{FS: parts{s.folder.root.FS()}}))
}

// complete says what can be written at a place of a text.
func (s *Server) complete(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		Text   string `json:"text"`
		Line   int    `json:"line"`
		Column int    `json:"column"`
	}
	if err := s.read(w, r, &req); err != nil {
		return err
	}
	options := form.Complete(req.Text, req.Line, req.Column)
	if options == nil {
		options = []form.Option{}
	}
	return s.send(w, http.StatusOK, map[string]any{"options": options})
}

// formFields are the fields as a form asks for them.
func (s *Server) formFields(w http.ResponseWriter, _ *http.Request) error {
	return s.send(w, http.StatusOK, map[string]any{"fields": form.Fields()})
}
