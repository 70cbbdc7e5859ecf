// SPDX-License-Identifier: Apache-2.0

package runlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// exportSchema is the version of the file format that Export writes. ReadFile refuses a file with a higher
// version.
const exportSchema = 1

// ExportHead is the first line of an exported run. A file that refrain run --record wrote does not have this
// line.
type ExportHead struct {
	Type   string `json:"type"` // run
	Schema int    `json:"schema"`
	// ID is the ID of the run, and Name the name of its definition.
	ID     string `json:"id"`
	Name   string `json:"name,omitempty"`
	Status string `json:"status,omitempty"`
	// Events is the number of events, each in one of the lines after this one.
	Events int64 `json:"events"`
	// State has the keys of the session's initial state that no event wrote.
	State map[string]any `json:"state,omitempty"`
	// Audit means that the line of each event has a hash. Hashed means that the last line has the hash of all events.
	// Sealed means that the run has ended with a seal; in files of older versions it means the same as Hashed.
	Audit  bool `json:"audit,omitempty"`
	Hashed bool `json:"hashed,omitempty"`
	Sealed bool `json:"sealed,omitempty"`
	// Refrain is the version of the program that wrote the file.
	Refrain string `json:"refrain,omitempty"`
}

// isOver reports whether the run had ended when it was exported.
func (h *ExportHead) isOver() bool { return h != nil && mark.RunStatus(h.Status).IsFinal() }

// exportTail is the last line of an export.
type exportTail struct {
	Type   string `json:"type"` // end
	Events int64  `json:"events"`
	Chain  string `json:"chain"`
	// Masked is the number of lines from which secrets were removed.
	Masked int64 `json:"masked,omitempty"`
}

// File is a file of events that [Run.Export] or refrain run --record has written. It keeps only the first and the last
// event in memory, because a log can be larger than the memory. Each pass over the log reads the file again.
type File struct {
	Name string
	Head *ExportHead // nil if the file has none
	Cut  bool        // the last line is incomplete, as after a crash; it does not count

	copy        *os.File // a copy of stdin, because stdin can be read only once
	end         int64    // the size of the lines that count, in bytes
	n           int      // the number of events
	first, last *session.Event
	gone        mark.Spans // the superseded events
	tail        *exportTail
	err         error // the first error of a pass after ReadFile
}

// Masked returns the number of lines from which secrets were removed when the file was written: see
// [ExportOptions]. If it is not 0, the hashes of the file are not those of the run.
func (l *File) Masked() int64 {
	if l.tail == nil {
		return 0
	}
	return l.tail.Masked
}

// Run returns the run in the file. Its ID is empty if the file has no head.
func (l *File) Run() *Run {
	r := &Run{File: l}
	if l.Head != nil {
		r.ID, r.Initial = l.Head.ID, l.Head.State
	}
	return r
}

// Size returns the size of the file in bytes, without an incomplete last line.
func (l *File) Size() int64 { return l.end }

// Len returns the number of events in the file.
func (l *File) Len() int { return l.n }

// maxLine is the largest length of a line, in bytes.
const maxLine = 64 << 20

// ReadFile reads a file of events once and checks the form of each line; the name "-" means stdin. The caller closes the
// file when it is done.
func ReadFile(name string, stdin io.Reader) (*File, error) {
	log := &File{Name: name}
	if name == "-" {
		if err := log.keep(stdin); err != nil {
			_ = log.Close()
			return nil, fmt.Errorf("keep the events of stdin in a file: %w", err)
		}
	}
	log.end = math.MaxInt64
	var end int64
	err := log.scan(func(line []byte, n int, whole bool) error {
		if !whole && !json.Valid(line) && (n > 1 || bytes.HasPrefix(line, []byte("{"))) {
			log.Cut = true
			return nil
		}
		end += int64(len(line))
		return log.add(line)
	})
	if err != nil {
		_ = log.Close()
		return nil, err
	}
	log.end = end
	return log, nil
}

// Close closes and removes the copy of stdin. It does nothing for another file.
func (l *File) Close() error {
	if l.copy == nil {
		return nil
	}
	err := l.copy.Close()
	_ = os.Remove(l.copy.Name()) // for systems that cannot remove an open file; see keep
	return err
}

// keep copies stdin to a temporary file, which it removes from its folder at once.
func (l *File) keep(stdin io.Reader) (err error) {
	if l.copy, err = os.CreateTemp("", "refrain-log-"); err != nil {
		return err
	}
	_ = os.Remove(l.copy.Name()) // fails on systems that cannot remove an open file; Close removes it then
	_, err = io.Copy(l.copy, stdin)
	return err
}

// scan calls visit with each line up to l.end, and with its number from 1. whole is true if the line ends with a line
// break. If visit returns errStop, scan stops and returns nil. To another error of visit, scan adds the name of the file
// and the number of the line.
func (l *File) scan(visit func(line []byte, n int, whole bool) error) error {
	var from io.Reader
	if l.copy != nil {
		from = io.NewSectionReader(l.copy, 0, l.end)
	} else {
		f, err := os.Open(l.Name)
		if err != nil {
			return err
		}
		defer f.Close()
		from = io.LimitReader(f, l.end)
	}
	r := bufio.NewReaderSize(from, 1<<16)
	for n := 1; ; n++ {
		line, err := ReadLine(r)
		over := errors.Is(err, io.EOF)
		if err == nil || over && len(line) > 0 {
			if err = visit(line, n, !over); err == errStop {
				return nil
			}
		} else if over {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", l.Name, n, err)
		}
		if over {
			return nil
		}
	}
}

// errStop ends a scan.
var errStop = errors.New("stop")

// record is a line of the file.
type record struct {
	kind, chain string
	ev          *session.Event // nil for the first and the last line of an export, and for an empty line
}

// parse decodes a line. begins is true if the line may be the first line of an export. headed is true if the file has such a
// first line.
func parse(line []byte, begins, headed bool) (r record, err error) {
	var kind struct{ Type, Chain string }
	if len(bytes.TrimSpace(line)) == 0 {
		return r, nil
	}
	if err := json.Unmarshal(line, &kind); err != nil {
		return r, fmt.Errorf("not a log of a run, which has one JSON object a line (refrain export writes one): %w", err)
	}
	r.kind, r.chain = kind.Type, kind.Chain
	if r.kind == "run" && begins || r.kind == "end" && headed {
		return r, nil
	}
	r.kind, r.ev = "event", new(session.Event)
	if err := json.Unmarshal(line, r.ev); err != nil {
		return r, fmt.Errorf("not a log of a run, which has one JSON object a line (refrain export writes one): %w", err)
	}
	return r, nil
}

// add checks the next line of the file, and keeps what the fields of File need from it.
func (l *File) add(line []byte) error {
	r, err := parse(line, l.Head == nil && l.n == 0, l.Head != nil)
	switch {
	case err != nil || r.kind == "":
		return err
	case l.tail != nil:
		return errors.New("there are lines after the last line of the export")
	case r.kind == "run":
		l.Head = new(ExportHead)
		if err := json.Unmarshal(line, l.Head); err != nil {
			return fmt.Errorf("not the first line of an export: %w", err)
		}
		if l.Head.Schema > exportSchema {
			return fmt.Errorf("a newer refrain wrote this file (%s, schema %d; this one reads up to %d): read it "+
				"with that version", l.Head.Refrain, l.Head.Schema, exportSchema)
		}
		return nil
	case r.kind == "end":
		l.tail = new(exportTail)
		if err := json.Unmarshal(line, l.tail); err != nil {
			return fmt.Errorf("not the last line of an export: %w", err)
		}
		return nil
	case r.ev.InvocationID == "":
		return errors.New("not an event of a run: it belongs to no invocation; write events with refrain export or " +
			"refrain run --record FILE")
	}
	if s := r.ev.Mark.Supersedes(); s != nil {
		l.gone = l.gone.Union(s)
	}
	if l.n++; l.n == 1 {
		l.first = r.ev
	}
	l.last = r.ev
	return nil
}

// All reads the file again and yields its events. If that fails, it stops, and [Run.Err] returns the error.
func (l *File) All() iter.Seq[*session.Event] {
	return func(yield func(*session.Event) bool) {
		for r := range l.records {
			if !yield(r.ev) {
				return
			}
		}
	}
}

// records reads the file again and yields each event with its hash and the number of its line.
func (l *File) records(yield func(r record, line int) bool) {
	seen := 0
	err := l.scan(func(line []byte, n int, _ bool) error {
		r, err := parse(line, seen == 0 && l.Head != nil, l.Head != nil)
		if err != nil || r.ev == nil {
			return err
		}
		if seen++; !yield(r, n) {
			return errStop
		}
		return nil
	})
	if l.err == nil {
		l.err = err
	}
}

// ReadLine reads a line with its line break. The last line may lack the line break; then ReadLine returns it together with
// io.EOF. It returns an error for a line of more than 64 MiB.
func ReadLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, fmt.Errorf("a line of more than %d MiB", maxLine>>20)
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}
