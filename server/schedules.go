// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/runs/schedule"
	"github.com/refrain-dev/refrain/internal/runs/scheduler"
)

// listSchedules lists the schedules of the last valid file, and what is wrong with the present one. A server without schedules has none.
func (s *Server) listSchedules(w http.ResponseWriter, r *http.Request) error {
	all, problems := s.schedules()
	list, wrong := []*scheduler.Status{}, []string{}
	for _, p := range problems {
		wrong = append(wrong, p.Error())
	}
	for _, one := range all {
		st, err := s.timer.Status(r.Context(), one, time.Now())
		if err != nil {
			return err
		}
		list = append(list, st)
	}
	return s.Send(w, http.StatusOK, map[string]any{"schedules": list, "problems": wrong})
}

// schedules returns the schedules of the last valid file, and the problems of the present one.
func (s *Server) schedules() ([]*schedule.Schedule, definition.Problems) {
	if !s.cfg.Schedules {
		return nil, nil
	}
	return s.timer.Schedules()
}

func (s *Server) pauseSchedule(w http.ResponseWriter, r *http.Request) error {
	return s.changeSchedule(w, r, "pause schedule", func(ctx context.Context, name string) (bool, error) {
		by := s.cfg.Owner
		if c := operations.CallerOf(ctx); c != nil {
			by = c.Name
		}
		return s.timer.Pause(ctx, name, by, time.Now())
	})
}

func (s *Server) continueSchedule(w http.ResponseWriter, r *http.Request) error {
	return s.changeSchedule(w, r, "continue schedule", func(ctx context.Context, name string) (bool, error) {
		return s.timer.Continue(ctx, name, time.Now())
	})
}

// changeSchedule changes a schedule for all servers of the store, and answers with its status.
func (s *Server) changeSchedule(w http.ResponseWriter, r *http.Request, verb string, change func(ctx context.Context, name string) (bool, error)) error {
	name := r.PathValue("id")
	all, _ := s.schedules()
	i := slices.IndexFunc(all, func(one *schedule.Schedule) bool { return one.Name == name })
	if i < 0 {
		return problem.New(http.StatusNotFound, "schedule_not_found", "There is no such schedule", "no schedule %s", schedule.Missing(name, all))
	}
	err := s.runs.Change(r.Context(), verb, func() (string, error) {
		_, err := change(r.Context(), name)
		return name, err
	})
	if err != nil {
		return err
	}
	st, err := s.timer.Status(r.Context(), all[i], time.Now())
	if err != nil {
		return err
	}
	return s.Send(w, http.StatusOK, st)
}
