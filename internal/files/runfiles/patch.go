// SPDX-License-Identifier: Apache-2.0

package runfiles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/refrain-dev/refrain/internal/files/workspace"
)

// insteadOf stands between the patch and the file of another that is in its place, where the state says where the files went.
const insteadOf = ", because "

// errNotOurs says that there is a file in the place of a patch which no run has written.
var errNotOurs = errors.New("a file of this name exists and is not a patch of a run; rename the file, or choose another name")

// checkPatch returns an error if the patch of a run would have to overwrite a file of the user's.
func (rs *Runs) checkPatch(id string) error {
	root, err := os.OpenRoot(rs.place.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	file := filepath.FromSlash(rs.cfg.Result.Named(rs.cfg.Result.Patch, id))
	if err := mayReplace(root, file); err != nil {
		return fmt.Errorf("the result cannot become the patch %q: %w", file, err)
	}
	return nil
}

// mayReplace returns an error if a file is there that no run has written.
func mayReplace(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errNotOurs
	}
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, len(resultOf("")))
	if _, err := io.ReadFull(f, head); err != nil || string(head) != resultOf("") {
		return errNotOurs
	}
	return nil
}

// givePatch writes the patch of a run and says where. If another file has come to its place since the run began, the patch
// goes beside it.
func (rs *Runs) givePatch(ctx context.Context, t *workspace.Tree, id string, h workspace.Hash) (string, error) {
	patch := bytes.NewBufferString(resultOf(id) + "\n\n") // git apply skips it
	if err := t.Patch(ctx, h, patch); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(rs.place.Root)
	if err != nil {
		return "", err
	}
	defer root.Close()
	file := filepath.FromSlash(rs.cfg.Result.Named(rs.cfg.Result.Patch, id))
	if err := root.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", err
	}
	said := "patch " + file
	if err = mayReplace(root, file); errors.Is(err, errNotOurs) {
		ext := filepath.Ext(file)
		beside := strings.TrimSuffix(file, ext) + "-" + id + ext
		said = fmt.Sprintf("patch %s%s%s is no patch of a run", beside, insteadOf, file)
		file, err = beside, mayReplace(root, beside)
	}
	if err != nil {
		return "", err
	}
	if up := t.Up(); up != "" {
		said += taken + rs.cfg.applying(file, up)
	}
	return said, root.WriteFile(file, patch.Bytes(), 0o644)
}
