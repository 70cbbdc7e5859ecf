// SPDX-License-Identifier: Apache-2.0

package runlog

import (
	"cmp"
	"context"
	"time"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/progress/prose"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
)

// Report is the detailed status of a run: its times, usage, questions, answer, loops and steps.
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
	// Acts say who has done what to the run.
	Acts []progress.Act `json:"acts,omitempty"`
	Tree *progress.Tree `json:"tree,omitempty"`
	// Loops is the status of the outermost loops, and of the running loops in them: see [prose.Outlooks].
	Loops []prose.Outlook `json:"loops,omitempty"`

	// Summary is the summary of the run's events.
	Summary *progress.Summary `json:"-"`
	// Used is the resources that the run has used, without its times.
	Used progress.Resources `json:"-"`
}

// ReportOptions is the options of [Run.Report].
type ReportOptions struct {
	// Pass is the address of an iteration of a loop, such as refine[3]. The report has all texts of this iteration.
	// Empty means no iteration.
	Pass session.Address
	// Most, Keep and Drop are the fields of [progress.Live] with these names. Keep defaults to Pass.
	Most int
	Keep session.Address
	Drop func(loop *progress.Step, it *progress.Iteration)
}

// Report computes the report of the last run in one pass over the log. It has the complete texts of recent events only. For
// dead see [Run.Status].
func (r *Run) Report(ctx context.Context, opts ReportOptions, dead func(string) bool) (*Report, error) {
	live := progress.Live{Whole: r.Wholes.Of, Most: opts.Most, Keep: cmp.Or(opts.Keep, opts.Pass), Drop: opts.Drop}
	sees := prose.Watch{Fold: progress.Fold{Whole: r.Wholes.Of}}
	gone := r.superseded()
	var acts progress.Acts
	sum := progress.SummarizeAll(func(yield func(*session.Event) bool) {
		for ev := range Recent(r.newest(), r.Wholes.Of) {
			if opts.Pass != "" && ev.Address.Under(opts.Pass) {
				ev = r.Wholes.Of(ev)
			}
			acts.Add(ev)
			counts := !gone.Has(ev.Seq)
			if live.AddOnce(ev, counts); !counts {
				continue
			}
			sees.Add(ev)
			if !yield(ev) {
				return
			}
		}
	})
	s := Tell(r.ID, sum, &live, &sees)
	s.Acts = acts.All()
	var held *lease.HeldError
	var err error
	s.Status, held, err = r.Status(ctx, s.Summary.Status, dead)
	if held != nil {
		s.DrivenBy = held.Owner
	}
	return s, cmp.Or(err, r.Err())
}

// Tell returns the report of a run from its summary and the folds of its events. Its status is the status in the log.
func Tell(id string, sum *progress.Summary, live *progress.Live, sees *prose.Watch) *Report {
	s := &Report{
		Run: id, Status: string(sum.Status), Name: sum.Name, Started: sum.Began, Updated: sum.Updated, Error: sum.Error, Paused: sum.Paused,
		Waits: sum.Waits, Parent: sum.Parent, Driver: sum.Driver,
		Answer: sees.Fold.Answer(), Stops: sees.Fold.Stops(), Findings: sees.Diagnosis.Findings(), Tree: live.Tree(),
		Summary: sum, Used: sees.Resources,
	}
	s.Seconds, s.Loops = s.Tree.Active().Seconds(), prose.Outlooks(s.Tree, prose.English)
	if s.Tree.Root != nil {
		if u := s.Tree.Root.Usage(); u.Calls > 0 {
			s.Usage = &u
		}
	}
	return s
}
