// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// Event is one server-sent event.
type Event struct {
	// Name is the event's type; empty if it has none.
	Name string
	// Data is the lines of data, joined by line feeds. It is valid until the
	// next event.
	Data []byte
}

// mostEvent is more bytes than any line, and the data of any event, has.
const mostEvent = 32 << 20

var errLongEvent = fmt.Errorf("it is longer than %d bytes", mostEvent)

// Events decodes a stream as the HTML standard defines it: lines end in LF, CR or CRLF, and a line that
// begins with a colon is a comment. Events drops an event without data, and an event that the end of the
// stream cuts off. IDs and retry times are ignored, because no provider can resume a stream.
//
// It fails, at last, on an event that is longer than 32 MiB, and as r does.
func Events(r io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		lines := lineReader{r: bufio.NewReader(r)}
		var name string
		var data []byte
		some := false // there was a data field
		for {
			line, err := lines.next()
			if err == nil && len(data)+len(line) > mostEvent {
				err = errLongEvent
			}
			if err != nil {
				if err != io.EOF {
					yield(Event{}, err)
				}
				return
			}
			field, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch {
			case len(line) == 0:
				if some && !yield(Event{name, data}, nil) {
					return
				}
				name, data, some = "", data[:0], false
			case string(field) == "event":
				name = string(value)
			case string(field) == "data":
				if some {
					data = append(data, '\n')
				}
				data, some = append(data, value...), true
			}
		}
	}
}

// lineReader reads lines that end in LF, CR or CRLF. It does not wait for a byte after a CR.
type lineReader struct {
	r     *bufio.Reader
	line  []byte
	begun bool // the first line was read
	cr    bool // the last line ended in CR: an LF still belongs to it
}

// next returns a line, valid until the next call, without its end. Text after the last line end is
// no line.
func (l *lineReader) next() ([]byte, error) {
	l.line = l.line[:0]
	for {
		if _, err := l.r.Peek(1); err != nil {
			return nil, err
		}
		chunk, _ := l.r.Peek(l.r.Buffered())
		if l.cr && chunk[0] == '\n' {
			l.r.Discard(1)
			l.cr = false
			continue
		}
		l.cr = false
		end := bytes.IndexAny(chunk, "\r\n")
		if end < 0 {
			l.line = append(l.line, chunk...)
			l.r.Discard(len(chunk))
			if len(l.line) > mostEvent {
				return nil, errLongEvent
			}
			continue
		}
		l.cr = chunk[end] == '\r'
		l.line = append(l.line, chunk[:end]...)
		l.r.Discard(end + 1)
		if !l.begun {
			l.begun = true
			l.line = bytes.TrimPrefix(l.line, []byte("\uFEFF"))
		}
		return l.line, nil
	}
}

// tooLong reports whether an event was longer than any is.
func tooLong(err error) bool { return errors.Is(err, errLongEvent) }
