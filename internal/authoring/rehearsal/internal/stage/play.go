// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"maps"
	"slices"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/study"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model/scripted"
)

// play is one run of a scene.
type play struct {
	*study.Cast
	*Scene
	script []scripted.Answer
}

// line is what an agent answers at a place, in the form that it is asked for. In a run without
// faults the script decides. In others the values that the fault needs are put into the script's
// answer.
func (p *play) line(a *definition.Agent, at study.Place) study.Line {
	form := p.Form(a, at)
	own, scripted := study.Scripted(p.script, a, at.Iteration())
	if scripted {
		form.Say(own.Text)
	}
	changed := false
	if p.Words != nil {
		if other, ok := p.Words(a, at); ok {
			form.Words, changed = other, true
		}
	}
	leave := false
	if !scripted || changed || p.Never || p.Score != nil {
		for l := p.LoopAround(a); l != nil; l = p.LoopAround(l) {
			leave = p.wants(a, l, at, form) || leave
		}
	}
	if study.Ends(a) {
		form.Fields["approved"] = leave
	}
	out := form.Line(a)
	out.Leave = leave
	if p.Said != nil {
		out = p.Said(a, at, out)
	}
	return out
}

// wants adds to an agent's answer what the loop l reads of it, and reports whether the agent has to
// end that loop now.
func (p *play) wants(a, l *definition.Agent, at study.Place, f *study.Form) (leave bool) {
	g, n := p.Goals[l.Name], at.Loops[l.Name]
	w, end := p.wayOf(p.Cast, l)
	if s := l.Loop.Score; s != nil && slices.Contains(g.Scorers, a) && !g.Study.Scores() {
		f.Grade(s, p.mark(l, at, n))
	}
	now := end > 0 && n >= end
	if g.Study != nil {
		f.Pick(p.course(l).At(g.Study, n, p.aim(l, at, n), func(k int) study.Aim { return p.aim(l, at.First(), k) }))
	}
	return now && w.By == a
}

// mark is the score that the scene gives to iteration n of a loop.
func (p *play) mark(l *definition.Agent, at study.Place, n int) float64 {
	sc := p.ScaleOf(l)
	w, end := p.wayOf(p.Cast, l)
	switch {
	case p.Target == l && p.Score != nil:
		at.Loops = maps.Clone(at.Loops)
		at.Loops[l.Name] = n
		return p.Score(at)
	case end > 0:
		return sc.Course(w, n, end)
	}
	return sc.At(0.4) // it does not change
}

// aim is the result that the scene wants of iteration n of a loop with a study.
func (p *play) aim(l *definition.Agent, at study.Place, n int) study.Aim {
	w, end := p.wayOf(p.Cast, l)
	now := end > 0 && n >= end
	to := study.Aim{Stop: now && w.Reason == loop.ReasonCondition}
	if l.Loop.Score != nil && len(p.Goals[l.Name].Scorers) > 0 {
		to.Score, to.Rated = p.mark(l, at, n), true
	}
	if now && w.By != nil && w.By.ExitWhen != "" {
		to.Exit = w.By.Name
	}
	return to
}

// writeSides makes an agent write, when it ends, the keys that its Go functions are assumed to
// write.
func (p *play) writeSides(a *definition.Agent, cfg *llmagent.Config) {
	keys := p.Needs.Side[a.Name]
	if len(keys) == 0 {
		return
	}
	cfg.AfterAgentCallbacks = append(cfg.AfterAgentCallbacks, func(ctx agent.CallbackContext) (*genai.Content, error) {
		inv, ok := ctx.(agent.InvocationContext)
		if !ok {
			return nil, nil
		}
		at := placeOf(inv)
		f := p.Form(a, at)
		for l := p.LoopAround(a); l != nil; l = p.LoopAround(l) {
			p.wants(a, l, at, f)
		}
		for _, key := range study.SortedKeys(keys) {
			if v, picked := f.Picks[keys[key]]; picked {
				if err := ctx.State().Set(key, v); err != nil {
					return nil, err
				}
			}
		}
		return nil, nil
	})
}
