// SPDX-License-Identifier: Apache-2.0

package runlog

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/session"
)

// Transcript is what a coding agent has said and done in one attempt of a step.
type Transcript struct {
	Step string // its address, with dots
	Text string
	At   time.Time // when it was stored
}

// TranscriptStore is where the transcripts of runs are.
type TranscriptStore struct {
	Artifacts       artifact.Service
	View            func(ctx context.Context, id string) (*session.View, error)
	AppName, UserID string
}

// Of reads the transcripts of a run, in the order in which they were stored. A fork has those of the run that it comes from, up to the
// checkpoint, as long as that run exists.
func (s TranscriptStore) Of(ctx context.Context, run string) (all []Transcript, err error) {
	for until := (time.Time{}); run != ""; {
		own, err := s.own(ctx, run, until)
		if err != nil {
			return nil, err
		}
		all = append(all, own...)
		view, err := s.View(ctx, run)
		if errors.Is(err, session.ErrNotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
		run, until = origin(view)
	}
	slices.SortStableFunc(all, func(a, b Transcript) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Step, b.Step)) })
	return all, nil
}

// origin returns the run that a fork comes from, and the time of the last event that both have; "" for another run.
func origin(view *session.View) (run string, until time.Time) {
	now := session.RunOf(view)
	if now == nil || now.Parent == nil {
		return "", until
	}
	for ev := range view.Log().Outline() {
		if ev.Seq > now.Parent.Seq {
			break
		}
		until = ev.Timestamp
	}
	return now.Parent.SessionID, until
}

// own reads the transcripts that a run itself has stored until a time; the zero time means all.
func (s TranscriptStore) own(ctx context.Context, run string, until time.Time) (all []Transcript, err error) {
	listed, err := s.Artifacts.List(ctx, &artifact.ListRequest{AppName: s.AppName, UserID: s.UserID, SessionID: run})
	if err != nil {
		return nil, err
	}
	for _, name := range listed.FileNames {
		step, is := strings.CutPrefix(name, taskagent.TranscriptPrefix)
		if !is {
			continue
		}
		versions, err := s.Artifacts.Versions(ctx, &artifact.VersionsRequest{AppName: s.AppName, UserID: s.UserID, SessionID: run, FileName: name})
		if errors.Is(err, artifact.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, n := range versions.Versions {
			about, err := s.Artifacts.GetArtifactVersion(ctx, &artifact.GetArtifactVersionRequest{AppName: s.AppName, UserID: s.UserID,
				SessionID: run, FileName: name, Version: n})
			if err != nil {
				return nil, err
			}
			at := about.ArtifactVersion.CreateTime
			if !until.IsZero() && at.After(until) {
				continue
			}
			got, err := s.Artifacts.Load(ctx, &artifact.LoadRequest{AppName: s.AppName, UserID: s.UserID, SessionID: run, FileName: name, Version: n})
			if err != nil {
				return nil, err
			}
			all = append(all, Transcript{step, got.Part.Text, at})
		}
	}
	return all, nil
}
