// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/internal/credential"
	"github.com/refrain-dev/refrain/operations/problem"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/runlog"
	"github.com/refrain-dev/refrain/server/internal/wire"
	"github.com/refrain-dev/refrain/session"
)

// seqAt is the event that a place stands for: iteration/5, seq/117, or empty for the end. The
// iteration is one of the loop at an address, or of the loop to show first.
func seqAt(run *runlog.Run, place, at string) (int64, error) {
	kind, text, _ := strings.Cut(place, "/")
	if place == "" || place == "end" {
		return run.Events[len(run.Events)-1].Seq, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil || n < 0:
	case kind == "seq":
		return n, nil
	case kind == "iteration":
		if at == "" {
			if main := progress.TreeOf(progress.LastRun(run.Events)).Main(); main != nil {
				at = string(main.Address)
			}
		}
		if seq := progress.IterationSeq(run.Events, session.Address(at), int(n)); seq > 0 {
			return seq, nil
		}
		return 0, problem.New(http.StatusNotFound, "iteration_not_found", "The loop has no such iteration", "%d", n)
	}
	return 0, problem.Bad("%q is not a place in a run: write iteration/5, seq/117 or end", place)
}

// state is the state at a place.
func (s *Server) state(w http.ResponseWriter, r *http.Request) error {
	run, err := s.runs.ReadLog(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	q := r.URL.Query()
	seq, err := seqAt(run, q.Get("at"), q.Get("loop"))
	if err != nil {
		return err
	}
	state := run.StateAfter(seq)
	if run.Wholes.Err != nil {
		return run.Wholes.Err
	}
	s.Streamed(w, r, func(t *wire.Stream) {
		t.Member("seq", seq)
		t.State(state)
	})
	return nil
}

// diff is what changed in the state between two places.
func (s *Server) diff(w http.ResponseWriter, r *http.Request) error {
	run, err := s.runs.ReadLog(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	q := r.URL.Query()
	if q.Get("from") == "" {
		return problem.Bad("give from, such as iteration/4, and to")
	}
	from, err := seqAt(run, q.Get("from"), q.Get("loop"))
	if err != nil {
		return err
	}
	to, err := seqAt(run, q.Get("to"), q.Get("loop"))
	if err != nil {
		return err
	}
	changes := progress.Diff(run.StateAfter(from), run.StateAfter(to))
	if run.Wholes.Err != nil {
		return run.Wholes.Err
	}
	return s.SendMasked(w, http.StatusOK, map[string]any{"from": from, "to": to, "changes": changes})
}

// export is the whole log with its hashes, as refrain export writes it, but without keys and passwords.
// If there are any, the file says so: its hashes are not those of the run.
func (s *Server) export(w http.ResponseWriter, r *http.Request) error {
	run, err := s.runs.ReadLog(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("Content-Disposition", `attachment; filename="`+url.PathEscape(run.ID)+`.jsonl"`)
	out := bufio.NewWriterSize(w, chunk)
	_, err = run.Export(out, runlog.ExportOptions{Audit: isSet(r.URL.Query(), "audit"), Version: s.cfg.Version,
		Mask: credential.Masked})
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		s.cfg.Log.Warn("an export was cut off", "run", run.ID, "error", credential.Masked(err.Error()))
		panic(http.ErrAbortHandler) // the client sees that the end is missing
	}
	return nil
}
