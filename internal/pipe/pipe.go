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

// patience is how long the reader of a named pipe waits for what is written next.
const patience = 3 * time.Second

// errSilent says that a pipe was waited for in vain.
var errSilent = errors.New("nothing writes to the named pipe")

// Open opens a file. A named pipe is opened at once, whether or not something
// writes to it; a read from it fails if nothing comes for three seconds.
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

	begun bool // something was written
}

// Read fails if nothing is written for a while. Until something was, an end only
// says that nothing has opened the pipe for writing yet.
func (p *pipe) Read(b []byte) (int, error) {
	until := time.Now().Add(patience)
	_ = p.SetReadDeadline(until) // where that is not possible, a read waits
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
