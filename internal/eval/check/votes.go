// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

// poll collects votes of judges.
type poll struct {
	votes int
	split bool
	notes []string
}

// add counts the votes on a prompt with two answers. It returns whether most of them are for yes; known is false if no vote has an
// opinion. A tie is a no. The reason of a vote is noted if the votes differ, or are not for yes.
func (p *poll) add(what string, votes []Vote) (met, known bool) {
	n := make(map[string]int)
	for _, v := range votes {
		n[v.Answer]++
		p.split = p.split || v.Answer != votes[0].Answer
	}
	p.votes += len(votes)
	met, known = n[yes] > n[no], n[yes]+n[no] > 0
	if met && n[yes] == len(votes) {
		return met, known
	}
	verdict := no
	switch {
	case met:
		verdict = yes
	case !known:
		verdict = cannotTell
	}
	why := ""
	if i := slices.IndexFunc(votes, func(v Vote) bool { return v.Answer != yes }); i >= 0 {
		why = ": " + brief.Line(votes[i].Reason, 120)
	}
	p.notes = append(p.notes, fmt.Sprintf("%s: %s (%d yes, %d no, %d cannot tell)%s", what, verdict, n[yes], n[no], n[cannotTell], why))
	return met, known
}

// finding returns the finding of a value with the votes.
func (p *poll) finding(f finding, fine string) finding {
	f.votes, f.split = p.votes, p.split
	f.reason = strings.Join(p.notes, "; ")
	if f.reason == "" {
		f.reason = fine
	}
	return f
}

// rubric makes a check of the share of the statements that a judge finds true of an answer: of the last one, or, with EachTurn, of
// the mean of all turns.
func (s Spec) rubric() func(context.Context, *Subject) finding {
	return func(ctx context.Context, subject *Subject) finding {
		answer, f := s.text(subject)
		if f != nil {
			return *f
		}
		var p poll
		last := len(subject.Turns) - 1
		met, known := 0, 0
		for turn := range subject.Turns {
			if turn < last && !s.EachTurn {
				continue
			}
			of := subject.Turns[turn].Answer
			if turn == last {
				of = answer
			}
			votes, f := subject.ask(ctx, s.question(subject.conversation(turn, of)...))
			if f != nil {
				return *f
			}
			for i, of := range votes {
				is, told := p.add(quote(s.Texts[i]), of)
				if told {
					known++
				}
				if is {
					met++
				}
			}
		}
		if known == 0 {
			return p.finding(finding{none: true}, "")
		}
		return p.finding(finding{value: float64(met) / float64(known)}, fmt.Sprintf("all of %s hold", brief.Count(len(s.Texts), "statement")))
	}
}

// agrees makes a check of the share of the turns whose answer a judge finds to agree with the reference.
func (s Spec) agrees() func(context.Context, *Subject) finding {
	return func(ctx context.Context, subject *Subject) finding {
		var p poll
		var failed *finding
		f := s.byTurn(func(answer, expected string) (float64, string) {
			if failed != nil {
				return 0, ""
			}
			var votes [][]Vote
			votes, failed = subject.ask(ctx, s.question(text{"reference", expected}, text{"answer of the agent", answer}))
			if failed != nil {
				return 0, ""
			}
			if met, _ := p.add("agrees with "+quote(expected), votes[0]); met {
				return 1, ""
			}
			return 0, ""
		}, s.Kind, "the expected text")(ctx, subject)
		switch {
		case failed != nil:
			return *failed
		case f.none || f.broken:
			return f
		}
		if f.reason != "" && p.votes == 0 { // turns are missing
			return f
		}
		return p.finding(f, "agrees with the expected text")
	}
}

// pairwise makes a check that compares the last answer with that of the rival. Its value is the share of the votes for the answer;
// a vote for neither counts half.
func (s Spec) pairwise() func(context.Context, *Subject) finding {
	return func(ctx context.Context, subject *Subject) finding {
		if subject.Rival == nil {
			return finding{none: true, reason: "there is no other version to compare with"}
		}
		own, f := s.text(subject)
		other, g := s.text(subject.Rival)
		if f = cmp.Or(f, g); f != nil {
			return finding{none: true, reason: f.reason}
		}
		if trim(own) == trim(other) {
			return finding{value: 0.5, reason: "both answers are the same"}
		}
		last := len(subject.Turns) - 1
		before := subject.conversation(last, "")
		before = slices.DeleteFunc(before[:len(before)-1], func(t text) bool { return t.name != "message of the user" })
		sum, n := 0.0, make(map[string]int)
		for _, swapped := range []bool{false, true} {
			pair := []text{{"first answer", own}, {"second answer", other}}
			if swapped {
				pair[0].text, pair[1].text = other, own
			}
			votes, f := subject.ask(ctx, s.question(append(before[:len(before):len(before)], pair...)...))
			if f != nil {
				return *f
			}
			for _, v := range votes[0] {
				switch {
				case v.Answer == neither:
					n["equal"]++
					sum += 0.5
				case (v.Answer == firstWins) != swapped:
					n["this"]++
					sum++
				default:
					n["other"]++
				}
			}
		}
		all := n["this"] + n["other"] + n["equal"]
		return finding{value: sum / float64(all), votes: all, split: len(n) > 1,
			reason: fmt.Sprintf("%d of %d votes for this answer, %d for the other, %d for neither", n["this"], all, n["other"], n["equal"])}
	}
}
