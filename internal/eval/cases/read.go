// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Open reads a file of cases. Files that it names, and the test_config.json of ADK, are looked up in its folder.
func Open(path string) (*Set, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return Read(root.FS(), filepath.Base(path))
}

// Read reads a file of cases of a file system, which should not lead outside its root, such as that of [os.Root]. The
// ending of the name decides between CSV (.csv), JSON Lines (.jsonl) and YAML or JSON. The error is
// [definition.Problems], in the order of the file.
func Read(fsys fs.FS, name string) (*Set, error) {
	return nil, errors.ErrUnsupported
}
