// SPDX-License-Identifier: Apache-2.0

// Package events describes the events of a run in text.
package events

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Line describes an event on one line.
func Line(ev *session.Event) string {
	where := string(ev.Address)
	if where == "" {
		where = cmp.Or(ev.Author, "-")
	}
	if ev.Attempt > 1 {
		where += fmt.Sprintf(" (attempt %d)", ev.Attempt)
	}
	what := saidIn(ev)
	if ev.Mark != nil {
		what = strings.TrimSpace(string(ev.Mark.Kind) + " " + MarkText(ev.Mark))
		if said := saidIn(ev); said != "" && ev.Mark.Kind != mark.KindAsked {
			what += ": " + said
		}
	} else if problem := runlog.ProblemIn(ev); problem != "" {
		what = strings.TrimSuffix(problem+"; "+what, "; ")
	}
	if keys := slices.Sorted(maps.Keys(ev.Actions.StateDelta)); len(keys) > 0 {
		keys = slices.DeleteFunc(keys, func(k string) bool { return strings.HasPrefix(k, "refrain:") })
		if len(keys) > 0 {
			what = strings.TrimSpace(what + " {" + strings.Join(keys, ", ") + "}")
		}
	}
	line := fmt.Sprintf("%4d %s %s: %s", ev.Seq, ev.Timestamp.Local().Format(time.TimeOnly), where, cmp.Or(what, "-"))
	return brief.Clip(brief.Clean(line), 240)
}

// saidIn returns the text and the tool calls of an event.
func saidIn(ev *session.Event) string {
	words := []string{}
	if text := ev.Text(); text != "" {
		words = append(words, strings.Join(strings.Fields(text), " "))
	}
	if ev.Content != nil {
		for _, p := range ev.Content.Parts {
			switch {
			case p == nil:
			case p.FunctionCall != nil:
				var args []byte
				if len(p.FunctionCall.Args) > 0 {
					args, _ = json.Marshal(p.FunctionCall.Args)
				}
				words = append(words, fmt.Sprintf("calls %s(%s)", p.FunctionCall.Name, args))
			case p.FunctionResponse != nil:
				answer, _ := json.Marshal(p.FunctionResponse.Response)
				words = append(words, fmt.Sprintf("%s answers %s", p.FunctionResponse.Name, answer))
			case p.InlineData != nil:
				words = append(words, fmt.Sprintf("(%s, %d bytes)", p.InlineData.MIMEType, len(p.InlineData.Data)))
			}
		}
	}
	if x := ev.Actions.Exit; x != nil && x.Refused == "" {
		words = append(words, strings.TrimSuffix("wants to leave the loop: "+x.Reason, ": "))
	}
	return strings.Join(words, "; ")
}

// MarkText describes a mark for people.
func MarkText(m *mark.Mark) string {
	switch m.Kind {
	case mark.KindStepFinished:
		return finishedText(in[mark.StepFinished](m))
	case mark.KindIterationFinished:
		if d := in[loop.IterationRecord](m); d != nil {
			return d.String()
		}
	case mark.KindLoopStopped:
		if d := in[loop.StopRecord](m); d != nil {
			return stopText(d)
		}
	case mark.KindHinted:
		if d := in[mark.Hinted](m); d != nil {
			return fmt.Sprintf("iteration %d: %s", d.Iteration, progress.HintsText(d.Hints))
		}
	case mark.KindRolledBack:
		if d := in[mark.RolledBack](m); d != nil {
			return fmt.Sprintf("iteration %d, to what was after %d: %s", d.Iteration, d.To, d.Reason)
		}
	case mark.KindLegStarted:
		if d := in[mark.LegStarted](m); d != nil {
			return fmt.Sprintf("leg %d after iteration %d, from what was after %d: %s; %s", d.Leg, d.Iteration, d.To, d.Does, d.Reason)
		}
	case mark.KindRequested:
		var u budget.Usage
		if d := in[mark.Requested](m); d != nil && json.Unmarshal(d.Usage, &u) == nil {
			return fmt.Sprintf("of a model, about %d tokens", u.Tokens())
		}
	case mark.KindRunResumed:
		if d := in[mark.RunResumed](m); d != nil && len(d.Superseded) > 0 {
			return fmt.Sprintf("replaces events %s", d.Superseded)
		}
	case mark.KindRunStarted:
		if d := in[mark.RunStarted](m); d != nil {
			return strings.TrimSpace(d.Name + by(d.By))
		}
	case mark.KindRunPaused:
		if d := in[mark.RunPaused](m); d != nil && len(d.Waits) > 0 {
			return "for " + brief.Count(len(d.Waits), "answer") + by(d.By)
		} else if d != nil {
			return strings.TrimSpace(d.Reason + by(d.By))
		}
	case mark.KindRunEnded:
		if d := in[mark.RunEnded](m); d != nil {
			return strings.TrimSuffix(string(d.Status)+by(d.By)+": "+d.Error, ": ")
		}
	case mark.KindAsked:
		if d := in[mark.Question](m); d != nil {
			return runstore.QuestionText(*d)
		}
	case mark.KindAnswered:
		if d := in[mark.Answer](m); d != nil {
			who := by(d.By)
			if d.ClaimedBy != "" {
				who += fmt.Sprintf(" (who says: %s)", d.ClaimedBy)
			}
			return strings.TrimSuffix(fmt.Sprintf("%s %s%s: %s", d.ID, d.Value, who, d.Reason), ": ")
		}
	}
	return ""
}

// in returns the data of a mark; nil if it cannot be read.
func in[T any](m *mark.Mark) *T {
	d := new(T)
	if m.Decode(d) != nil {
		return nil
	}
	return d
}

// finishedText describes how a step has finished; d may be nil.
func finishedText(d *mark.StepFinished) string {
	if d == nil {
		return ""
	}
	text := "after " + brief.Clock(time.Duration(d.Seconds*float64(time.Second)))
	switch {
	case d.Canceled:
		text += strings.TrimSuffix(", cut off: "+d.Error, ": ")
	case d.Error != "":
		text += ", failed: " + d.Error
		if d.Again {
			text += "; another attempt follows"
		}
	}
	return text
}

// stopText describes why a loop stopped. For a loop that was cut off it names the cause, because the loop may continue later.
func stopText(d *loop.StopRecord) string {
	if d.Reason != loop.ReasonCanceled || d.Detail == "" {
		return d.String()
	}
	return fmt.Sprintf("after %s: %s", brief.Count(d.Iterations, "iteration"), d.Detail)
}

func by(who string) string {
	if who == "" {
		return ""
	}
	return " by " + who
}
