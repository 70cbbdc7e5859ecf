// SPDX-License-Identifier: Apache-2.0

package live

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// diary writes what a run with a coding agent does to a file that a person can follow: each message and tool call of the
// agent, the last lines that a command prints, waits, and the cost so far. The output of a command without a terminal has the same
// lines. A nil diary writes nothing. Its errors end no run.
type diary struct {
	file   io.WriteCloser // nil without a file
	spends func() string  // the cost so far; "" if it is unknown
	agents map[string]bool
	quiet  map[string]bool   // steps whose output only the loop reads
	codes  map[string]string // the state keys of the results of commands, by their steps
	broken bool

	doing  string            // what an agent does, in its last line
	last   string            // the last text of a step
	said   map[string]string // the last text of each step but agents
	waits  string            // step of which a line said that its provider does not answer
	waited time.Time         // when it said so
}

// Sizes of what a diary has of one event.
const (
	mostWords = 4000 // bytes of an agent's message
	mostLines = 10   // of a command's output, from its end
)

// waitsEvery is how often a line says that the provider of a coding agent does not answer.
const waitsEvery = 10 * time.Second

// newDiary returns a diary for a definition with a coding agent, and nil for another. If the file cannot be opened, the diary has none.
func newDiary(def *definition.Definition, open func() (*os.File, error), spends func() string) (*diary, error) {
	d := &diary{spends: spends, agents: make(map[string]bool), quiet: make(map[string]bool), codes: make(map[string]string), said: make(map[string]string)}
	for a := range def.Root.All {
		if a.Type == definition.TypeCLI {
			d.agents[a.Name] = true
		}
		if a.Command != nil && a.ResultKey != "" {
			d.codes[a.Name] = a.ResultKey
		}
		if a.Loop == nil || a.Loop.NoProgress == nil {
			continue
		}
		for _, sub := range a.SubAgents { // a step that prints what is compared
			d.quiet[sub.Name] = sub.OutputKey != "" && slices.Contains(a.Loop.NoProgress.Keys, sub.OutputKey)
		}
	}
	if len(d.agents) == 0 {
		return nil, nil
	}
	file, err := open()
	if err == nil {
		d.file = file
	}
	return d, err
}

func (d *diary) close() {
	if d != nil && d.file != nil {
		_ = d.file.Close()
	}
}

// line writes a line with its time; a zero time is now.
func (d *diary) line(at time.Time, text string) {
	if d == nil || d.broken || d.file == nil {
		return
	}
	if at.IsZero() {
		at = time.Now()
	}
	_, err := fmt.Fprintln(d.file, at.Local().Format(time.DateTime), text)
	d.broken = err != nil
}

// event writes an event, with the lines that report it, and returns what it has written.
func (d *diary) event(ev *session.Event, lines []string) []string {
	if d == nil {
		return lines
	}
	name := ev.Address.Agent()
	where := "[" + name + "] "
	if ev.Iteration > 0 {
		where = fmt.Sprintf("[%d %s] ", ev.Iteration, name)
	}
	var all []string
	for _, words := range d.words(ev, name) {
		if words = brief.Clean(words); strings.TrimSpace(words) != "" {
			all = append(all, where+words)
		}
	}
	all = append(all, lines...)
	if ev.Mark != nil && ev.Mark.Kind == mark.KindIterationFinished {
		if spent := d.spends(); spent != "" {
			all = append(all, "cost so far: "+spent)
		}
	}
	for _, l := range all {
		d.line(ev.Timestamp, l)
	}
	return all
}

// words returns what a step says or does in an event.
func (d *diary) words(ev *session.Event, name string) []string {
	doing, _ := ev.CustomMetadata[mark.MetadataDoing].(string)
	text := strings.TrimSpace(ev.Text())
	switch {
	case ev.Partial && strings.HasPrefix(doing, mark.DoingWaits):
		if d.waits == name && time.Since(d.waited) < waitsEvery {
			return nil
		}
		d.waits, d.waited = name, time.Now()
		return []string{doing}
	case ev.Partial && doing != "":
		d.doing = doing
		return []string{doing}
	case ev.Partial || ev.Author == "user":
	case ev.Mark != nil && ev.Mark.Kind == mark.KindStepStarted && d.agents[name]:
		return []string{"begins"}
	case ev.Mark == nil && text == "" && d.codes[name] != "":
		result, _ := ev.Actions.StateDelta[d.codes[name]].(map[string]any)
		if code, is := result["exit_code"]; is {
			return []string{fmt.Sprintf("exit code %v, without output", code)}
		}
	case ev.Mark != nil || text == "" || d.quiet[name]:
	case d.agents[name]:
		d.last = text
		if strings.Join(strings.Fields(text), " ") == d.doing { // its last message
			return nil
		}
		return strings.Split(brief.EndBytes(text, mostWords), "\n")
	case text == d.last || json.Valid([]byte(text)): // of the loop, and of a step of the loop's own
	case text == d.said[name]:
		return []string{"the same as before"}
	default:
		d.last, d.said[name] = text, text
		lines := strings.Split(brief.EndBytes(text, mostWords), "\n")
		return lines[max(0, len(lines)-mostLines):]
	}
	return nil
}

// finished writes the end of the run, and what the command prints about it.
func (d *diary) finished(req Request, res result) {
	if d == nil {
		return
	}
	for _, line := range closing(req, res) {
		d.line(res.at, line)
	}
}
