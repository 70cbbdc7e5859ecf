// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"cmp"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/brief"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session/mark"
)

// DeadlineOf returns the deadline of a question, and what happens then.
func DeadlineOf(q mark.Question) string {
	s := "until " + q.Deadline.Local().Format(time.DateTime)
	if len(q.Default) > 0 {
		s += ", then " + string(q.Default)
	}
	return s
}

// HowToAnswer returns the command that answers a question. The command names the question if several are open.
func HowToAnswer(id string, q mark.Question, several bool) string {
	how, named := "refrain answer "+id, " --question "+q.ID
	switch q.Kind {
	case mark.AskText:
		if len(q.Options) > 0 {
			how += " " + strings.Join(q.Options, "|")
		} else {
			how += " TEXT"
		}
	case mark.AskEdit:
		how += " --set KEY=VALUE"
	case mark.AskResolution:
		how, named = "refrain resolve "+id+" --result TEXT|--retry|--skip", " --call "+q.ID
		if q.IsEdited() {
			how = "refrain resolve " + id + " --" + strings.Join(q.Options, "|--")
		}
	default:
		how += " yes|no"
	}
	if several {
		how += named
	}
	return how
}

// WaitsForPerson is the status text of a run that waits for a person.
const WaitsForPerson = "waits for a person"

// Asks returns the open questions of a run and how to answer them, in two lines for each question.
func Asks(id string, sum *progress.Summary) []string {
	var lines []string
	for _, q := range sum.Waits {
		who := cmp.Or(string(sum.AskedBy(q.ID)), "it")
		lines = append(lines, brief.Clean(who+" asks: "+QuestionText(q)),
			"Answer with: "+brief.Clean(HowToAnswer(id, q, len(sum.Waits) > 1)))
	}
	if len(lines) == 0 { // the log was cut, or no question is open any more
		lines = append(lines, "Answer with: refrain answer "+id)
	}
	return lines
}

// QuestionText returns a question and its possible answers on one line.
func QuestionText(q mark.Question) string {
	text := cmp.Or(q.Text, string(q.Kind))
	if len(q.Options) > 0 && q.Kind != mark.AskResolution {
		text += " (" + strings.Join(q.Options, ", ") + ")"
	}
	if !q.Deadline.IsZero() {
		text += ", " + DeadlineOf(q)
	}
	return text + " [" + q.ID + "]"
}
