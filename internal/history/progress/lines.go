// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// exitLines reports which agent asks to leave a loop.
func exitLines(ev *session.Event) []string {
	x := ev.Actions.Exit
	if x == nil {
		return nil
	}
	line := fmt.Sprintf("exit_loop triggered by %s", x.By)
	if calledTool(ev) {
		line = "[Tool Call] " + line
	}
	if x.Status != session.ExitDone {
		line += " (" + x.Status + ")"
	}
	if x.Reason != "" {
		line += ": " + brief.Line(x.Reason, lineText)
	}
	if x.Refused != "" {
		line += "; refused: " + x.Refused
	}
	return []string{indent(ev) + line}
}

// stopLines reports why a loop stopped, and what prevented other stops.
func stopLines(rec *loop.StopRecord) []string {
	var lines []string
	if rec.Reason == loop.ReasonConverged {
		lines = append(lines, brief.Line(rec.Detail, lineText))
	}
	for _, c := range rec.Conditions {
		if !c.Holds && c.Value == "" && c.Note != "" {
			lines = append(lines, c.Name+" does not hold: "+brief.Line(c.Note, lineText))
		}
	}
	said := *rec
	if rec.Reason == loop.ReasonError {
		said.Detail = "" // the failed step has said it
	}
	return append(lines, brief.Line(said.String(), lineText))
}

// RaceText reports on one line which loop has won a race, and what the others had come to.
func RaceText(d *mark.RaceDecided) string {
	all := make([]string, 0, len(d.Standings))
	for i := range d.Standings {
		s := &d.Standings[i]
		text := s.Loop + ": no score"
		switch {
		case s.Failure != "":
			text = s.Loop + " failed: " + brief.Line(s.Failure, lineText)
		case s.Score != nil:
			text = s.Loop + ": " + brief.Score(*s.Score) + brief.OffBy(s.Error)
			if s.Best > 0 {
				text += fmt.Sprintf(" (iteration %d of %d)", s.Best, s.Iterations)
			}
		}
		all = append(all, text)
	}
	text := "Race: " + d.Winner + " wins"
	if d.Continues {
		text += " and goes on"
	}
	text += ": " + d.Reason
	if len(d.Ties) > 0 {
		text += ", " + loop.TextWithinNoise + " of " + strings.Join(d.Ties, ", ")
	}
	return brief.Line(text+"; "+strings.Join(all, ", "), 5*lineText)
}

func calledTool(ev *session.Event) bool {
	if ev.Content == nil {
		return false
	}
	for _, p := range ev.Content.Parts {
		if p != nil && p.FunctionResponse != nil {
			return true
		}
	}
	return false
}

// prefix names the loop, unless it is the whole run.
func prefix(ev *session.Event) string {
	if !strings.Contains(string(ev.Address), "/") {
		return ""
	}
	return ev.Address.Agent() + ": "
}

// indent indents the lines of a nested loop below its outer loop.
func indent(ev *session.Event) string {
	depth := strings.Count(string(ev.Address), "[")
	if ev.Mark == nil || ev.Mark.Kind == mark.KindStepFinished || ev.Mark.Kind == mark.KindLimited {
		depth--
	}
	return strings.Repeat("  ", max(depth, 0))
}

// HintsText returns hints with those who gave them, in one line.
func HintsText(hints []mark.Hint) string {
	var all []string
	for _, h := range hints {
		text := brief.Line(h.Text, lineText)
		if h.By != "" {
			text += " (by " + brief.Line(h.By, lineText) + ")"
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// lineText is the most characters of a text from outside in a line.
const lineText = 200

// Waits reports until when a step waits for its provider: "waits until 14:05 (limited)", with the day if that is not
// the day of now.
func Waits(until, now time.Time) string {
	layout := "15:04"
	if until, now = until.Local(), now.Local(); until.YearDay() != now.YearDay() || until.Year() != now.Year() {
		layout = "2 Jan 15:04"
	}
	return "waits until " + until.Format(layout) + " (limited)"
}
