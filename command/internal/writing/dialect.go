// SPDX-License-Identifier: Apache-2.0

package writing

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/authoring/dialect"
)

// dialectFlags are the flags of refrain import and refrain export that concern definitions.
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

// thereError lists the existing files because of which nothing was written.
type thereError []string

func (e thereError) Error() string {
	if len(e) == 1 {
		return fmt.Sprintf("%s exists already, so nothing was written; overwrite it with --force", e[0])
	}
	return fmt.Sprintf("%s exist already, so nothing was written; overwrite them with --force", strings.Join(e, ", "))
}

// writeAll writes files into a folder, which it creates if needed. If a file exists and may not be overwritten, writeAll writes
// no file and returns a thereError.
func writeAll(dir string, files []dialect.File, force bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	var there thereError
	for _, file := range files {
		info, err := root.Lstat(file.Name)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return err
		case info.IsDir():
			return fmt.Errorf("%s is a folder, so nothing was written; remove it, or write to another folder", filepath.Join(dir, file.Name))
		case !force:
			there = append(there, filepath.Join(dir, file.Name))
		}
	}
	if there != nil {
		return there
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if !force {
		flags |= os.O_EXCL
	}
	for n, file := range files {
		out, err := root.OpenFile(file.Name, flags, 0o644)
		if err == nil {
			_, err = out.Write(file.Data)
			err = errors.Join(err, out.Close())
		}
		if err != nil && !force {
			for _, written := range files[:n] {
				err = errors.Join(err, root.Remove(written.Name))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
