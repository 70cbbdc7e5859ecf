// SPDX-License-Identifier: Apache-2.0

// Package pipe reads files that may be named pipes without waiting for ever.
package pipe

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// patience is how long a read from a named pipe waits for the next data.
const patience = 3 * time.Second

// errSilent means that nothing was written to a pipe in time.
var errSilent = errors.New("nothing writes to the named pipe")

// Open opens a file. It opens a named pipe at once, whether or not a program has it open for writing. A read from the
// pipe fails if no data comes for three seconds.
func Open(name string) (io.ReadCloser, error) {
	info, err := os.Stat(name)
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return os.Open(name)
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return &pipe{File: f}, nil
}

// pipe is a named pipe.
type pipe struct {
	*os.File

	begun bool // data was written
}

// Read fails if nothing is written for a while. Before the first data, an end of file only means that no program has
// opened the pipe for writing yet.
func (p *pipe) Read(b []byte) (int, error) {
	until := time.Now().Add(patience)
	_ = p.SetReadDeadline(until) // on systems without deadlines, a read waits
	for {
		n, err := p.File.Read(b)
		p.begun = p.begun || n > 0
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return n, errSilent
		case n > 0 || p.begun || !errors.Is(err, io.EOF):
			return n, err
		case time.Now().After(until):
			return 0, errSilent
		}
		time.Sleep(10 * time.Millisecond)
	}
}
