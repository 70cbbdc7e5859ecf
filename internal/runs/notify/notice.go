// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/progress/prose"
	"github.com/refrain-dev/refrain/internal/history/stops"
	"github.com/refrain-dev/refrain/internal/runs/notify/channel"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Notice is what a webhook or a command gets of an event of a run, as JSON.
type Notice struct {
	// ID is made of the run and of the number of the event in its log, so it is the same when the notice is sent again.
	ID     string                 `json:"id"`
	Event  definition.NotifyEvent `json:"event"`
	Run    string                 `json:"run"`
	Name   string                 `json:"name"`
	Status mark.RunStatus         `json:"status"`
	// Reason is why the loop stopped, and Why the sentence about it.
	Reason     loop.StopReason `json:"reason,omitzero"`
	Why        string          `json:"why,omitzero"`
	Iterations int             `json:"iterations"`
	Score      *float64        `json:"score,omitzero"`
	Error      string          `json:"error,omitzero"`
	Cost       string          `json:"cost,omitzero"` // in US dollars, such as "0.40" or "0.40 or more"
	Seconds    float64         `json:"seconds"`
	// Result is the beginning of the first line of the result, and Question that of a question.
	Result   string          `json:"result,omitzero"`
	Question string          `json:"question,omitzero"`
	Files    runfiles.Handed `json:"files,omitzero"`
	// Link is the address of the run's page, empty if it is not known. Next is a command.
	Link string `json:"link,omitzero"`
	Next string `json:"next_command,omitzero"`

	seq int64
	at  time.Time
	ask string // ID of the question
}

// lineMost is the most characters of a text of an agent in a notice.
const lineMost = 300

// notices returns the notices of the events of a log after the one with a number, in their order. It leaves out questions that have
// an answer, and pauses of a run that goes on.
func notices(view *session.View, after int64) (all []*Notice) {
	for _, run := range runsOf(view) {
		f := fold{run: view.ID()}
		for _, ev := range session.Current(run) {
			if n := f.add(ev); n != nil && ev.Seq > after {
				all = append(all, n)
			}
		}
		all = f.current(all)
	}
	if len(all) > 0 {
		files(view, all[len(all)-1])
	}
	return all
}

// runsOf returns the outlines of the events of each run in a log.
func runsOf(view *session.View) (runs [][]*session.Event) {
	id := ""
	for ev := range view.Log().Outline() {
		if ev.InvocationID != id || len(runs) == 0 {
			id, runs = ev.InvocationID, append(runs, nil)
		}
		runs[len(runs)-1] = append(runs[len(runs)-1], ev)
	}
	return runs
}

// fold computes the notices of one run.
type fold struct {
	run     string
	summary progress.SummaryFold
	answer  progress.Fold
	used    progress.Resources
	live    progress.Live
	best    bool // an outermost loop has a score
}

// add takes the next event, and returns its notice; nil if people are not notified of it.
func (f *fold) add(ev *session.Event) *Notice {
	f.summary.Add(ev)
	f.answer.Add(ev)
	f.used.Add(ev)
	f.live.AddOnce(ev, true)
	if ev.Mark == nil {
		return nil
	}
	n := &Notice{seq: ev.Seq, at: ev.Timestamp}
	switch ev.Mark.Kind {
	case mark.KindRunEnded:
		f.ended(n)
	case mark.KindRunPaused:
		n.Event = definition.NotifyPaused
		r := mark.RunIn(ev.Actions.StateDelta)
		if r == nil || r.Status != mark.RunIsPaused || r.HandOver && r.Driver != "" { // another worker of the cluster continues it
			return nil
		}
	case mark.KindAsked:
		var q mark.Question
		if ev.Mark.Decode(&q) != nil {
			return nil
		}
		n.Event, n.Question, n.ask = definition.NotifyAsks, brief.Line(q.Text, lineMost), q.ID
	case mark.KindLimited:
		var l mark.Limited
		if ev.Mark.Decode(&l) != nil {
			return nil
		}
		n.Event, n.Why = definition.NotifyLimited, "It asks again at "+l.Until.UTC().Format(time.RFC3339)+". "+brief.Line(l.Why, lineMost)
	case mark.KindIterationFinished:
		var it loop.IterationRecord
		if ev.Iteration != 0 || ev.Mark.Decode(&it) != nil || !it.Best || it.Rejected != "" {
			return nil
		}
		n.Event = definition.NotifyBest
		if first := !f.best; first {
			f.best = true
			return nil
		}
	default:
		return nil
	}
	f.fill(n)
	return n
}

// ended sets the event of a run that has ended.
func (f *fold) ended(n *Notice) {
	n.Event = definition.NotifyEnded
	if f.summary.Summary().Status == mark.RunFailed {
		n.Event = definition.NotifyFailed
		return
	}
	for _, rec := range f.answer.Stops() {
		if stops.Limited(rec) {
			n.Event = definition.NotifyLimit
		}
	}
}

// fill sets how the run stands.
func (f *fold) fill(n *Notice) {
	sum := f.summary.Summary()
	n.ID, n.Run, n.Name, n.Status = fmt.Sprintf("%s.%d", f.run, n.seq), f.run, sum.Name, sum.Status
	n.Iterations, n.Score, n.Error = sum.Iteration, sum.Score, brief.Line(sum.Error, lineMost)
	n.Seconds, n.Result = sum.Updated.Sub(sum.Began).Seconds(), brief.Line(firstLine(f.answer.Answer()), lineMost)
	if sum.Stop != nil {
		n.Reason = sum.Stop.Reason
	}
	tree := f.live.Tree()
	if main := tree.Main(); main != nil && main.Loop != nil && n.Why == "" {
		n.Why = brief.Line(prose.SentenceOf(main.Loop, tree.Now).In(prose.English).String(), lineMost)
	}
	if u := f.used.SoFar(); u.Calls > 0 {
		n.Cost = u.CostText()
	}
	switch n.Event {
	case definition.NotifyPaused:
		n.Next = "refrain resume " + f.run
	case definition.NotifyAsks:
		n.Next = "refrain answer " + f.run
	default:
		n.Next = "refrain show " + f.run
	}
}

// current leaves out what the end of the log has overtaken.
func (f *fold) current(all []*Notice) (still []*Notice) {
	sum := f.summary.Summary()
	open := make(map[string]bool)
	for _, q := range sum.Waits {
		open[q.ID] = true
	}
	for _, n := range all {
		if n.Event == definition.NotifyAsks && !open[n.ask] || n.Event == definition.NotifyPaused && sum.Status != mark.RunIsPaused {
			continue
		}
		still = append(still, n)
	}
	return still
}

// files sets where the files of the result are, if the run has a workspace.
func files(view *session.View, n *Notice) {
	p, err := program.Of(view)
	if err != nil {
		return
	}
	def, err := p.Definition()
	if err != nil || def.Workspace == nil {
		return
	}
	v, _ := view.State().Get(runfiles.Key)
	if n.Files = def.Workspace.Handed(v); n.Files.Command != "" && n.Status.IsFinal() {
		n.Next = n.Files.Command
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// titles are the titles of the notices; %s is the name of the definition.
var titles = map[definition.NotifyEvent]string{
	definition.NotifyEnded: "%s has ended", definition.NotifyLimit: "%s was stopped by a limit", definition.NotifyFailed: "%s has failed",
	definition.NotifyAsks: "%s asks you", definition.NotifyLimited: "%s waits for its provider", definition.NotifyBest: "%s has a new best score",
	definition.NotifyPaused: "%s is paused",
}

// message returns the notice for people.
func (n *Notice) message() (channel.Message, error) {
	record, err := json.Marshal(n)
	title := fmt.Sprintf(titles[n.Event], n.Name)
	if n.Status == mark.RunCanceled {
		title = n.Name + " was canceled"
	}
	figures := []string{brief.Count(n.Iterations, "iteration")}
	if n.Score != nil {
		figures = append([]string{"score " + brief.Score(*n.Score)}, figures...)
	}
	if n.Cost != "" {
		figures = append(figures, "$"+n.Cost)
	}
	figures = append(figures, brief.Clock(time.Duration(n.Seconds*float64(time.Second)).Round(time.Second)))
	lines := []string{n.Question, n.Error, n.Why, strings.Join(figures, ", "), n.Result}
	if n.Link == "" {
		lines = append(lines, n.Next)
	}
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	return channel.Message{ID: n.ID, Title: brief.Line(title, 200), Text: strings.TrimSpace(strings.Join(lines, "\n")), Link: n.Link, Record: record}, err
}
