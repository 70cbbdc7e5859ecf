// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"cmp"
	"errors"
	"net/http"
	"strings"

	"github.com/refrain-dev/refrain/internal/eval"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/web/wire"
	"github.com/refrain-dev/refrain/session"
)

// mostEvals is how many of the newest evals are listed.
const mostEvals = 100

// listEvals lists the newest evals of the store.
func (s *Server) listEvals(w http.ResponseWriter, r *http.Request) error {
	rows, err := eval.List(r.Context(), eval.ConfigOf(s.runs), mostEvals)
	if err != nil {
		return err
	}
	return s.SendMasked(w, http.StatusOK, map[string]any{"evals": append([]eval.Row{}, rows...)})
}

// getEval sends the report of an eval, as refrain eval show --json prints it.
func (s *Server) getEval(w http.ResponseWriter, r *http.Request) error {
	cfg := eval.ConfigOf(s.runs)
	rec, err := eval.Read(r.Context(), cfg.Service, cfg.AppName, cfg.UserID, r.PathValue("id"))
	if errors.Is(err, eval.ErrNotFound) {
		return problem.New(http.StatusNotFound, "eval_not_found", "There is no such eval", "%v", err)
	}
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := rec.Report().Summary().WriteJSON(&text); err != nil {
		return err
	}
	wire.SendText(w, http.StatusOK, []byte(credential.Masked(text.String())))
	return nil
}

// makeCase makes a case of a run, in a file of cases of the folder.
func (s *Server) makeCase(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		File string `json:"file"`
	}
	body, err := s.Body(w, r, "application/json")
	if err == nil && len(body) > 0 {
		err = wire.Decode(body, &req)
	}
	if err != nil {
		return err
	}
	file := cmp.Or(req.File, "cases.yaml")
	dir, name, below := strings.Cut(file, "/")
	if operations.CheckName(dir) != nil || below && operations.CheckName(name) != nil {
		return problem.Bad("%q cannot be a file of cases: give a name such as cases.yaml, or support/cases.yaml", file)
	}
	return s.DoOnce(w, r, body, func() (int, any, error) {
		one, err := s.runs.Session(r.Context(), r.PathValue("id"))
		if err != nil {
			return 0, nil, err
		}
		c, err := eval.CaseOf(session.ViewOf(one), &s.runs.Code)
		if err != nil {
			return 0, nil, problem.New(http.StatusConflict, "no_case", "The run cannot be a case", "%v", err)
		}
		err = s.runs.Change(r.Context(), operations.WriteCases, func() (string, error) {
			s.runs.Folder.Changing.Lock()
			defer s.runs.Folder.Changing.Unlock()
			text, err := eval.Extend(s.runs.Folder.FS(), file, "", c)
			if err != nil {
				return "", problem.New(http.StatusUnprocessableEntity, "bad_cases", "The case cannot be added", "%v", err)
			}
			return file, s.runs.Folder.Write(file, text)
		})
		return http.StatusCreated, map[string]string{"file": file, "case": c.ID}, err
	})
}
