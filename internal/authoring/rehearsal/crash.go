// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/stage"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/seal/statekey"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// maxPoints is the largest number of events after which a run is cut off. Of a longer log they are chosen at random.
const maxPoints = 150

// crash injects a crash after each event of the log: the process dies, and another one resumes the run. The run must
// have the same result as without the crash.
func (s *bench) crash(ctx context.Context) ([]Finding, error) {
	sc := &stage.Scene{Iterations: maxIterations}
	whole, err := s.Run(ctx, sc)
	if err != nil {
		return nil, err
	}
	f := Finding{Status: Unknown}
	switch {
	case whole.Err != nil:
		f.Detail = "the run fails with stand-ins: " + whole.Err.Error()
		f.Advice = "write answers for these agents and pass them with --script: " +
			strings.Join(s.played(s.Def.Root), ", ")
		return []Finding{f}, nil
	case whole.Cut:
		// The run has no end to compare, because only the rehearsal's own limit ends it.
		f.Detail = fmt.Sprintf("with stand-ins nothing has ended the loop after %s",
			brief.Count(maxIterations, "iteration"))
		return []Finding{f}, nil
	}
	want := outcomeOf(whole)
	points := s.points(len(whole.Log))
	first := ""
	for _, k := range points {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		got, err := s.Resume(ctx, sc, whole, k)
		if err != nil {
			return nil, err
		}
		if diff := differ(want, outcomeOf(got)); diff != "" {
			if f.Differ++; first == "" {
				first = fmt.Sprintf("cut off after event %d of %d (%s): %s", k, len(whole.Log), label(whole.Log[k-1]),
					diff)
			}
		}
	}
	f.Points, f.Status = len(points), Caught
	f.Guard = "the log, and refrain resume"
	f.Detail = fmt.Sprintf("cut off after %d of its %d events, one at a time, and resumed: same iterations, state "+
		"and result every time", len(points), len(whole.Log))
	if f.Differ > 0 {
		f.Status, f.Guard = Uncaught, ""
		f.Detail = fmt.Sprintf("at %d of %d points the resumed run differs; %s", f.Differ, len(points), first)
		f.Advice = "what an agent does must follow from the state, its place and its input, and not from the clock " +
			"or from chance"
	}
	return []Finding{f}, nil
}

// points returns where to cut a log: after the user's message, and before the end.
func (s *bench) points(n int) []int {
	all := make([]int, 0, n)
	for k := 1; k < n; k++ {
		all = append(all, k)
	}
	if len(all) <= maxPoints {
		return all
	}
	dice := rand.New(rand.NewPCG(s.cfg.Seed, 30))
	dice.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return slices.Sorted(slices.Values(all[:maxPoints]))
}

// outcome is the result of a run.
type outcome struct {
	err        string
	state      map[string]any
	iterations map[session.Address][]loop.IterationRecord
	stops      map[session.Address][]loop.StopRecord
	answer     string
}

func outcomeOf(t *stage.Take) *outcome {
	o := &outcome{
		state: make(map[string]any), answer: t.Answer,
		iterations: make(map[session.Address][]loop.IterationRecord),
		stops:      make(map[session.Address][]loop.StopRecord),
	}
	if t.Err != nil {
		o.err = t.Err.Error()
	}
	for k, v := range t.State {
		if statekey.Own(k) && k != mark.KeyNoted && k != mark.KeySuperseded {
			o.state[k] = v
		}
	}
	for _, ev := range session.Current(t.Log) {
		if ev.Mark == nil {
			continue
		}
		switch ev.Mark.Kind {
		case mark.KindIterationFinished:
			var rec loop.IterationRecord
			if ev.Mark.Decode(&rec) == nil {
				rec.StateSize = 0
				o.iterations[ev.Address] = append(o.iterations[ev.Address], rec)
			}
		case mark.KindLoopStopped:
			var rec loop.StopRecord
			if ev.Mark.Decode(&rec) == nil {
				rec.Elapsed, rec.Events, rec.Digest, rec.StateSize = 0, 0, "", 0
				o.stops[ev.Address] = append(o.stops[ev.Address], rec)
			}
		}
	}
	return o
}

// differ describes the first difference of two outcomes; "" if there is none.
func differ(want, got *outcome) string {
	if got.err != want.err {
		if want.err == "" {
			return "it fails: " + got.err
		}
		return fmt.Sprintf("it ends with %q", got.err)
	}
	for _, at := range slices.Sorted(maps.Keys(want.iterations)) {
		if a, b := want.iterations[at], got.iterations[at]; !progress.Same(a, b) {
			return fmt.Sprintf("%s has different iterations (%d, then %d)", at, len(a), len(b))
		}
	}
	for _, at := range slices.Sorted(maps.Keys(want.stops)) {
		if !progress.Same(want.stops[at], got.stops[at]) {
			return fmt.Sprintf("%s has another stop record", at)
		}
	}
	keys := maps.Clone(want.state)
	maps.Copy(keys, got.state)
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if !progress.Same(want.state[k], got.state[k]) {
			return fmt.Sprintf("state.%s differs", k)
		}
	}
	if want.answer != got.answer {
		return "the result differs"
	}
	return ""
}

// label names an event of a log.
func label(ev *session.Event) string {
	switch {
	case ev.Mark != nil:
		return fmt.Sprintf("%s of %s", ev.Mark.Kind, ev.Address)
	case ev.Address == "":
		return "the user's message"
	}
	return "what " + string(ev.Address) + " says"
}
