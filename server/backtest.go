// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/operations/problem"
	"github.com/refrain-dev/refrain/progress/backtest"
	"github.com/refrain-dev/refrain/runlog"
)

// backtestMost is how many runs are replayed at once.
const backtestMost = 200

// backtest replays runs under another stop policy, or over all values of one field of their plans.
// Nothing runs and no model is asked.
func (s *Server) backtest(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		// Runs are IDs, Loop is the address of the loop; the last outermost one if it is empty.
		Runs []string `json:"runs"`
		Loop string   `json:"loop"`
		// Set has fields of the plan, such as score.target, with their values; null removes one.
		Set map[string]json.RawMessage `json:"set"`
		// Sweep is a field of the plan to move: see backtest.SweepFields.
		Sweep string `json:"sweep"`
	}
	if err := s.Read(w, r, &req); err != nil {
		return err
	}
	switch {
	case len(req.Runs) == 0 || len(req.Runs) > backtestMost:
		return problem.Bad("give 1 to %d runs", backtestMost)
	case (len(req.Set) == 0) == (req.Sweep == ""):
		return problem.Bad("give either set or sweep; sweep is one of %s", strings.Join(backtest.SweepFields(), ", "))
	}
	var recs []*backtest.Recording
	for _, id := range req.Runs {
		_, rec, err := s.recording(r.Context(), id, req.Loop)
		if err != nil {
			return err
		}
		if rec == nil {
			return problem.New(http.StatusNotFound, "loop_not_found", "The run has no such loop", "run %s, loop %q", id, req.Loop)
		}
		recs = append(recs, rec)
	}
	if req.Sweep != "" {
		sweep, err := backtest.NewSweep(recs, req.Sweep)
		if err != nil {
			return problem.Bad("sweep: %v", err)
		}
		return s.Send(w, http.StatusOK, map[string]any{"runs": req.Runs, "sweep": sweep})
	}
	change := func(p *loop.Plan) (*loop.Plan, error) {
		for _, path := range slices.Sorted(maps.Keys(req.Set)) {
			text := string(req.Set[path])
			var word string
			if json.Unmarshal(req.Set[path], &word) == nil && text != "null" {
				text = word
			}
			var err error
			if p, err = p.With(strings.TrimPrefix(path, "plan."), text); err != nil {
				return nil, err
			}
		}
		return p, nil
	}
	if _, err := change(recs[0].Plan); err != nil {
		return problem.Bad("set: %v", err)
	}
	balance, trials := backtest.Run(recs, change)
	return s.Send(w, http.StatusOK, map[string]any{"runs": req.Runs, "balance": balance, "trials": trials})
}

// recording reads the log of a run, and the loop at an address in it; nil if there is none.
func (s *Server) recording(ctx context.Context, id, loop string) (*runlog.Run, *backtest.Recording, error) {
	run, err := runlog.Read(ctx, s.runs.Service, s.runs.Key(id))
	if err != nil {
		return nil, nil, fmt.Errorf("run %s: %w", id, err)
	}
	all, err := backtest.Recordings(slices.Collect(run.Wholes.All(run.Events)))
	if err == nil {
		err = run.Wholes.Err
	}
	return run, chosen(all, loop), err
}

// chosen is the loop at an address, or the last outermost one; nil if there is none.
func chosen(all []*backtest.Recording, address string) (found *backtest.Recording) {
	for _, rec := range all {
		if string(rec.Loop) == address || address == "" && !strings.Contains(string(rec.Loop), "[") {
			found = rec
		}
	}
	return found
}
