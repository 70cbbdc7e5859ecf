// SPDX-License-Identifier: Apache-2.0

package runlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// exportSchema is the version of the file that export writes. A file of a higher
// one is refused.
const exportSchema = 1

// ExportHead is the first line of an exported run. A file of refrain run
// --record has none.
type ExportHead struct {
	Type   string `json:"type"` // run
	Schema int    `json:"schema"`
	// ID is the run's, Name that of its definition.
	ID     string `json:"id"`
	Name   string `json:"name,omitempty"`
	Status string `json:"status,omitempty"`
	// Events is how many lines follow.
	Events int64 `json:"events"`
	// State has the keys that the session was made with, and no event wrote.
	State map[string]any `json:"state,omitempty"`
	// Audit says that each line has its hash, and Hashed that the last one has that of all. Sealed says
	// that the run has ended with a seal; in files of older versions it says what Hashed says.
	Audit  bool `json:"audit,omitempty"`
	Hashed bool `json:"hashed,omitempty"`
	Sealed bool `json:"sealed,omitempty"`
	// Refrain is the version of the program that wrote the file.
	Refrain string `json:"refrain,omitempty"`
}

// over reports whether the run was over when it was exported.
func (h *ExportHead) over() bool { return h != nil && mark.RunStatus(h.Status).Over() }

// exportTail is the last line of an export.
type exportTail struct {
	Type   string `json:"type"` // end
	Events int64  `json:"events"`
	Chain  string `json:"chain"`
	// Masked is how many lines had secrets, which were struck out.
	Masked int64 `json:"masked,omitempty"`
}

// File is what a file of events holds: one that [Run.Export] wrote, or refrain run --record.
type File struct {
	Name   string
	Head   *ExportHead // nil: it has none
	Events []*session.Event
	lines  []int    // of the events
	hashes []string // of the events, "" where there is none
	tail   *exportTail
	Cut    bool // the last line has no end, as after a crash; it is left out
}

// Masked returns how many lines of the file had secrets that were struck out when it was written: see
// [ExportOptions]. With any, its hashes are not those of the run.
func (l *File) Masked() int64 {
	if l.tail == nil {
		return 0
	}
	return l.tail.Masked
}

// Run is the run in the file. Its ID is empty if the file has no head, which says it.
func (l *File) Run() *Run {
	r := &Run{File: l, FileEvents: l.Events}
	if l.Head != nil {
		r.ID, r.Initial = l.Head.ID, l.Head.State
	}
	return r
}

// maxLine bounds an event in a file.
const maxLine = 64 << 20

// ReadFile reads a file of events; "-" is stdin.
func ReadFile(name string, stdin io.Reader) (*File, error) {
	from := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		from = f
	}
	log := &File{Name: name}
	r := bufio.NewReaderSize(from, 1<<16)
	for n := 1; ; n++ {
		line, err := ReadLine(r)
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return log, nil
		case errors.Is(err, io.EOF) && !json.Valid(line) && (n > 1 || bytes.HasPrefix(line, []byte("{"))):
			log.Cut = true
			return log, nil
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := log.add(line, n); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}
}

// add takes the n-th line.
func (l *File) add(line []byte, n int) error {
	var kind struct{ Type, Chain string }
	if err := json.Unmarshal(line, &kind); err != nil {
		return fmt.Errorf("not a log of a run, which has one JSON object a line (refrain export writes one): %w", err)
	}
	switch {
	case l.tail != nil:
		return errors.New("there are lines after the last line of the export")
	case kind.Type == "run" && l.Head == nil && len(l.Events) == 0:
		l.Head = new(ExportHead)
		if err := json.Unmarshal(line, l.Head); err != nil {
			return fmt.Errorf("not the first line of an export: %w", err)
		}
		if l.Head.Schema > exportSchema {
			return fmt.Errorf("a newer refrain wrote this file (%s, schema %d; this one reads up to %d): read it "+
				"with that version", l.Head.Refrain, l.Head.Schema, exportSchema)
		}
		return nil
	case kind.Type == "end" && l.Head != nil:
		l.tail = new(exportTail)
		if err := json.Unmarshal(line, l.tail); err != nil {
			return fmt.Errorf("not the last line of an export: %w", err)
		}
		return nil
	}
	ev := new(session.Event)
	if err := json.Unmarshal(line, ev); err != nil {
		return fmt.Errorf("not a log of a run, which has one JSON object a line (refrain export writes one): %w", err)
	}
	if ev.InvocationID == "" {
		return errors.New("not an event of a run: it belongs to no invocation; write events with refrain export or " +
			"refrain run --record FILE")
	}
	l.Events, l.lines, l.hashes = append(l.Events, ev), append(l.lines, n), append(l.hashes, kind.Chain)
	return nil
}

// ReadLine reads a line that is not too long; the last one may have no end.
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
