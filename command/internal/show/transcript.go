// SPDX-License-Identifier: Apache-2.0

package show

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session"
)

// Transcripts prints the transcripts of the coding agents of a run, in the order in which they were stored. steps are names or
// addresses of steps, or numbers of iterations; none means all.
func Transcripts(ctx context.Context, e *term.Env, store, word string, steps []string) error {
	s, id, err := runstore.OpenStock(ctx, e, store, word)
	if err != nil {
		return err
	}
	defer s.Close()
	all, err := runlog.TranscriptStore{Artifacts: s.Files, AppName: runstore.AppName, UserID: runstore.UserName,
		View: func(ctx context.Context, id string) (*session.View, error) {
			view, _, err := s.View(ctx, id)
			return view, err
		}}.Of(ctx, id)
	if err != nil {
		return term.Failure(fmt.Errorf("read the transcripts of run %s: %w", id, err))
	}
	if len(all) == 0 {
		return term.UsageError(fmt.Errorf("run %s has no transcript: only steps with cli or acp have one, and an export of a run has none", id))
	}
	var known []string
	for _, t := range all {
		known = append(known, t.Step)
	}
	for _, step := range steps {
		if !slices.ContainsFunc(all, func(t runlog.Transcript) bool { return names(t.Step, step) }) {
			return term.UsageError(fmt.Errorf("run %s has no transcript of %q (%s)", id, step, term.Meant(step, slices.Compact(known))))
		}
	}
	for _, t := range all {
		if len(steps) > 0 && !slices.ContainsFunc(steps, func(step string) bool { return names(t.Step, step) }) {
			continue
		}
		if _, err := fmt.Fprintf(e.Stdout, "== %s, until %s\n\n%s\n\n", brief.Clean(t.Step), t.At.Local().Format(time.DateTime), credential.Masked(brief.CleanText(t.Text))); err != nil {
			return term.Failure(fmt.Errorf("write the transcript: %w", err))
		}
	}
	return nil
}

// names reports whether a word names the step with this address: its name, its address, or the number of an iteration around it.
func names(step, word string) bool {
	dotted := strings.ReplaceAll(word, "/", ".")
	return step == dotted || strings.HasSuffix(step, "."+dotted) || strings.Contains(step, "["+word+"]")
}
