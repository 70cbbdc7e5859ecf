// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"bytes"
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
	var text []byte
	if text, m.Sorted = r.clock.appendFinished(r.text[:0], fin, o); m.Sorted {
		r.text = text
		m.Data = bytes.Clone(text)
		return nil
	}
	kept := *o // else each outcome would be allocated
	if m.Data, err = json.Marshal(&finished{*fin, &kept}); err != nil {
		return fmt.Errorf("encode mark %s: %w", mark.KindStepFinished, err)
	}
	return nil
}

// appendFinished appends the JSON of the end of an ordinary step, with the fields of objects sorted by
// name, as seals need them: see [mark.Mark.Sorted]. It returns false for another one.
func (c *clock) appendFinished(dst []byte, f *mark.StepFinished, o *loop.Outcome) (_ []byte, ok bool) {
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
	if dst, ok = c.append(dst, `"finished":"`, o.Finished); !ok {
		return dst, false
	}
	dst = append(strconv.AppendInt(append(dst, `"iteration":`...), int64(o.Iteration), 10), ',')
	if dst, ok = appendTexts(dst, `"left":[`, o.Left); !ok {
		return dst, false
	}
	if dst, ok = c.append(dst, `"started":"`, o.Started); !ok {
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

// clock writes times as package json has them. It keeps the text of the second that it wrote last:
// steps that take less have their times in it, and to make it of a time takes five times as long.
type clock struct {
	second int64
	zone   *time.Location
	text   []byte // such as 2006-01-02T15:04:05+02:00
}

// append appends a field with a time, and a comma, unless the time is zero.
func (c *clock) append(dst []byte, name string, t time.Time) (_ []byte, ok bool) {
	if t.IsZero() {
		return dst, true
	}
	if c.text == nil || t.Unix() != c.second || t.Location() != c.zone {
		text, err := t.Add(-time.Duration(t.Nanosecond())).AppendText(c.text[:0])
		if err != nil { // the text may be half written
			c.text = nil
			return dst, false
		}
		c.second, c.zone, c.text = t.Unix(), t.Location(), text
	}
	const date = len("2006-01-02T15:04:05")
	dst = append(append(dst, name...), c.text[:date]...)
	if nanos := t.Nanosecond(); nanos != 0 {
		dst = append(dst, '.')
		for unit := 100_000_000; nanos > 0; unit /= 10 {
			dst = append(dst, '0'+byte(nanos/unit))
			nanos %= unit
		}
	}
	return append(append(dst, c.text[date:]...), `",`...), true
}

// appendIteration appends the JSON of the record of an ordinary iteration, as package json has it.
// It returns false for another one.
func appendIteration(dst []byte, it *loop.IterationRecord) (_ []byte, ok bool) {
	if it.Score != nil || it.Delta != nil || it.Percent != nil || it.Best || it.Met || it.Unscored != "" ||
		it.Dimensions != nil || it.Samples != 0 || it.Noise != 0 || it.Rejected != "" ||
		it.Warning != "" || it.Findings != nil {
		return dst, false
	}
	dst = strconv.AppendInt(append(dst, `{"number":`...), int64(it.Number), 10)
	if it.Complete {
		dst = append(dst, `,"complete":true`...)
	}
	dst = appendNumber(dst, `,"failures":`, int64(it.Failures))
	dst = appendNumber(dst, `,"state_size":`, it.StateSize)
	return append(dst, '}'), true
}

func appendNumber(dst []byte, name string, n int64) []byte {
	if n == 0 {
		return dst
	}
	return strconv.AppendInt(append(dst, name...), n, 10)
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
