// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/dialect"
)

// dialectFlags are the flags of refrain import and refrain export where they
// are about definitions.
type dialectFlags struct {
	dialect string // --from or --to
	out     string
	agent   string
	json    bool
	force   bool
}

func writeReport(w io.Writer, f dialectFlags, r *dialect.Report) error {
	if !f.json {
		return r.Format(w)
	}
	return term.WriteJSON(w, r)
}

// writeNew writes a file, and over one that is there only if it is to.
func writeNew(root *os.Root, name string, data []byte, force bool) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if !force {
		flags |= os.O_EXCL
	}
	file, err := root.OpenFile(name, flags, 0o644)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists already; overwrite it with --force", filepath.Join(root.Name(), name))
	}
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}
