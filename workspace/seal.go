// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// attributes turn off every conversion and filter, whatever .gitattributes in the tree says.
const attributes = "* -text -crlf -ident -filter !eol !working-tree-encoding !diff !merge !whitespace\n"

// unsealed are files of a repository that change what git does with its contents. A store has none of them.
var unsealed = []string{
	"commondir", "config.worktree", filepath.Join("info", "exclude"), filepath.Join("info", "grafts"),
	filepath.Join("info", "sparse-checkout"), "shallow",
}

// seal is what a store says about how git works in it. A program that leaves its folder can write to the store; so the
// seal is put back before each command.
type seal struct {
	store  string
	config []byte
}

func (s *seal) put() error {
	for name, want := range map[string][]byte{"config": s.config, filepath.Join("info", "attributes"): []byte(attributes)} {
		path := filepath.Join(s.store, name)
		if is, err := os.ReadFile(path); err == nil && bytes.Equal(is, want) {
			continue
		}
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			_ = removeAll(path)
		}
		if err := writeFile(path, want); err != nil {
			return err
		}
	}
	for _, name := range unsealed {
		path := filepath.Join(s.store, name)
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		if err := removeAll(path); err != nil {
			return fmt.Errorf("remove what a program has put into the store: %w", err)
		}
	}
	return nil
}
