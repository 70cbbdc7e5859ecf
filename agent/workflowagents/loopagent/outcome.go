// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"bytes"
	"strconv"
	"time"

	"github.com/refrain-dev/refrain/loop"
)

// readOrdinary reads the outcome of an ordinary step as appendFinished has written it. It returns
// false, and changes nothing, for anything else: package json reads that, which takes longer.
func readOrdinary(data []byte, o *loop.Outcome) bool {
	p := scanned{rest: data}
	var got loop.Outcome
	got.Iteration, got.Step = int(p.number(`{"iteration":`)), int(p.number(`,"step":`))
	if p.has(`,"started":`) {
		p.time(&got.Started)
	}
	if p.has(`,"finished":`) {
		p.time(&got.Finished)
	}
	if p.next(`,"between_ns":`) {
		got.Between = time.Duration(p.number(`,"between_ns":`))
	}
	if p.has(`,"left":[`) {
		got.Left = p.texts()
	}
	if p.has(`,"wrote":[`) {
		got.Wrote = p.texts()
	}
	if p.has(`,"fingerprint":`) {
		got.Fingerprint = string(p.text())
	}
	if p.next(`,"state_size":`) {
		got.StateSize = p.number(`,"state_size":`)
	}
	if p.bad || string(p.rest) != "}" {
		return false
	}
	*o = got
	return true
}

// scanned is JSON that is read from its beginning.
type scanned struct {
	rest []byte
	bad  bool // it is not as it is written here
}

func (p *scanned) next(text string) bool { return bytes.HasPrefix(p.rest, []byte(text)) }

// has reports whether a text comes next, and reads it then.
func (p *scanned) has(text string) bool {
	if !p.next(text) {
		return false
	}
	p.rest = p.rest[len(text):]
	return true
}

// number reads an integer behind its name.
func (p *scanned) number(name string) int64 {
	if !p.has(name) {
		p.bad = true
		return 0
	}
	i := 0
	for i < len(p.rest) && (p.rest[i] == '-' && i == 0 || p.rest[i] >= '0' && p.rest[i] <= '9') {
		i++
	}
	digits := p.rest[:i]
	n, err := strconv.ParseInt(string(digits), 10, 64)
	first := bytes.TrimPrefix(digits, []byte("-"))
	p.bad = p.bad || err != nil || len(first) > 1 && first[0] == '0'
	p.rest = p.rest[i:]
	return n
}

// text reads a text without escapes.
func (p *scanned) text() []byte {
	if p.has(`"`) {
		if end := bytes.IndexByte(p.rest, '"'); end >= 0 && isPlain(p.rest[:end]) {
			text := p.rest[:end]
			p.rest = p.rest[end+1:]
			return text
		}
	}
	p.bad = true
	return nil
}

// texts reads a list behind its bracket.
func (p *scanned) texts() []string {
	all := []string{}
	for !p.bad && !p.has("]") {
		if len(all) > 0 && !p.has(",") {
			p.bad = true
		}
		all = append(all, string(p.text()))
	}
	return all
}

func (p *scanned) time(to *time.Time) {
	p.bad = p.bad || to.UnmarshalText(p.text()) != nil
}
