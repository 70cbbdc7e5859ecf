// SPDX-License-Identifier: Apache-2.0

package live

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// diary writes what a run with a coding agent does to a file that a person can follow: each message and tool call of the
// agent, the last lines that a command prints, waits, and the cost so far. A nil diary writes nothing. Its errors end no run.
type diary struct {
	file   io.WriteCloser
	spends func() string // the cost so far; "" if it is unknown
	agents map[string]bool
	broken bool
	said   string // what a command has printed last
}

// Sizes of what a diary has of one event.
const (
	mostWords = 4000 // bytes of an agent's message
	mostLines = 10   // of a command's output, from its end
)

// newDiary returns a diary for a definition with a coding agent, and nil for another.
func newDiary(def *definition.Definition, open func() (*os.File, error), spends func() string) (*diary, error) {
	agents := make(map[string]bool)
	for a := range def.Root.All {
		if a.Type == definition.TypeCLI {
			agents[a.Name] = true
		}
	}
	if len(agents) == 0 {
		return nil, nil
	}
	file, err := open()
	if err != nil {
		return nil, err
	}
	return &diary{file: file, spends: spends, agents: agents}, nil
}

func (d *diary) close() {
	if d != nil {
		_ = d.file.Close()
	}
}

// line writes a line with its time; a zero time is now.
func (d *diary) line(at time.Time, text string) {
	if d == nil || d.broken {
		return
	}
	if at.IsZero() {
		at = time.Now()
	}
	_, err := fmt.Fprintln(d.file, at.Local().Format(time.DateTime), text)
	d.broken = err != nil
}

// event writes an event, and the lines that report it.
func (d *diary) event(ev *session.Event, lines []string) {
	if d == nil {
		return
	}
	name := ev.Address.Agent()
	where := "[" + name + "] "
	if ev.Iteration > 0 {
		where = fmt.Sprintf("[%d %s] ", ev.Iteration, name)
	}
	doing, _ := ev.CustomMetadata[mark.MetadataDoing].(string)
	switch {
	case ev.Partial && doing != "":
		d.line(ev.Timestamp, where+doing)
	case ev.Partial || ev.Author == "user":
	case ev.Mark != nil && ev.Mark.Kind == mark.KindStepStarted && d.agents[name]:
		d.line(ev.Timestamp, where+"begins")
	case ev.Mark == nil && ev.Text() != "":
		text := strings.TrimSpace(ev.Text())
		words := strings.Split(brief.EndBytes(text, mostWords), "\n")
		if !d.agents[name] {
			if text == d.said || json.Valid([]byte(text)) { // of a step of the loop's own
				break
			}
			d.said = text
			words = words[max(0, len(words)-mostLines):]
		}
		for _, w := range words {
			if w = brief.Clean(w); strings.TrimSpace(w) != "" {
				d.line(ev.Timestamp, where+w)
			}
		}
	}
	for _, l := range lines {
		d.line(ev.Timestamp, l)
	}
	if ev.Mark != nil && ev.Mark.Kind == mark.KindIterationFinished {
		if spent := d.spends(); spent != "" {
			d.line(ev.Timestamp, "cost so far: "+spent)
		}
	}
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
