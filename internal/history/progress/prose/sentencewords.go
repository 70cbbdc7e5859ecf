// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"math"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
)

// Words are a [Sentence] in words.
type Words struct {
	// Lead is the beginning, to be set in bold: "Plateau since iteration 2." Rest continues it.
	Lead string `json:"lead"`
	Rest string `json:"rest,omitzero"`
	// Basis says on which scores a forecast is based, and how many iterations remain; empty without a forecast.
	Basis string `json:"basis,omitzero"`
}

// String returns all words on one line.
func (w Words) String() string {
	return strings.TrimSpace(strings.Join([]string{w.Lead, w.Rest, w.Basis}, " "))
}

// In returns the sentence in words of a language. It quotes names and texts of agents unchanged, so use
// [brief.Clean] for a terminal.
func (s Sentence) In(lang Language) Words {
	switch s.Kind {
	case SaysDone, SaysLimit, SaysFailed, SaysCanceled:
		return s.ending(lang)
	}
	w := Words{Lead: lang.say(map[SentenceKind]phrase{
		SaysImproving: leadImproving, SaysPlateau: leadPlateau, SaysRegressing: leadRegressing,
		SaysOscillating: leadOscillating, SaysTooEarly: leadTooEarly, SaysNotScored: leadNotScored,
	}[s.Kind])}
	switch {
	case s.Kind == SaysPlateau && s.Since > 0:
		w.Lead = lang.say(leadPlateauSince, s.Since)
	case s.Kind == SaysRegressing && s.Since > 0:
		w.Lead = lang.say(leadRegressingSince, s.Since)
	case s.Kind == SaysNotScored:
		w.Rest = lang.say(noBest) + s.atMost(lang)
		return w
	case s.Kind == SaysTooEarly:
		if w.Rest = lang.say(scores1, s.Needed); s.Basis != 1 {
			w.Rest = lang.say(scoresN, s.Basis, s.Needed)
		}
		w.Rest += s.atMost(lang)
		return w
	}
	if s.Range == nil {
		if w.Rest = lang.say(noEnd); s.Kind == SaysOscillating || s.AtMost != nil {
			w.Rest = lang.say(noCourse)
		}
		w.Rest += s.atMost(lang)
		return w
	}
	w.Rest = s.forecast(lang)
	if s.Range.Iterations == 0 && s.Range.High == 0 {
		w.Basis = lang.say(basisLast, s.Basis)
		return w
	}
	more := s.Range.words(lang)
	if w.Basis = lang.say(basis, s.Basis, more); s.Range.Left >= time.Second {
		w.Basis = lang.say(basisTime, s.Basis, more, s.Range.Left)
	}
	return w
}

// forecast says which condition is expected to end the loop.
func (s *Sentence) forecast(lang Language) string {
	pow := math.Pow10(s.Decimals)
	final := lang.score(math.Round(*s.Final*pow) / pow) // as exact as the scores
	switch {
	case s.Until == loop.ReasonTarget:
		return lang.say(willReach, *s.Target, s.After)
	case s.Until == loop.ReasonConverged && s.Target == nil:
		return lang.say(willConverge, s.After, final)
	case s.Until == loop.ReasonConverged:
		return lang.say(willConvergeOf, s.After, final, *s.Target)
	case s.Target == nil:
		return lang.say(willRunOut, s.Limit, final)
	}
	return lang.say(willRunOutOf, s.Limit, final, *s.Target)
}

// atMost says what the limit allows; "" without one.
func (s *Sentence) atMost(lang Language) string {
	switch {
	case s.AtMost == nil:
		return ""
	case *s.AtMost == 0:
		return " " + lang.say(atMostNone)
	}
	return " " + lang.counted(*s.AtMost, atMost1, atMostN)
}

// words returns a text such as "1 more iteration (1 to 3)".
func (r *Range) words(lang Language) string {
	s := lang.counted(r.Iterations, more1, moreN)
	if r.Iterations == 0 {
		s = lang.say(moreNone)
	}
	if r.Low != r.High {
		s = lang.say(moreRange, s, r.Low, r.High)
	}
	return s
}

// ending says why the loop has stopped.
func (s *Sentence) ending(lang Language) Words {
	where := lang.say(afterIteration, s.After)
	switch s.Kind {
	case SaysCanceled:
		return Words{Lead: lang.say(canceled), Rest: lang.say(inIteration, s.After) + " " + lang.say(keptSaved)}
	case SaysFailed:
		w := Words{Lead: lang.say(failed), Rest: lang.say(inIterationWhy, s.After, s.Detail)}
		if s.By != "" {
			w.Lead = lang.say(failedBy, s.By)
		}
		return w
	case SaysLimit:
		return s.atLimit(lang, where)
	}
	quote := lang.say(inIteration, s.After)
	if s.Detail != "" {
		quote = lang.say(inIterationQuote, s.After, strings.TrimSuffix(s.Detail, "."))
	}
	switch s.Until {
	case loop.ReasonImpossible:
		return Words{Lead: lang.say(doneImpossible, s.By), Rest: quote}
	case loop.ReasonBlocked:
		return Words{Lead: lang.say(doneBlocked, s.By), Rest: quote}
	case loop.ReasonCondition:
		return Words{Lead: lang.say(doneCondition), Rest: lang.say(inIterationWhy, s.After, s.Detail)}
	case loop.ReasonTarget:
		lead := lang.say(doneTargets)
		if s.Target != nil {
			lead = lang.say(doneTarget, *s.Target)
		}
		return Words{Lead: lead, Rest: lang.say(inIteration, s.After) + s.best(lang) + s.sure(lang)}
	case loop.ReasonConverged:
		lead := lang.say(doneConverged)
		if s.NotWorth {
			lead = lang.say(doneNotWorth)
		}
		return Words{Lead: lead, Rest: where + s.best(lang) + s.sure(lang)}
	case loop.ReasonNoProgress:
		return Words{Lead: lang.say(doneCircles), Rest: where + s.best(lang)}
	}
	return Words{Lead: lang.say(doneExit, s.By), Rest: quote}
}

func (s *Sentence) atLimit(lang Language, where string) Words {
	w := Words{Rest: where}
	switch s.Until {
	case loop.ReasonTimeout:
		w.Lead = lang.say(limitTime)
	case loop.ReasonBudget:
		w.Lead = lang.say(limitBudget)
	default:
		w.Lead, w.Rest = lang.counted(s.After, limitIterations1, limitIterationsN), ""
		if s.Target == nil {
			w.Lead = strings.TrimSuffix(w.Lead, ",") + "."
		}
	}
	if s.Target != nil {
		w.Rest = strings.TrimSpace(strings.TrimSuffix(w.Rest, ".") + " " + lang.say(withoutTarget, *s.Target))
	}
	w.Rest = strings.TrimSpace(w.Rest + s.best(lang))
	return w
}

// best says which score is the best; "" if there is none.
func (s *Sentence) best(lang Language) string {
	switch {
	case s.Best == nil:
		return ""
	case s.BestIteration == 0:
		return " " + lang.say(bestAtStart, lang.offBy(*s.Best, s.BestError))
	}
	return " " + lang.say(bestIn, lang.offBy(*s.Best, s.BestError), s.BestIteration)
}

// sure says how sure the reason is; "" if no score with noise has decided.
func (s *Sentence) sure(lang Language) string {
	if text := HowSure(s.Proof, lang); text != "" {
		return " " + text
	}
	return ""
}

// HowSure says in a sentence how sure the reason is for which a loop stopped; "" for nil.
func HowSure(p *loop.Proof, lang Language) string {
	switch {
	case p == nil:
		return ""
	case p.Chance > 0 && p.Scores > 0:
		n, of := brief.Odds(p.Chance)
		return lang.say(sureOfPrice, n, of, p.Gain)
	case p.Chance > 0:
		n, of := brief.Odds(p.Chance)
		return lang.say(sureOfTarget, n, of)
	}
	return lang.say(sureOfPlateau, p.Scores, int(p.Odds), p.Gain)
}
