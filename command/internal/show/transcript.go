// SPDX-License-Identifier: Apache-2.0

package show

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// transcript is what a coding agent has said and done in one attempt of a step.
type transcript struct {
	step string // its address, with dots
	text string
	at   time.Time
}

// Transcripts prints the transcripts of the coding agents of a run, in the order in which their steps have ended. steps are names or
// addresses of steps, or numbers of iterations; none means all.
func Transcripts(ctx context.Context, e *term.Env, store, word string, steps []string) error {
	s, id, err := runstore.OpenStock(ctx, e, store, word)
	if err != nil {
		return err
	}
	defer s.Close()
	all, err := transcriptsOf(ctx, s.Files, id)
	if err != nil {
		return term.Failure(fmt.Errorf("read the transcripts of run %s: %w", id, err))
	}
	if len(all) == 0 {
		return term.UsageError(fmt.Errorf("run %s has no transcript: only steps with cli or acp that have ended have one", id))
	}
	var names []string
	for _, t := range all {
		names = append(names, t.step)
	}
	for _, step := range steps {
		if !slices.ContainsFunc(all, func(t transcript) bool { return t.of(step) }) {
			return term.UsageError(fmt.Errorf("run %s has no transcript of %q (%s)", id, step, term.Meant(step, slices.Compact(names))))
		}
	}
	for _, t := range all {
		if len(steps) > 0 && !slices.ContainsFunc(steps, t.of) {
			continue
		}
		if _, err := fmt.Fprintf(e.Stdout, "== %s, until %s\n\n%s\n\n", brief.Clean(t.step), t.at.Local().Format(time.DateTime), brief.CleanText(t.text)); err != nil {
			return term.Failure(fmt.Errorf("write the transcript: %w", err))
		}
	}
	return nil
}

// transcriptsOf reads all transcripts of a run.
func transcriptsOf(ctx context.Context, files artifact.Service, run string) (all []transcript, err error) {
	listed, err := files.List(ctx, &artifact.ListRequest{AppName: runstore.AppName, UserID: runstore.UserName, SessionID: run})
	if err != nil {
		return nil, err
	}
	for _, name := range listed.FileNames {
		step, is := strings.CutPrefix(name, taskagent.TranscriptPrefix)
		if !is {
			continue
		}
		versions, err := files.Versions(ctx, &artifact.VersionsRequest{AppName: runstore.AppName, UserID: runstore.UserName, SessionID: run, FileName: name})
		if errors.Is(err, artifact.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, n := range versions.Versions {
			got, err := files.Load(ctx, &artifact.LoadRequest{AppName: runstore.AppName, UserID: runstore.UserName, SessionID: run, FileName: name, Version: n})
			if err != nil {
				return nil, err
			}
			about, err := files.GetArtifactVersion(ctx, &artifact.GetArtifactVersionRequest{AppName: runstore.AppName, UserID: runstore.UserName,
				SessionID: run, FileName: name, Version: n})
			if err != nil {
				return nil, err
			}
			all = append(all, transcript{step, got.Part.Text, about.ArtifactVersion.CreateTime})
		}
	}
	slices.SortStableFunc(all, func(a, b transcript) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.step, b.step)) })
	return all, nil
}

// of reports whether a word names the step: its name, its address, or the number of an iteration around it.
func (t transcript) of(word string) bool {
	dotted := strings.ReplaceAll(word, "/", ".")
	return t.step == dotted || strings.HasSuffix(t.step, "."+dotted) || strings.Contains(t.step, "["+word+"]")
}
