// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"bytes"
	"strconv"
	"time"

	"github.com/refrain-dev/refrain/loop"
)

// readOrdinary reads the outcome of an ordinary step as appendFinished writes it, or as it was written
// in another order of its fields. It returns false, and changes nothing, for anything else: package
// json reads that, which takes longer.
func readOrdinary(data []byte, o *loop.Outcome) bool {
	p := scanned{rest: data}
	var got loop.Outcome
	seen := 0
	for p.bad = !p.has("{"); !p.bad; {
		if field := p.field(&got); field == 0 || seen&field != 0 { // package json takes the last of two
			return false
		} else {
			seen |= field
		}
		if p.has("}") {
			break
		}
		p.bad = p.bad || !p.has(",")
	}
	if p.bad || len(p.rest) > 0 {
		return false
	}
	*o = got
	return true
}

// field reads a field of an outcome, and returns a number of its own, one bit; 0 for another field.
func (p *scanned) field(o *loop.Outcome) int {
	name := p.text()
	p.bad = p.bad || !p.has(":")
	switch string(name) {
	case "iteration":
		o.Iteration = int(p.number())
		return 1 << 0
	case "step":
		o.Step = int(p.number())
		return 1 << 1
	case "started":
		p.time(&o.Started)
		return 1 << 2
	case "finished":
		p.time(&o.Finished)
		return 1 << 3
	case "between_ns":
		o.Between = time.Duration(p.number())
		return 1 << 4
	case "left":
		o.Left = p.texts()
		return 1 << 5
	case "wrote":
		o.Wrote = p.texts()
		return 1 << 6
	case "fingerprint":
		o.Fingerprint = string(p.text())
		return 1 << 7
	case "state_size":
		o.StateSize = p.number()
		return 1 << 8
	}
	return 0
}

// scanned is JSON that is read from its beginning.
type scanned struct {
	rest []byte
	bad  bool // it is not as it is written here
}

// has reports whether a text comes next, and reads it then.
func (p *scanned) has(text string) bool {
	if !bytes.HasPrefix(p.rest, []byte(text)) {
		return false
	}
	p.rest = p.rest[len(text):]
	return true
}

// number reads an integer.
func (p *scanned) number() int64 {
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

// texts reads a list of texts.
func (p *scanned) texts() []string {
	p.bad = p.bad || !p.has("[")
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
