// SPDX-License-Identifier: Apache-2.0

// Package backtest replays recorded runs under other stop policies: where would they have stopped,
// what would that have saved, and which results would have been lost?
//
//	runs, err := backtest.Recordings(events)
//	balance, trials := backtest.Run(runs, func(p *loop.Plan) (*loop.Plan, error) {
//		return p.With("max_iterations", "5")
//	})
//
// [NewSweep] does so for all values of one field.
package backtest

import (
	"cmp"
	"math"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// Verdict says what happens to the result of a run in a [Trial].
type Verdict string

// The verdicts.
const (
	VerdictSame    Verdict = "same"    // it stops where it stopped
	VerdictKept    Verdict = "kept"    // it stops elsewhere, with a result as good, within the judge's noise
	VerdictLost    Verdict = "lost"    // it stops with a worse result
	VerdictUnknown Verdict = "unknown" // it goes on beyond the recording, or nothing was scored
)

// Trial says where one recorded run would have stopped, and what that means for its result.
type Trial struct {
	// Run is the run's invocation ID, Loop the loop's address.
	Run  string          `json:"run"`
	Loop session.Address `json:"loop"`
	// Verdict says what becomes of the result, Note why it is unknown.
	Verdict Verdict `json:"verdict"`
	Note    string  `json:"note,omitzero"`
	// Stops is the iteration in or after which the run stops, Was the one in which it did stop. If
	// the verdict is unknown, Stops is how far the recording goes.
	Stops int `json:"stops"`
	Was   int `json:"was"`
	// Reason is why it stops; empty if the verdict is unknown.
	Reason loop.StopReason `json:"reason,omitzero"`
	// Best is the best score until then, BestWas that of the run; nil: none. Loss is by how much the
	// first is worse, 0 if it is not. Differences up to Noise mean nothing; 0: unknown.
	Best    *float64 `json:"best,omitzero"`
	BestWas *float64 `json:"best_was,omitzero"`
	Loss    float64  `json:"loss,omitzero"`
	Noise   float64  `json:"noise,omitzero"`
	// Saved is what the run would not have used, 0 if the verdict is unknown.
	Saved Used `json:"saved"`
}

// Used is what iterations have used, without the finalizer.
type Used struct {
	Iterations int   `json:"iterations"`
	Tokens     int64 `json:"tokens,omitzero"`
	// Cost is what is known of it, Unpriced says that some of it is not.
	Cost     float64 `json:"cost,omitzero"`
	Unpriced bool    `json:"unpriced,omitzero"`
	// CacheSaved is what the provider's cache has saved of the cost.
	CacheSaved float64 `json:"cache_saved,omitzero"`
	// Time is active time, in nanoseconds. Longer delays make what is saved of it negative.
	Time int64 `json:"time_ns,omitzero"`
}

func (u *Used) add(v Used) {
	u.Iterations += v.Iterations
	u.Tokens += v.Tokens
	u.Cost = round(u.Cost + v.Cost)
	u.Unpriced = u.Unpriced || v.Unpriced
	u.CacheSaved = round(u.CacheSaved + v.CacheSaved)
	u.Time += v.Time
}

// Balance is what a change of the stop policy means for several runs.
type Balance struct {
	// Runs counts the runs; Same, Kept, Lost and Unknown count their verdicts.
	Runs    int `json:"runs"`
	Same    int `json:"same"`
	Kept    int `json:"kept"`
	Lost    int `json:"lost"`
	Unknown int `json:"unknown"`
	// Loss is the largest loss of a score.
	Loss float64 `json:"loss,omitzero"`
	// Saved is what all of them would not have used, of All that they have.
	Saved Used `json:"saved"`
	All   Used `json:"all"`
}

func (b *Balance) add(t *Trial, all Used) {
	b.Runs++
	switch t.Verdict {
	case VerdictSame:
		b.Same++
	case VerdictKept:
		b.Kept++
	case VerdictLost:
		b.Lost++
		b.Loss = max(b.Loss, t.Loss)
	default:
		b.Unknown++
	}
	b.Saved.add(t.Saved)
	b.All.add(all)
}

// Run replays recorded runs under another plan each, which change makes of the recorded one;
// the trials are in the order of the runs. A run that has not stopped, or whose plan cannot be
// changed so, is unknown.
func Run(runs []*Recording, change func(*loop.Plan) (*loop.Plan, error)) (Balance, []Trial) {
	var b Balance
	trials := make([]Trial, len(runs))
	for i, r := range runs {
		trials[i] = r.try(change)
		b.add(&trials[i], r.used())
	}
	return b, trials
}

// Today returns the plan with the present rules, if it has those of an earlier version.
func Today(p *loop.Plan) (plan *loop.Plan, older bool) {
	if p.Version >= p.Current() {
		return nil, false
	}
	now := *p
	now.Version = p.Current()
	return &now, true
}

// Older counts the runs that were made by an earlier version of the rules about a judge's scores.
func Older(runs []*Recording) (n int) {
	for _, r := range runs {
		if _, older := Today(r.Plan); older {
			n++
		}
	}
	return n
}

// ByToday returns the runs with the present rules about a judge's scores: [Run] and [NewSweep] change their plans from
// there, and compare the result with the run as it was.
func ByToday(runs []*Recording) []*Recording {
	all := make([]*Recording, len(runs))
	for i, r := range runs {
		now := *r
		now.today, _ = Today(r.Plan)
		all[i] = &now
	}
	return all
}

// start returns the plan that a trial changes.
func (r *Recording) start() *loop.Plan { return cmp.Or(r.today, r.Plan) }

// try replays the run under another plan.
func (r *Recording) try(change func(*loop.Plan) (*loop.Plan, error)) Trial {
	t := Trial{Run: r.InvocationID, Loop: r.Loop, Verdict: VerdictUnknown}
	if r.Stop == nil {
		t.Note = "the run has not stopped"
		return t
	}
	t.Was, t.BestWas = r.Stop.Iteration, r.Stop.BestScore
	plan, err := change(r.start())
	if err == nil {
		err = plan.Check()
	}
	if err != nil {
		t.Note = err.Error()
		return t
	}
	res := plan.BacktestOf(r.Plan, r.Outcomes)
	if n := len(res.Records); n > 0 {
		t.Noise = res.Records[n-1].Noise
	}
	if res.Unknown {
		t.Stops, t.Best, t.Note = res.Iterations, res.BestScore, res.Note
		return t
	}
	t.Stops, t.Reason, t.Best = res.Stop.Iteration, res.Stop.Reason, res.Stop.BestScore
	t.Saved = Used{Iterations: res.SavedIterations, Tokens: res.SavedTokens, Unpriced: res.SavedCost == nil &&
		res.SavedCalls > 0, Time: int64(res.SavedTime)}
	t.Saved.CacheSaved = round(r.used().CacheSaved - res.Used.CacheSaved)
	if res.SavedCost != nil {
		t.Saved.Cost = round(*res.SavedCost)
	}
	t.judge(plan, res.SavedSteps)
	return t
}

// judge says what becomes of the result.
func (t *Trial) judge(plan *loop.Plan, saved int) {
	lower := plan.Score != nil && plan.Score.LowerIsBetter
	switch {
	case t.Stops == t.Was && saved == 0:
		t.Verdict = VerdictSame
		return
	case t.Best == nil && t.BestWas == nil:
		t.Note = "nothing was scored, so results cannot be compared"
		return
	case t.Best == nil:
		t.Verdict = VerdictLost
		return
	case t.BestWas != nil:
		t.Loss = round(*t.BestWas - *t.Best)
		if lower {
			t.Loss = -t.Loss
		}
	}
	t.Loss = max(0, t.Loss)
	if t.Verdict = VerdictKept; t.Loss > t.Noise {
		t.Verdict = VerdictLost
	}
}

// used is what the run has used, without its finalizer.
func (r *Recording) used() Used {
	var u Used
	final := r.Plan.Finalizer()
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		if o.Step < 0 || o.Step == final {
			continue
		}
		u.Iterations = max(u.Iterations, o.Iteration)
		u.Tokens += o.Usage.InputTokens + o.Usage.OutputTokens
		if c := o.Usage.Cost; c != nil && !math.IsNaN(*c) {
			u.Cost += *c
		} else {
			u.Unpriced = u.Unpriced || o.Usage.Calls > 0
		}
		u.CacheSaved += o.Usage.CacheSaved
		if o.Finished.After(o.Started) {
			u.Time += int64(o.Finished.Sub(o.Started))
		}
	}
	u.Cost, u.CacheSaved = round(u.Cost), round(u.CacheSaved)
	return u
}

// round removes the noise of floating point: nine decimals stay.
func round(f float64) float64 { return math.Round(f*1e9) / 1e9 }
