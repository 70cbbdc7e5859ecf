// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session/mark"
)

// finished is a [mark.StepFinished] with its outcome, so that both become JSON at once.
type finished struct {
	mark.StepFinished
	Outcome *loop.Outcome `json:"outcome"`
}

// finish gives the mark that a step has finished its data. Most steps end without anything special:
// their JSON is written here, and that of others by package json, which takes four times as long.
func (r *run) finish(m *mark.Mark, fin *mark.StepFinished, o *loop.Outcome) (err error) {
	if m.Data, m.Sorted = appendFinished(make([]byte, 0, usualLength), fin, o); m.Sorted {
		return nil
	}
	kept := *o // else each outcome would be allocated
	if m.Data, err = json.Marshal(&finished{*fin, &kept}); err != nil {
		return fmt.Errorf("encode mark %s: %w", mark.KindStepFinished, err)
	}
	return nil
}

// usualLength is the approximate length of the JSON of an ordinary step, in bytes.
const usualLength = 192

// appendFinished appends the JSON of the end of an ordinary step, with the fields of objects sorted by
// name, as seals need them: see [mark.Mark.Sorted]. It returns false for another one.
func appendFinished(dst []byte, f *mark.StepFinished, o *loop.Outcome) (_ []byte, ok bool) {
	seconds := f.Seconds
	if isSpecial(f, o) || seconds != 0 && (math.IsNaN(seconds) || math.Abs(seconds) < 1e-6 || math.Abs(seconds) >= 1e21) {
		return dst, false
	}
	dst = append(dst, `{"outcome":{`...)
	if o.Between != 0 {
		dst = append(strconv.AppendInt(append(dst, `"between_ns":`...), int64(o.Between), 10), ',')
	}
	if o.Fingerprint != "" {
		if !isPlain(o.Fingerprint) {
			return dst, false
		}
		dst = append(append(append(dst, `"fingerprint":"`...), o.Fingerprint...), `",`...)
	}
	if dst, ok = appendTime(dst, `"finished":"`, o.Finished); !ok {
		return dst, false
	}
	dst = append(strconv.AppendInt(append(dst, `"iteration":`...), int64(o.Iteration), 10), ',')
	if dst, ok = appendTexts(dst, `"left":[`, o.Left); !ok {
		return dst, false
	}
	if dst, ok = appendTime(dst, `"started":"`, o.Started); !ok {
		return dst, false
	}
	if o.StateSize != 0 {
		dst = append(strconv.AppendInt(append(dst, `"state_size":`...), o.StateSize, 10), ',')
	}
	dst = append(strconv.AppendInt(append(dst, `"step":`...), int64(o.Step), 10), ',')
	if dst, ok = appendTexts(dst, `"wrote":[`, o.Wrote); !ok {
		return dst, false
	}
	dst = append(dst[:len(dst)-1], `},"seconds":`...)
	return append(strconv.AppendFloat(dst, seconds, 'f', -1, 64), '}'), true
}

// appendTime appends a field with a time as package json has it, and a comma, unless the time is zero.
func appendTime(dst []byte, name string, t time.Time) (_ []byte, ok bool) {
	if t.IsZero() {
		return dst, true
	}
	dst, err := t.AppendText(append(dst, name...))
	return append(dst, `",`...), err == nil
}

// appendTexts appends a field with a list of texts, and a comma, unless the list is nil.
func appendTexts(dst []byte, name string, texts []string) (_ []byte, ok bool) {
	if texts == nil {
		return dst, true
	}
	dst = append(dst, name...)
	for i, s := range texts {
		if !isPlain(s) {
			return dst, false
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), s...), '"')
	}
	return append(dst, "],"...), true
}

// isPlain reports whether a text is the same in JSON.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

// isSpecial reports whether the end of a step says more than appendFinished writes.
func isSpecial(f *mark.StepFinished, o *loop.Outcome) bool {
	return f.Error != "" || f.Kind != "" || f.Permanent || f.Budget != "" || f.RetryAfter != 0 || f.Timeout ||
		f.Canceled || f.Again || f.At != "" || f.Usage != nil ||
		o.Waited != 0 || o.Limited != 0 || o.Failure != nil || o.Canceled != "" || o.Exit != nil || o.ExitWords || o.State != nil ||
		o.Usage != (loop.Usage{}) || o.Cached || o.RolledBack
}
