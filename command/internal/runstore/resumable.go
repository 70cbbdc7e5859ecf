// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/sqlite"
	"github.com/refrain-dev/refrain/supervisor"
)

// HowToResume returns the command that resumes a run which no process drives, or the reason why no command can. All verbs use
// it.
func HowToResume(view *session.View, id string) string {
	by, flags, err := resumable(view)
	if err != nil {
		return cannotResume(id, err)
	}
	return "Resume with: " + by + " resume " + id + flags
}

func cannotResume(id string, why error) string {
	return fmt.Sprintf("refrain cannot resume run %s: %v", id, why)
}

// HowToResumeIn returns what HowToResume returns for a run of a store.
func HowToResumeIn(ctx context.Context, store session.Service, id string) string {
	if err := writable(store); err != nil {
		return cannotResume(id, err)
	}
	view, err := get(context.WithoutCancel(ctx), store, id, 0)
	if err != nil {
		return cannotResume(id, err)
	}
	return HowToResume(view, id)
}

// HowToResume returns how to resume the run. A run in a file must be imported into a store first.
func (r *Run) HowToResume() string {
	if r.Store != nil {
		if err := writable(r.Store); err != nil {
			return cannotResume(r.ID, err)
		}
		return HowToResume(r.View(), r.ID)
	}
	view := session.NewView(session.ViewConfig{State: make(map[string]any)})
	for _, ev := range r.Log() {
		view.Apply(ev)
	}
	if _, _, err := resumable(view); err != nil {
		return cannotResume(r.ID, err)
	}
	return "Import the run into a store with: refrain import " + r.File.Name
}

// writable returns the reason why no run of a store can be resumed; nil for a store that can be written.
func writable(store session.Service) error {
	if s, ok := store.(*sqlite.Service); ok && s.ReadOnly() {
		return errors.New("its store is read-only here; copy the database to a folder that you can write, and name " +
			"the copy with --store")
	}
	return nil
}

// resumable returns the name of the program that resumes a run, and the flags that its verb resume needs with the reason for
// them, as far as the run alone tells. The error says why the run cannot be resumed.
func resumable(view *session.View) (by, flags string, err error) {
	p, err := program.Of(view)
	if errors.Is(err, supervisor.ErrNotFound) {
		return "", "", errors.New("it was not started by refrain run")
	}
	if err != nil {
		return "", "", err
	}
	var why []string
	if _, err := p.Definition(); err != nil && p.Program == "" { // a program with its own code has the models that its definitions name
		flags = " --definition FILE"
		why = append(why, "its own definition cannot be read here")
	}
	if r := session.RunOf(view); r != nil {
		if _, ok := QueueOf(r.Driver); ok {
			p.Dir, p.Root = ".", "." // the workers choose the folder
		}
	}
	for _, dir := range []string{p.Dir, p.Root} {
		if program.IsFolder(dir) != nil {
			flags += " --dir FOLDER"
			why = append(why, "its folder "+dir+" is not here")
			break
		}
	}
	if why != nil {
		flags += " (" + strings.Join(why, "; ") + ")"
	}
	return cmp.Or(p.Program, "refrain"), flags, nil
}

// PausedLines tell why a run is paused, and how far it has got.
func PausedLines(tree *progress.Tree, sum *progress.Summary) []string {
	sum = new(*sum)
	sum.Paused = OwnerText(sum.Paused)
	var lines []string
	why := "Paused " + sum.Paused
	if text := whereabouts(tree, sum.Score); text != "" {
		lines = append(lines, text)
		why = strings.ToUpper(sum.Paused[:min(1, len(sum.Paused))]) + sum.Paused[min(1, len(sum.Paused)):]
	}
	if sum.Paused != "" {
		lines = append(lines, brief.Clean(why))
	}
	return lines
}

// whereabouts tells how far a paused run has got; empty for a run without a loop.
func whereabouts(t *progress.Tree, score *float64) string {
	main := t.Main()
	if main == nil {
		return ""
	}
	it := main.Loop.Current()
	if it == nil {
		return "Paused before iteration 1."
	}
	in := fmt.Sprintf("iteration %d", it.Number)
	if most := main.Loop.Plan.MaxIterations; most > 0 {
		in += fmt.Sprintf(" of %d", most)
	}
	var s string
	switch done, last := finishedSteps(it); {
	case it.Record != nil:
		s = fmt.Sprintf("Paused after %s.", in)
	case done == 0:
		s = fmt.Sprintf("Paused in %s, before its first step is done.", in)
	default:
		s = fmt.Sprintf("Paused in %s, after step %d of %d, %s.", in, done, len(it.Steps), last)
	}
	if score != nil {
		s += " Score so far " + brief.Score(*score) + "."
	}
	return brief.Clean(s)
}

// finishedSteps returns the number of finished steps in an iteration, and the name of the last one.
func finishedSteps(it *progress.Iteration) (n int, last string) {
	for _, s := range it.Steps {
		if s.Status == progress.StatusCompleted || s.Status == progress.StatusFailed {
			n++
			last = s.Name
		}
	}
	return n, last
}

// SaidLast returns the answer so far of an unfinished run: the value of the state key that its loop hands back, if there is
// one and the loop has not handed it back when it was cut off, and otherwise said. def and view may be nil.
func SaidLast(def *definition.Definition, view *session.View, said string) string {
	if def == nil || view == nil || def.Root.Loop == nil || def.Root.Loop.Result == "" || handedBack(view) {
		return said
	}
	v, _ := view.State().Get(def.Root.Loop.Result)
	text, _ := v.(string)
	return text
}

// handedBack reports whether a run ended, for now, with the result of its loop.
func handedBack(view *session.View) bool {
	evs := view.Events()
	for i := evs.Len() - 1; i >= 0; i-- {
		switch ev := evs.At(i); {
		case ev.Mark == nil, ev.Mark.Kind == mark.KindStepStarted, ev.Mark.Kind == mark.KindRunResumed:
			return false
		case ev.Mark.Kind == mark.KindLoopStopped && ev.Iteration == 0:
			var rec loop.StopRecord
			return ev.Mark.Decode(&rec) == nil && rec.Answer != ""
		}
	}
	return false
}

// DeadlineOf returns the deadline of a question, and what happens then.
func DeadlineOf(q mark.Question) string {
	s := "until " + q.Deadline.Local().Format(time.DateTime)
	if len(q.Default) > 0 {
		s += ", then " + string(q.Default)
	}
	return s
}

// HowToAnswer returns the command that answers a question and continues the run. The command names the question if several are
// open; the run continues after the last answer.
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
	case mark.AskForm:
		how += " --set FIELD=VALUE|yes|decline|cancel"
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
	return how + " --resume"
}

// WaitsForPerson is the status text of a run that waits for a person.
const WaitsForPerson = "waits for a person"

// Asks returns the open questions of a run and how to answer them, in two texts for each question. A question has its line breaks.
func Asks(id string, sum *progress.Summary) []string {
	var lines []string
	for _, q := range sum.Waits {
		who, text := cmp.Or(string(sum.AskedBy(q.ID)), "it"), questionText(q)
		if len(sum.Waits) > 1 {
			text += " [" + q.ID + "]"
		}
		lines = append(lines, brief.Clean(who)+" asks: "+strings.ReplaceAll(brief.CleanText(text), "\n", "\n  "),
			"Answer with: "+brief.Clean(HowToAnswer(id, q, len(sum.Waits) > 1)))
	}
	if len(lines) == 0 { // the log was cut, or no question is open any more
		lines = append(lines, "Answer with: refrain answer "+id)
	}
	return lines
}

// QuestionText returns a question of a log, its possible answers and its ID.
func QuestionText(q mark.Question) string { return questionText(q) + " [" + q.ID + "]" }

func questionText(q mark.Question) string {
	var text strings.Builder
	text.WriteString(cmp.Or(strings.TrimRight(q.Text, "\n"), string(q.Kind)))
	if len(q.Options) > 0 && q.Kind != mark.AskResolution {
		text.WriteString(" (" + strings.Join(q.Options, ", ") + ")")
	}
	if !q.Deadline.IsZero() {
		text.WriteString(", " + DeadlineOf(q))
	}
	if q.Kind == mark.AskForm {
		fields, _ := q.Fields() // the step that asks has read them
		for _, f := range fields {
			text.WriteString("\n  " + f.String())
		}
	}
	return text.String()
}
