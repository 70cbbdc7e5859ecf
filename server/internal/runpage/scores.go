// SPDX-License-Identifier: Apache-2.0

package runpage

import (
	"cmp"
	"time"

	"github.com/refrain-dev/refrain/internal/brief"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/progress/prose"
	"github.com/refrain-dev/refrain/session"
)

// Loop is one loop: its scores and its ledger.
type Loop struct {
	Address session.Address `json:"address"`
	Label   string          `json:"label"`
	// Total is the number of its last iteration.
	Total         int           `json:"total"`
	MaxIterations int64         `json:"max_iterations,omitzero"`
	Target        *float64      `json:"target,omitzero"`
	Scored        bool          `json:"scored"`
	Judged        string        `json:"judged,omitzero"`
	Now           time.Duration `json:"now_ns"`
	// Points are the scores, thinned to at most 300; the extremes are kept.
	Points  []Point       `json:"points"`
	Plateau *Stretch      `json:"plateau,omitzero"`
	Outlook prose.Outlook `json:"outlook"`
	Stop    *Stop         `json:"stop,omitzero"`
}

// Stop is why a loop has stopped.
type Stop struct {
	Iteration int             `json:"iteration"`
	Reason    loop.StopReason `json:"reason"`
	// Kind is good, warn or bad.
	Kind string `json:"kind"`
}

// Stretch is from one iteration to another.
type Stretch struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// Point is the score of an iteration.
type Point struct {
	Number      int           `json:"number"`
	From        int           `json:"from,omitzero"`
	Score       *float64      `json:"score,omitzero"`
	Delta       *float64      `json:"delta,omitzero"`
	Noise       float64       `json:"noise,omitzero"`
	Best        bool          `json:"best,omitzero"`
	Undone      bool          `json:"undone,omitzero"`
	Rejected    bool          `json:"rejected,omitzero"`
	Provisional bool          `json:"provisional,omitzero"`
	Running     bool          `json:"running,omitzero"`
	Began       time.Duration `json:"began_ns"`
	Ended       time.Duration `json:"ended_ns"`
}

// mostPoints is as many as a chart can show.
const mostPoints = 300

// LoopOf is the loop of a step of a run's tree, in a language.
func LoopOf(s *progress.Step, t *progress.Tree, lang prose.Language) Loop {
	lp := s.Loop
	l := Loop{Address: s.Address, Label: s.Name, Now: t.Now, MaxIterations: int64(lp.Plan.MaxIterations), Outlook: prose.OutlookOf(t, s, lang), Points: []Point{}}
	words := &l.Outlook.Words
	words.Lead, words.Rest = brief.Clean(words.Lead), brief.Clean(words.Rest)
	if cur := lp.Current(); cur != nil {
		l.Total = cur.Number
	}
	if score := lp.Plan.Score; score != nil {
		l.Scored, l.Judged, l.Target = true, cmp.Or(score.Key, score.Expr), score.Target
	}
	l.Points = thin(points(lp))
	if st := lp.Stop; st != nil {
		l.Stop = &Stop{Iteration: st.Iteration, Reason: st.Reason, Kind: kindOf(st.Reason)}
	}
	if say := l.Outlook.Sentence; l.Stop == nil && say.Trend == loop.Plateau && say.Since > 0 && say.Since < l.Total {
		l.Plateau = &Stretch{say.Since, l.Total}
	}
	return l
}

func kindOf(r loop.StopReason) string {
	switch {
	case r.Failed():
		return "bad"
	case r.Limit(), r == loop.ReasonCanceled, r == loop.ReasonImpossible, r == loop.ReasonBlocked:
		return "warn"
	}
	return "good"
}

func points(l *progress.Loop) []Point {
	out, best := make([]Point, 0, len(l.Iterations)), l.Best()
	for _, it := range l.Iterations {
		pt := Point{
			Number: it.Number, From: it.From, Undone: it.RolledBack, Began: it.Began, Ended: it.Ended,
			Running: it.Status == progress.StatusRunning, Best: it == best,
		}
		if rec := it.Record; rec != nil {
			pt.Score, pt.Delta, pt.Noise, pt.Rejected = rec.Score, rec.Delta, rec.Noise, rec.Rejected != ""
		} else if it.Provisional != nil {
			pt.Score, pt.Provisional = it.Provisional, true
		}
		out = append(out, pt)
	}
	return out
}

// thin leaves as many points as a chart can show: of each stretch the lowest and the highest, and
// all that are special.
func thin(points []Point) []Point {
	if len(points) <= mostPoints {
		return points
	}
	keep := make([]bool, len(points))
	keep[0], keep[len(points)-1] = true, true
	stretch := (2*len(points) + mostPoints - 1) / mostPoints
	for from := 0; from < len(points); from += stretch {
		low, high := -1, -1
		for i := from; i < min(from+stretch, len(points)); i++ {
			p := &points[i]
			if p.Best || p.Provisional || p.Running {
				keep[i] = true
			}
			if p.Score == nil {
				continue
			}
			if low < 0 || *p.Score < *points[low].Score {
				low = i
			}
			if high < 0 || *p.Score > *points[high].Score {
				high = i
			}
		}
		for _, i := range []int{low, high} {
			if i >= 0 {
				keep[i] = true
			}
		}
	}
	out := make([]Point, 0, mostPoints+8)
	for i, k := range keep {
		if k {
			out = append(out, points[i])
		}
	}
	return out
}
