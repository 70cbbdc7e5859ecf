// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/web/wire"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Pages of lists.
const (
	pageSize = 50
	pageMost = 500
)

// number returns a number from the query, or otherwise if it is missing. It fails below least, and reduces a larger number to
// most.
func number(q url.Values, name string, otherwise, least, most int64) (int64, error) {
	text := q.Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least {
		return 0, problem.Bad("%s=%s: give a number of at least %d", name, text, least)
	}
	return min(n, most), nil
}

// getRun sends the whole run, with only the last iterations of each loop.
func (s *Server) getRun(w http.ResponseWriter, r *http.Request) error {
	f, err := s.follow(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	defer f.leave()
	snap, err := f.snapshot(wire.LanguageOf(r), 0)
	if err != nil {
		return err
	}
	w.Header().Set("Vary", "Accept-Language")
	wire.SendText(w, http.StatusOK, snap.text)
	return nil
}

// deleteRun deletes a run that no process drives, with all that is its own.
func (s *Server) deleteRun(w http.ResponseWriter, r *http.Request) error {
	if err := s.runs.Remove(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// iterations sends iterations of a loop with their steps: at most limit, beginning at the number from, or the last ones
// without from.
func (s *Server) iterations(w http.ResponseWriter, r *http.Request) error {
	return s.withLoop(w, r, func(step *progress.Step, q url.Values) (any, error) {
		all := step.Loop.Iterations
		limit, err := number(q, "limit", pageSize, 1, pageMost)
		if err != nil {
			return nil, err
		}
		from, err := number(q, "from", 0, 0, 1<<40)
		if err != nil {
			return nil, err
		}
		first := max(0, len(all)-int(limit))
		if q.Get("from") != "" {
			first, _ = slices.BinarySearchFunc(all, from, func(it *progress.Iteration, n int64) int { return cmp.Compare(int64(it.Number), n) })
		}
		some := []*progress.Iteration{}
		for _, it := range all[first:min(len(all), first+int(limit))] {
			one := *it
			one.Steps = clipAll(it.Steps, innerIterations)
			some = append(some, &one)
		}
		return map[string]any{"loop": step.Address, "count": len(all), "iterations": some}, nil
	})
}

// point is an iteration in a chart.
type point struct {
	Number     int                   `json:"number"`
	Status     progress.Status       `json:"status"`
	Score      *float64              `json:"score,omitempty"`
	Began      int64                 `json:"began_ns"`
	Ended      int64                 `json:"ended_ns"`
	RolledBack bool                  `json:"rolled_back,omitempty"`
	Record     *loop.IterationRecord `json:"record,omitempty"`
}

// scores sends all iterations of a loop, without their steps.
func (s *Server) scores(w http.ResponseWriter, r *http.Request) error {
	return s.withLoop(w, r, func(step *progress.Step, _ url.Values) (any, error) {
		all := []point{}
		for _, it := range step.Loop.Iterations {
			p := point{Number: it.Number, Status: it.Status, Began: int64(it.Began), Ended: int64(it.Ended),
				RolledBack: it.RolledBack, Record: it.Record, Score: it.Provisional}
			if it.Record != nil {
				p.Score = it.Record.Score
			}
			all = append(all, p)
		}
		return map[string]any{"loop": step.Address, "plan": step.Loop.Plan, "points": all}, nil
	})
}

// withLoop answers with the value that tell returns for a loop: the one that the query names, or the one to show first.
func (s *Server) withLoop(w http.ResponseWriter, r *http.Request, tell func(*progress.Step, url.Values) (any, error)) error {
	return s.withFeed(w, r, func(f *feed) (any, error) {
		step, err := loopOf(f.live.Tree(), r.URL.Query())
		if err != nil {
			return nil, err
		}
		return tell(step, r.URL.Query())
	})
}

// loopOf returns the loop that the query names, or the one to show first.
func loopOf(t *progress.Tree, q url.Values) (*progress.Step, error) {
	step := t.Main()
	if at := q.Get("loop"); at != "" {
		step = t.Find(session.Address(at))
	}
	if step == nil || step.Loop == nil {
		return nil, problem.New(http.StatusNotFound, "loop_not_found", "The run has no such loop", "%s", q.Get("loop"))
	}
	return step, nil
}

// runDefinition sends the text of the definition in a run's log, with the input and the state that the run began with.
func (s *Server) runDefinition(w http.ResponseWriter, r *http.Request) error {
	started, err := s.runs.Started(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	p, err := program.Decode(started)
	if err != nil {
		return problem.New(http.StatusNotFound, "no_definition", "The run has no definition", "%v", err)
	}
	log, err := s.runs.Brief(r.Context(), r.PathValue("id"), 0)
	if err != nil {
		return err
	}
	first, values := new(session.Event), map[string]any{}
	if log.Log().Len() > 0 {
		first = log.Log().At(0)
	}
	for key, v := range first.Actions.StateDelta {
		if !strings.HasPrefix(key, mark.KeyPrefix) {
			values[key] = v
		}
	}
	return s.SendMasked(w, http.StatusOK, map[string]any{
		"name": started.Name, "path": p.Path, "text": p.Files[p.Path], "model": p.Model,
		"input": first.Text(), "state": values,
	})
}

// startRun starts a run and answers with its row: with status 201, or with 200 if the same Idempotency-Key has started the run
// before.
func (s *Server) startRun(w http.ResponseWriter, r *http.Request) error {
	body, err := s.Body(w, r, "application/json")
	if err != nil {
		return err
	}
	var req operations.StartRequest
	if err := wire.Decode(body, &req); err != nil {
		return err
	}
	return s.DoOnce(w, r, body, func() (int, any, error) {
		again, err := s.runs.Start(r.Context(), &req, r.Header.Get("Idempotency-Key"), body)
		if err != nil {
			return 0, nil, err
		}
		status := http.StatusCreated
		if again {
			w.Header().Set("Idempotent-Replayed", "true")
			status = http.StatusOK
		}
		row, err := s.runs.Row(r.Context(), req.ID)
		w.Header().Set("Location", s.cfg.BasePath+"/api/v1/runs/"+url.PathEscape(req.ID))
		return status, row, err
	})
}

// acts decodes the JSON body into req, calls do for the run, and answers with the row of the run. An empty body leaves req
// unchanged. It calls do once for each Idempotency-Key, and lets it finish even if the client leaves.
func (s *Server) acts(w http.ResponseWriter, r *http.Request, status int, req any, do func(ctx context.Context, id string) error) error {
	body, err := s.Body(w, r, "application/json")
	if err != nil {
		return err
	}
	if len(body) > 0 {
		if err := wire.Decode(body, req); err != nil {
			return err
		}
	}
	ctx := context.WithoutCancel(r.Context())
	return s.DoOnce(w, r, body, func() (int, any, error) {
		id := r.PathValue("id")
		if err := do(ctx, id); err != nil {
			return 0, nil, problem.NoRun(id, err)
		}
		row, err := s.runs.Row(ctx, r.PathValue("id")) // not id, because fork sets the path value to the new run
		return status, row, err
	})
}

// pause asks the run to pause at its next step boundary. If now is true, it cuts off the running steps.
func (s *Server) pause(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		Reason string `json:"reason"`
		By     string `json:"by"`
		Now    bool   `json:"now"`
	}
	return s.acts(w, r, http.StatusAccepted, &req, func(ctx context.Context, id string) error {
		return s.runs.Pause(operations.Claimed(ctx, req.By), id, req.Reason, req.Now)
	})
}

// hint gives the run a text for its next iteration.
func (s *Server) hint(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		Text string `json:"text"`
		By   string `json:"by"`
	}
	return s.acts(w, r, http.StatusAccepted, &req, func(ctx context.Context, id string) error {
		_, err := s.runs.Tell(operations.Claimed(ctx, req.By), id, req.Text)
		return err
	})
}

// cancel ends the run at once.
func (s *Server) cancel(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		Reason string `json:"reason"`
	}
	return s.acts(w, r, http.StatusAccepted, &req, func(ctx context.Context, id string) error {
		return s.runs.Cancel(ctx, id, req.Reason)
	})
}

func (s *Server) resume(w http.ResponseWriter, r *http.Request) error {
	var req operations.ResumeRequest
	return s.acts(w, r, http.StatusAccepted, &req, func(ctx context.Context, id string) error { return s.runs.Resume(ctx, id, &req) })
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) error {
	var req operations.AnswerRequest
	return s.acts(w, r, http.StatusOK, &req, func(ctx context.Context, id string) error { return s.runs.Answer(ctx, id, &req) })
}

// fork copies the beginning of a run into a new run, and answers with the new run.
func (s *Server) fork(w http.ResponseWriter, r *http.Request) error {
	var req operations.ForkRequest
	return s.acts(w, r, http.StatusCreated, &req, func(ctx context.Context, id string) error {
		forked, err := s.runs.Fork(ctx, id, &req)
		if err != nil {
			return err
		}
		r.SetPathValue("id", forked)
		w.Header().Set("Location", s.cfg.BasePath+"/api/v1/runs/"+url.PathEscape(forked))
		return nil
	})
}

// seqAt returns the sequence number of the last event of a place in a run. A place is iteration/5, seq/117, end, or "", which
// is the end too. An iteration is one of the loop at the address at; "" means the loop to show first.
func seqAt(run *runlog.Run, place, at string) (int64, error) {
	kind, text, _ := strings.Cut(place, "/")
	if place == "" || place == "end" {
		return run.Last().Seq, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil || n < 0:
	case kind == "seq":
		return n, nil
	case kind == "iteration":
		if at == "" {
			if main := progress.TreeOf(progress.LastRun(run.Log())).Main(); main != nil {
				at = string(main.Address)
			}
		}
		if seq := progress.IterationSeq(run.Current(), session.Address(at), int(n)); seq > 0 {
			return seq, nil
		}
		return 0, problem.New(http.StatusNotFound, "iteration_not_found", "The loop has no such iteration", "%d", n)
	}
	return 0, problem.Bad("%q is not a place in a run: write iteration/5, seq/117 or end", place)
}

// state sends the state of the run at a place: see seqAt.
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

// diff sends what changed in the state between two places: see seqAt.
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

// export sends the whole log with its hashes, as refrain export writes it, but masks keys and passwords. If it has masked any,
// the file says so, because its hashes are then not those of the run.
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
