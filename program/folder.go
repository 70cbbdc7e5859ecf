// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"os"
	"path/filepath"
)

// MoveTo gives the program another folder than the one in which the run was started, which may
// be on another machine. Its root moves with it, if it was inside.
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

// Nearby gives a program whose root is not on this machine the current folder, as MoveTo does.
func (p *Program) Nearby() error {
	if IsFolder(p.Root) == nil {
		return nil
	}
	return p.MoveTo(".")
}

// Here goes to the folder of the run.
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
