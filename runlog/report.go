// SPDX-License-Identifier: Apache-2.0

package runlog

import (
	"cmp"
	"context"
	"time"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/progress/prose"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
)

// Report is what there is to tell of a run.
type Report struct {
	Run      string    `json:"run"`
	Name     string    `json:"name,omitempty"`
	Status   string    `json:"status"`
	DrivenBy string    `json:"driven_by,omitempty"`
	Driver   string    `json:"driver,omitempty"` // see [mark.Run]
	Started  time.Time `json:"started,omitzero"`
	Updated  time.Time `json:"updated,omitzero"`
	// Seconds is the time in which the run was active.
	Seconds  float64            `json:"active_seconds"`
	Usage    *progress.Usage    `json:"usage,omitempty"`
	Parent   *mark.RunParent    `json:"parent,omitempty"`
	Error    string             `json:"error,omitempty"`
	Paused   string             `json:"paused,omitempty"`
	Waits    []mark.Question    `json:"waits,omitempty"`
	Answer   string             `json:"answer,omitempty"`
	Stops    []*loop.StopRecord `json:"stops,omitempty"`
	Findings []prose.Finding    `json:"findings,omitempty"`
	Tree     *progress.Tree     `json:"tree,omitempty"`
	// Loops says how the outermost loops and those that go on stand: see [prose.Outlooks].
	Loops []prose.Outlook `json:"loops,omitempty"`

	// Log are the events of the run, an outline, and Summary is what they come to.
	Log     []*session.Event  `json:"-"`
	Summary *progress.Summary `json:"-"`
}

// Report folds the run's events. Of what steps said it has what is recent, and all of one iteration
// of a loop, such as refine[3], if pass names one. dead is as in [Run.Standing].
func (r *Run) Report(ctx context.Context, pass session.Address, dead func(string) bool) (*Report, error) {
	live := progress.Live{Whole: r.Wholes.Of}
	sees := prose.Watch{Fold: progress.Fold{Whole: r.Wholes.Of}}
	last := progress.LastRun(r.Log())
	for ev := range r.Wholes.Recent(last) {
		if pass != "" && ev.Address.Under(pass) {
			ev = r.Wholes.Of(ev)
		}
		live.Add(ev)
	}
	for _, ev := range session.Current(last) {
		sees.Add(ev)
	}
	s := Tell(r.ID, progress.Summarize(last), &live, &sees)
	s.Log = last
	var held *lease.HeldError
	var err error
	s.Status, held, err = r.Standing(ctx, s.Summary.Status, dead)
	if held != nil {
		s.DrivenBy = held.Owner
	}
	return s, cmp.Or(err, r.Wholes.Err)
}

// Tell puts together what the folds of a run's events say. The status is that of the log.
func Tell(id string, sum *progress.Summary, live *progress.Live, sees *prose.Watch) *Report {
	s := &Report{
		Run: id, Status: string(sum.Status), Name: sum.Name, Started: sum.Began, Updated: sum.Updated, Error: sum.Error, Paused: sum.Paused,
		Waits: sum.Waits, Parent: sum.Parent, Driver: sum.Driver,
		Answer: sees.Fold.Answer(), Stops: sees.Fold.Stops(), Findings: sees.Diagnosis.Findings(), Tree: live.Tree(),
		Summary: sum,
	}
	s.Seconds, s.Loops = s.Tree.Active().Seconds(), prose.Outlooks(s.Tree, prose.English)
	if s.Tree.Root != nil {
		if u := s.Tree.Root.Usage(); u.Calls > 0 {
			s.Usage = &u
		}
	}
	return s
}
