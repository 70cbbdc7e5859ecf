// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"os"
	"path/filepath"
)

// MoveTo replaces the folder in which the run was started, which may be on another machine. The program's root moves
// too, if it was inside that folder.
func (p *Program) MoveTo(dir string) error {
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = IsFolder(dir)
	}
	if err != nil {
		return fmt.Errorf("--dir: %w", err)
	}
	root := dir
	if inside, err := filepath.Rel(p.Dir, p.Root); err == nil && filepath.IsLocal(inside) {
		root = filepath.Join(dir, inside)
	}
	if err := IsFolder(root); err != nil {
		return fmt.Errorf("--dir: the folder for the commands of the run is not in it: %w", err)
	}
	p.Dir, p.Root = dir, root
	return nil
}

// Nearby moves a program whose root is not on this machine to the current folder, as MoveTo does.
func (p *Program) Nearby() error {
	if IsFolder(p.Root) == nil {
		return nil
	}
	return p.MoveTo(".")
}

// Here changes to the folder of the run.
func (p *Program) Here(id string) error {
	for _, dir := range []string{p.Dir, p.Root} {
		if err := IsFolder(dir); err != nil {
			return fmt.Errorf("run %s was started in a folder that does not exist here: %w; name a folder of this "+
				"machine with --dir FOLDER: the paths of the run are relative to it", id, err)
		}
	}
	if err := os.Chdir(p.Dir); err != nil {
		return fmt.Errorf("run %s was started in another folder: %w", id, err)
	}
	return nil
}

// IsFolder returns an error if dir is missing or is not a folder.
func IsFolder(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a folder", dir)
	}
	return err
}
