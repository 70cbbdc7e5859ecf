// SPDX-License-Identifier: Apache-2.0

package child

import (
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Input sets the standard input of a command before the command starts. The command reads a file with the whole text
// instead of a pipe. If this process were killed while it writes into a pipe, the command would take the first part
// for the whole input and act on it.
//
// The file has no name, so that no file is left behind. It is in memory on Linux, and in [os.TempDir] on other
// systems. Input returns an error if the text cannot be written, for example because there is no space. Call done
// when the command has ended.
func Input(cmd *exec.Cmd, text io.Reader) (done func(), err error) {
	f, remove, err := nameless()
	if err != nil {
		return nil, inputError(err)
	}
	done = func() {
		f.Close()
		remove()
	}
	if _, err = io.Copy(f, text); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		done()
		return nil, inputError(err)
	}
	cmd.Stdin = f
	return done, nil
}

func inputError(err error) error {
	return fmt.Errorf("store the standard input: %w; free space there and run it again", err)
}

// temporary returns a file in the folder for temporary files. If an open file can be removed, its name is already
// gone; otherwise remove deletes it.
func temporary() (f *os.File, remove func(), err error) {
	if f, err = os.CreateTemp("", "refrain-input-*"); err != nil {
		return nil, nil, err
	}
	if os.Remove(f.Name()) == nil {
		return f, func() {}, nil
	}
	return f, func() { os.Remove(f.Name()) }, nil
}
