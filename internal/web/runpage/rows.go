// SPDX-License-Identifier: Apache-2.0

package runpage

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/progress/prose"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// Part is some of the iterations of a loop.
type Part struct {
	Loop session.Address `json:"loop"`
	// Total is the number of the last iteration that there is.
	Total      int         `json:"total"`
	Iterations []Iteration `json:"iterations"`
}

// Iteration is a row of the tree, with the rows in it. Those of a loop in it are not there: they
// are asked for by the loop's address.
type Iteration struct {
	Number      int             `json:"number"`
	Status      progress.Status `json:"status"`
	From        int             `json:"from,omitzero"`
	Score       *float64        `json:"score,omitzero"`
	Delta       *float64        `json:"delta,omitzero"`
	OffBy       float64         `json:"off_by,omitzero"`       // the standard error of the score; 0 if unknown
	WithinNoise bool            `json:"within_noise,omitzero"` // the judge does not tell it from the version before
	Provisional bool            `json:"provisional,omitzero"`
	Best        bool            `json:"best,omitzero"`
	Undone      bool            `json:"undone,omitzero"`
	Left        bool            `json:"left,omitzero"`
	Failed      bool            `json:"failed,omitzero"`
	Running     bool            `json:"running,omitzero"`
	Complete    bool            `json:"complete,omitzero"`
	Note        string          `json:"note,omitzero"`
	Took        time.Duration   `json:"took_ns,omitzero"`
	Tokens      int64           `json:"tokens,omitzero"`
	Steps       []Step          `json:"steps"`
}

// Step is a row of the tree.
type Step struct {
	Name     string          `json:"name"`
	Address  session.Address `json:"address,omitzero"`
	Status   progress.Status `json:"status"`
	Attempt  int             `json:"attempt,omitzero"`
	Asks     bool            `json:"asks,omitzero"`
	Doing    string          `json:"doing,omitzero"`
	Says     string          `json:"says,omitzero"`
	Note     string          `json:"note,omitzero"`
	Error    string          `json:"error,omitzero"`
	Exit     bool            `json:"exit,omitzero"`
	CanExit  bool            `json:"can_exit,omitzero"`
	Cached   bool            `json:"cached,omitzero"`
	Parallel bool            `json:"parallel,omitzero"`
	Loop     bool            `json:"loop,omitzero"`
	Race     *Race           `json:"race,omitzero"`
	Took     time.Duration   `json:"took_ns,omitzero"`
	Tokens   int64           `json:"tokens,omitzero"`
	Steps    []Step          `json:"steps,omitzero"`
}

// Race is the decision between loops that ran side by side.
type Race struct {
	// Words say which loop has won, and why.
	Words prose.Words `json:"words"`
	Lanes []Lane      `json:"lanes"`
}

// Lane is what a loop of a race had come to when the race was decided.
type Lane struct {
	Loop    string          `json:"loop"`
	Address session.Address `json:"address,omitzero"`
	Won     bool            `json:"won,omitzero"`
	// WithinNoise says that the judge does not tell its best score from the winner's.
	WithinNoise bool     `json:"within_noise,omitzero"`
	Score       *float64 `json:"score,omitzero"`
	OffBy       float64  `json:"off_by,omitzero"`
	// Best is the number of the iteration that has the score, and Iterations how many are complete.
	Best       int    `json:"best,omitzero"`
	Iterations int    `json:"iterations"`
	Stop       string `json:"stop,omitzero"` // the reason for which the loop, or its slice, ended
	Failure    string `json:"failure,omitzero"`
}

// raceOf returns the decision of a step in words of a language; nil if there is none.
func raceOf(s *progress.Step, lang prose.Language) *Race {
	if s.Race == nil {
		return nil
	}
	r := &Race{Words: prose.RaceWords(s.Race, lang), Lanes: []Lane{}}
	r.Words.Lead, r.Words.Rest = brief.Line(r.Words.Lead, 200), brief.Line(r.Words.Rest, 400)
	for i := range s.Race.Standings {
		st := &s.Race.Standings[i]
		l := Lane{
			Loop: st.Loop, Won: st.Loop == s.Race.Winner, WithinNoise: slices.Contains(s.Race.Ties, st.Loop), Score: st.Score, OffBy: st.Error,
			Best: st.Best, Iterations: st.Iterations, Stop: st.Stop, Failure: brief.Line(st.Failure, 160),
		}
		for _, c := range s.Steps {
			if c.Name == st.Loop {
				l.Address = c.Address
			}
		}
		r.Lanes = append(r.Lanes, l)
	}
	return r
}

// missing returns the problem for an address at which the run has no loop or no step.
func missing(what string, at session.Address) error {
	return problem.New(http.StatusNotFound, "not_in_run", "The run has no such thing", "the run has no %s at %q", what, at)
}

// Iterations returns at most limit iterations of a loop, from a number on, in words of a language.
func (p *Page) Iterations(at session.Address, from, limit int, lang prose.Language) (Part, error) {
	t := p.Live.Tree()
	s := t.Find(at)
	if s == nil || s.Loop == nil {
		return Part{}, missing("loop", at)
	}
	its := slices.DeleteFunc(slices.Clone(s.Loop.Iterations), func(it *progress.Iteration) bool {
		return it.Number < from || it.Number >= from+limit
	})
	return partOf(s, its, t.Now, lang), nil
}

// latest are the last two iterations of a loop: the one under way, and the one that it may have
// just ended.
func latest(s *progress.Step, now time.Duration, lang prose.Language) Part {
	its := s.Loop.Iterations
	return partOf(s, its[max(0, len(its)-2):], now, lang)
}

func partOf(s *progress.Step, its []*progress.Iteration, now time.Duration, lang prose.Language) Part {
	part := Part{Loop: s.Address, Iterations: []Iteration{}}
	if cur := s.Loop.Current(); cur != nil {
		part.Total = cur.Number
	}
	best := s.Loop.Best()
	for _, it := range its {
		part.Iterations = append(part.Iterations, iterationOf(s.Loop, it, best, now, lang))
	}
	return part
}

func iterationOf(l *progress.Loop, it, best *progress.Iteration, now time.Duration, lang prose.Language) Iteration {
	out := Iteration{
		Number: it.Number, Status: it.Status, From: it.From, Undone: it.RolledBack, Best: it == best,
		Failed: it.Failed(), Running: it.Status == progress.StatusRunning, Took: it.Took(now), Tokens: it.Usage().Tokens(),
		Steps: make([]Step, 0, len(it.Steps)),
	}
	if rec := it.Record; rec != nil {
		out.Score, out.Delta, out.OffBy, out.Complete = rec.Score, rec.Delta, rec.Error, rec.Complete
		out.WithinNoise = rec.WithinNoise()
		out.Note = note(rec)
		if l.Plan != nil && rec.Leg > 0 {
			leg := "leg " + strconv.Itoa(rec.Leg) + ": " + l.Plan.Leg(rec.Leg).String()
			out.Note = strings.TrimSuffix(brief.Line(leg, 120)+"; "+out.Note, "; ")
		}
	} else if it.Provisional != nil {
		out.Score, out.Provisional = it.Provisional, true
	}
	if len(it.Hints) > 0 {
		out.Note = strings.TrimSuffix(brief.Line("told: "+progress.HintsText(it.Hints), 160)+"; "+out.Note, "; ")
	}
	if it.Task != nil {
		out.Note = strings.TrimSuffix(brief.Line(it.Task.Text(), 160)+"; "+out.Note, "; ")
	}
	out.Left = l.Stop != nil && l.Stop.Iteration == it.Number && (l.Stop.Reason == loop.ReasonExit || l.Stop.Reason == loop.ReasonEscalated)
	for _, s := range it.Steps {
		if !s.Finalizer {
			out.Steps = append(out.Steps, stepOf(s, now, lang))
		}
	}
	return out
}

func note(rec *loop.IterationRecord) string {
	said := brief.Line(cmp.Or(rec.Rejected, rec.Unscored, rec.Warning), 120)
	for _, f := range rec.Findings { // never hidden by another reason
		said = strings.TrimPrefix(said+"; "+brief.Line(f.Text, 120), "; ")
	}
	return said
}

func stepOf(s *progress.Step, now time.Duration, lang prose.Language) Step {
	failure, _, _ := strings.Cut(s.Error, "\n")
	out := Step{
		Name: s.Name, Address: s.Address, Status: s.Status, Attempt: s.Attempt, Asks: s.Asks != "", Doing: brief.Line(cmp.Or(s.Doing, s.Line), 160),
		Error: brief.Line(failure, 160), Exit: s.Exit != nil && s.Exit.Refused == "", CanExit: s.CanExit,
		Cached: s.Cached, Loop: s.Loop != nil, Race: raceOf(s, lang), Took: s.Took(now), Tokens: s.Usage().Tokens(),
	}
	if s.Status == progress.StatusRunning && !s.Limited.IsZero() {
		out.Doing = progress.Waits(s.Limited, time.Now())
	} else if s.Status == progress.StatusRunning && s.Line == "" {
		out.Says = tail(brief.CleanText(s.Text), 120)
	}
	if s.Exit != nil {
		out.Note = brief.Line(s.Exit.Reason, 160)
	}
	for _, c := range s.Steps {
		out.Steps = append(out.Steps, stepOf(c, now, lang))
	}
	return out
}

// tail is the end of the last line of a text.
func tail(s string, most int) string {
	s = strings.TrimRight(s, "\n")
	if i := strings.LastIndexByte(s, '\n'); i >= 0 {
		s = s[i+1:]
	}
	return brief.End(s, most)
}

// Loop is one loop: its scores and its ledger.
type Loop struct {
	Address session.Address `json:"address"`
	Label   string          `json:"label"`
	// Total is the number of its last iteration.
	Total  int           `json:"total"`
	Target *float64      `json:"target,omitzero"`
	Scored bool          `json:"scored"`
	Judged string        `json:"judged,omitzero"`
	Now    time.Duration `json:"now_ns"`
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
	OffBy       float64       `json:"off_by,omitzero"`
	Leg         int           `json:"leg,omitzero"` // of on_plateau, from 1
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
	l := Loop{Address: s.Address, Label: s.Name, Now: t.Now, Outlook: prose.OutlookOf(t, s, lang), Points: []Point{}}
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
			pt.Score, pt.Delta, pt.OffBy, pt.Rejected, pt.Leg = rec.Score, rec.Delta, rec.Error, rec.Rejected != "", rec.Leg
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
