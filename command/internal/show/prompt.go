// SPDX-License-Identifier: Apache-2.0

package show

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/runs/prompt"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session"
)

// promptOf returns the request that a step sent to its model. word is the address of the step, or its name; a name means the
// step in iteration n, or in the last iteration that has the step if n is 0.
func (s *Shown) promptOf(ctx context.Context, code program.Code, run *runstore.Run, word string, n int) (session.Address,
	*prompt.Request, error) {
	at := session.Address(word)
	if !strings.ContainsAny(word, "[/") {
		of := s
		if n > 0 && s.main != nil && s.main.Loop.Left() > 0 {
			var err error
			if of, err = Of(ctx, run, runlog.ReportOptions{Most: mostSteps, Keep: passOf(s.main, n)}); err != nil {
				return "", nil, err
			}
			of.main = of.Tree.Find(s.main.Address)
		}
		var err error
		if at, err = of.stepNamed(word, n); err != nil {
			return "", nil, term.UsageError(err)
		}
	}
	req, err := prompt.Of(ctx, code, run.Run, at, 0)
	if errors.Is(err, prompt.ErrNotAsked) {
		return "", nil, term.UsageError(fmt.Errorf("%s: %w", at, err))
	}
	return at, req, err
}

// stepNamed returns the address of a step by its name: a step of the chosen loop, its finalizer, or a step outside of loops.
func (s *Shown) stepNamed(name string, n int) (session.Address, error) {
	var names []string
	var found session.Address
	see := func(step *progress.Step) {
		if step.Status == progress.StatusPending || step.Address == "" {
			return
		}
		if names = append(names, step.Name); step.Name == name {
			found = step.Address
		}
	}
	var visit func(step *progress.Step)
	visit = func(step *progress.Step) {
		see(step)
		for _, c := range step.Steps {
			visit(c)
		}
	}
	if s.main == nil {
		visit(s.Tree.Root)
	} else {
		for _, it := range s.main.Loop.Iterations {
			if n == 0 || it.Number == n {
				for _, step := range it.Steps {
					visit(step)
				}
			}
		}
		if final := s.main.Loop.Finalizer; final != nil {
			visit(final)
		}
	}
	if found != "" {
		return found, nil
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return "", fmt.Errorf("no step that has run is called %q (%s)", name, term.Meant(name, names))
}

// printPrompt writes the request that a step sent to its model.
func printPrompt(w io.Writer, at session.Address, req *prompt.Request) {
	fmt.Fprintf(w, "%s, request %d of %d, rebuilt from the log\n", brief.Clean(string(at)), req.Number, req.Count)
	for _, m := range req.Missing {
		switch m {
		case prompt.MissingTools:
			fmt.Fprintln(w, "The tools of tool servers are not in the log, so they are missing.")
		case prompt.MissingCallbacks:
			fmt.Fprintln(w, "The step has callbacks, which may have changed the request.")
		}
	}
	part := func(title, text string) {
		fmt.Fprintf(w, "\n%s:\n", brief.Clean(title))
		term.Indented(w, text, "  ")
	}
	if req.System != "" {
		part("system", req.System)
	}
	for _, m := range req.Messages {
		part(m.Role, m.Text)
	}
	for _, t := range req.Tools {
		part("tool "+t.Name, t.Description)
	}
	if req.Settings != nil {
		part("settings", string(req.Settings))
	}
}
