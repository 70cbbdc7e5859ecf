// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/internal/brief"
	"github.com/refrain-dev/refrain/operations"
	"github.com/refrain-dev/refrain/operations/problem"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/rehearsal"
	"github.com/refrain-dev/refrain/server/internal/runpage"
	"github.com/refrain-dev/refrain/server/internal/wire"
	"github.com/refrain-dev/refrain/session"
)

// Bounds of a try: the text, the time, how many there are at once, and what is told of the answer, in
// characters.
const (
	tryText   = 64 << 10
	tryTime   = 15 * time.Second
	tryMost   = 2
	tryAnswer = 20_000
)

// triedLoop is a loop as a chart and a ledger show it, with how it went.
type triedLoop struct {
	rehearsal.TriedLoop
	Shown runpage.Loop `json:"shown"`
	// Ended says that something ends it; the words of Shown say what.
	Ended      bool `json:"ended"`
	Iterations int  `json:"iterations"`
}

// try plays a definition without a model: a script answers for models, programs, servers and people,
// so that nothing leaves the process. Nothing of it is kept.
func (s *Server) try(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		Text   string           `json:"text"`
		Course rehearsal.Course `json:"course"`
		Input  string           `json:"input"`
		State  map[string]any   `json:"state"`
	}
	if err := s.Read(w, r, &req); err != nil {
		return err
	}
	switch {
	case req.Course != "" && !slices.Contains(rehearsal.Courses(), req.Course):
		return problem.Bad("course %q: use one of %q", req.Course, rehearsal.Courses())
	case len(req.Text) > tryText:
		return problem.New(http.StatusRequestEntityTooLarge, "too_large", "The definition is too large to be tried",
			"it has %d bytes, and the limit is %d", len(req.Text), tryText)
	}
	leave, err := enter(s.tries, problem.New(http.StatusTooManyRequests, "busy", "Others are trying something", "try again soon").
		With("Retry-After", "2"))
	if err != nil {
		return err
	}
	defer leave()
	_, def, err := operations.Load(s.runs.Folder.Parts(), "definition.yaml", []byte(req.Text))
	if err != nil {
		return err
	}
	values, err := operations.AsTexts(req.State)
	if err != nil {
		return err
	}
	if req.Input == "" {
		req.Input = def.Query
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), tryTime, errTryTime)
	defer cancel()
	tried, err := rehearsal.Try(ctx, def, rehearsal.TryConfig{Course: req.Course, Input: req.Input, Values: values})
	switch {
	case errors.Is(err, errTryTime):
		return problem.New(http.StatusUnprocessableEntity, "try_too_long", "The try takes too long",
			"it was ended after %s", tryTime)
	case err != nil:
		return operations.CannotBuild(err)
	}
	out := struct {
		*rehearsal.Tried
		Loops []triedLoop `json:"loops"`
	}{tried, []triedLoop{}}
	tried.Answer, tried.Error = brief.Clip(tried.Answer, tryAnswer), brief.Clip(tried.Error, tryAnswer)
	lang := wire.LanguageOf(r)
	for _, l := range tried.Loops {
		step := &progress.Step{Name: l.Name, Address: session.Address(l.Name), Status: progress.StatusCompleted, Loop: l.Loop}
		one := triedLoop{TriedLoop: l, Ended: l.Loop.Stop != nil, Iterations: len(l.Loop.Iterations)}
		one.Shown = runpage.LoopOf(step, &progress.Tree{Root: step, Now: l.Elapsed}, lang)
		if one.Ended {
			one.Iterations = l.Loop.Stop.Iteration
		}
		out.Loops = append(out.Loops, one)
	}
	return s.SendMasked(w, http.StatusOK, out)
}

var errTryTime = errors.New("the time of the try is over")
