// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"encoding/json"
	"maps"
	"slices"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model/scripted"
)

// play is one run of a scene.
type play struct {
	*cast
	*scene
	script []scripted.Answer
}

// scripted is the answer of the config's script for an agent: the n-th one that
// names it is for iteration n, and the last one for those behind it.
func (p *play) scripted(a *definition.Agent, at place) (scripted.Answer, bool) {
	var own []scripted.Answer
	for _, ans := range p.script {
		if ans.Agent == a.Name {
			own = append(own, ans)
		}
	}
	if len(own) == 0 {
		return scripted.Answer{}, false
	}
	return own[min(at.iteration(), len(own))-1], true
}

// line is what an agent says in a place, in the form that is asked of it. Where
// nothing goes wrong a script has the say; else what the fault needs is put into
// what the script has.
func (p *play) line(a *definition.Agent, at place) line {
	form := p.form(a, at)
	own, scripted := p.scripted(a, at)
	if scripted {
		form.words = own.Text
		var v any
		if json.Unmarshal([]byte(own.Text), &v) == nil {
			form.base = v
		}
		form.need = nil
	}
	changed := false
	if p.words != nil {
		if other, ok := p.words(a, at); ok {
			form.words, changed = other, true
		}
	}
	leave := false
	if !scripted || changed || p.never || p.score != nil {
		for l := p.loopAround(a); l != nil; l = p.loopAround(l) {
			leave = p.wants(a, l, at, form) || leave
		}
	}
	if ends(a) {
		form.fields["approved"] = leave
	}
	out := form.line(a)
	out.leave = leave
	if p.said != nil {
		out = p.said(a, at, out)
	}
	return out
}

// wants adds to an agent's answer what a loop around it reads there, and reports
// whether it is the agent's part to leave that loop now.
func (p *play) wants(a, l *definition.Agent, at place, f *form) (leave bool) {
	g, n := p.goals[l.Name], at.loops[l.Name]
	w, end := p.wayOf(p.cast, l)
	if s := l.Loop.Score; s != nil && slices.Contains(g.scorers, a) && !g.study.scores() {
		p.grade(a, s, p.mark(l, at, n), f)
	}
	now := end > 0 && n >= end
	if g.study != nil {
		f.pick(p.course(l).at(g.study, n, p.aim(l, at, n), func(k int) aim { return p.aim(l, at.first(), k) }))
	}
	return now && w.by == a
}

// mark is the score of a loop's iteration in the scene.
func (p *play) mark(l *definition.Agent, at place, n int) float64 {
	sc := p.scaleOf(l)
	w, end := p.wayOf(p.cast, l)
	switch {
	case p.target == l && p.score != nil:
		at.loops = maps.Clone(at.loops)
		at.loops[l.Name] = n
		return p.score(at)
	case end > 0:
		return sc.course(w, n, end)
	}
	return sc.at(0.4) // it stands still
}

// aim is what an iteration of a studied loop is to come to in the scene.
func (p *play) aim(l *definition.Agent, at place, n int) aim {
	w, end := p.wayOf(p.cast, l)
	now := end > 0 && n >= end
	to := aim{stop: now && w.reason == loop.ReasonCondition}
	if l.Loop.Score != nil && len(p.goals[l.Name].scorers) > 0 {
		to.score, to.rated = p.mark(l, at, n), true
	}
	if now && w.by != nil && w.by.ExitWhen != "" {
		to.exit = w.by.Name
	}
	return to
}

// writeSides has an agent write, when it is done, what its functions are supposed
// to.
func (p *play) writeSides(a *definition.Agent, cfg *llmagent.Config) {
	keys := p.needs.side[a.Name]
	if len(keys) == 0 {
		return
	}
	cfg.AfterAgentCallbacks = append(cfg.AfterAgentCallbacks, func(ctx agent.CallbackContext) (*genai.Content, error) {
		inv, ok := ctx.(agent.InvocationContext)
		if !ok {
			return nil, nil
		}
		at := placeOf(inv)
		f := p.form(a, at)
		for l := p.loopAround(a); l != nil; l = p.loopAround(l) {
			p.wants(a, l, at, f)
		}
		for _, key := range sortedKeys(keys) {
			if v, picked := f.picks[keys[key]]; picked {
				if err := ctx.State().Set(key, v); err != nil {
					return nil, err
				}
			}
		}
		return nil, nil
	})
}
