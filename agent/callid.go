// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/session"
)

// origins says by which session the calls of a run are named. A log that was copied
// into another session keeps the names of its calls: whoever was called knows them.
// A fork has names of its own for calls that begin behind its mark.
type origins struct {
	marks []origin
	began map[string]int64 // the event with which a step, or a call of a tool, began
}

type origin struct {
	seq     int64
	session string
}

// add takes in an event of the run, whether or not it counts.
func (o *origins) add(ev *session.Event) error {
	if ev.Address == "" {
		s, err := session.NamesCalls(ev)
		if s != "" {
			o.marks = append(o.marks, origin{ev.Seq, s})
		}
		return err
	}
	if ev.Mark != nil && ev.Mark.Kind == session.MarkStepStarted {
		o.begin(string(ev.Address), ev.Seq)
	}
	if ev.Content == nil || ev.Content.Role != genai.RoleModel {
		return nil
	}
	for _, p := range ev.Content.Parts {
		if p != nil && p.FunctionCall != nil {
			o.begin(string(ev.Address)+"\x00"+p.FunctionCall.ID, ev.Seq)
		}
	}
	return nil
}

func (o *origins) begin(what string, seq int64) {
	if _, known := o.began[what]; !known {
		o.began[what] = seq
	}
}

// of is the session that names a call: the one that the log was in when it began.
func (o *origins) of(what string) (session string) {
	began, known := o.began[what]
	for _, m := range o.marks {
		if !known || m.seq < began || session == "" {
			session = m.session
		}
	}
	return session
}

// naming is the session by which a call of the step of ctx is named; of one of a
// tool with its ID.
func naming(ctx InvocationContext, functionCall string) string {
	if inv := invocationOf(ctx); inv != nil && inv.run.Replay != nil {
		what := string(inv.address)
		if functionCall != "" {
			what += "\x00" + functionCall
		}
		if s := inv.run.Replay.origins.of(what); s != "" {
			return s
		}
	}
	return ctx.Session().ID()
}
