// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// workDir is the path of a directory below root, which dir cannot leave.
func workDir(root, dir string) (string, error) {
	if root == "" {
		root = "."
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return "", fmt.Errorf("find the root directory: %w", err)
	}
	if dir == "" {
		dir = "."
	}
	if !filepath.IsLocal(dir) {
		return "", fmt.Errorf("working directory %q is outside the root %q: it has to be a path below it", dir, root)
	}
	// The path is cleaned first, so that the checked path is the used one.
	dir = filepath.Clean(dir)
	r, err := os.OpenRoot(root)
	if err != nil {
		return "", fmt.Errorf("open the root directory: %w", err)
	}
	defer r.Close()
	info, err := r.Stat(dir)
	if err != nil {
		return "", fmt.Errorf("working directory %q below the root %q: %w", dir, root, err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("working directory %q below the root %q is not a directory", dir, root)
	}
	return filepath.Join(root, dir), nil
}

// checkFiles returns an error if a link on one of the paths, relative to the working directory, leads
// out of root. A path that does not exist yet is fine.
func checkFiles(root, dir string, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	r, err := os.OpenRoot(cmp.Or(root, "."))
	if err != nil {
		return fmt.Errorf("open the root directory: %w", err)
	}
	defer r.Close()
	for _, path := range paths {
		if _, err := r.Stat(filepath.Join(dir, path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("file %q must be inside the root %q: %w", path, root, err)
		}
	}
	return nil
}
