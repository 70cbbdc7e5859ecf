// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/refrain-dev/refrain/operations/problem"
	"github.com/refrain-dev/refrain/prompt"
	"github.com/refrain-dev/refrain/session"
)

// promptTime is how long it may take to rebuild a request, and promptMost how many are rebuilt at once.
const (
	promptTime = 20 * time.Second
	promptMost = 2
)

var errPromptTime = errors.New("it takes too long")

// prompt is what a step has sent to its model: the last request, or the one that the query names.
func (s *Server) prompt(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	at := session.Address(q.Get("address"))
	if at == "" {
		return problem.Bad("give the address of a step")
	}
	n, err := number(q, "request", 0, 0, 1<<30)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), promptTime, errPromptTime)
	defer cancel()
	leave, err := turn(ctx, s.prompts)
	if err != nil {
		return notRebuilt(err)
	}
	defer leave()
	run, err := s.runs.ReadLog(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	asked, err := prompt.Of(ctx, s.cfg.Code, run, at, int(n))
	_, not := errors.AsType[*prompt.NotRebuiltError](err)
	switch {
	case errors.Is(err, prompt.ErrNotAsked):
		return problem.New(http.StatusNotFound, "not_asked", "The step has asked no model", "%s", at)
	case not, errors.Is(err, errPromptTime):
		return notRebuilt(err)
	case err != nil:
		return err
	}
	return s.SendMasked(w, http.StatusOK, asked)
}

func notRebuilt(err error) error {
	return problem.New(http.StatusUnprocessableEntity, "not_rebuilt", "The request cannot be rebuilt from the log", "%v", err)
}
