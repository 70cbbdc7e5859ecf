// SPDX-License-Identifier: Apache-2.0

package skill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// maxFile is the largest size of a skill's file, in bytes.
const maxFile = 10 << 20

// folders lists the folders of a skill that have resources.
var folders = []string{"references", "assets", "scripts"}

// NewFileSystemSource returns a source with the skills in the folders of fsys. A folder without SKILL.md is no skill.
// If a SKILL.md is invalid, or gives another name than its folder's, the listing fails with [ErrInvalidFrontmatter]
// or [ErrInvalidSkillName].
//
// Paths stay inside a skill's folder. Symbolic links are not followed if fsys is a [fs.ReadLinkFS], such as
// os.DirFS. Files above 10 MiB are refused.
func NewFileSystemSource(fsys fs.FS) Source { return &files{fsys} }

type files struct{ fsys fs.FS }

func (f *files) ListFrontmatters(ctx context.Context) (all []*Frontmatter, err error) {
	entries, err := fs.ReadDir(f.fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("list skills: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() || !fs.ValidPath(e.Name()) {
			continue
		}
		if _, err := fs.Stat(f.fsys, path.Join(e.Name(), "SKILL.md")); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		one, err := f.LoadFrontmatter(ctx, e.Name())
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func (f *files) LoadFrontmatter(_ context.Context, name string) (*Frontmatter, error) {
	front, _, err := f.read(name)
	return front, err
}

func (f *files) LoadInstructions(_ context.Context, name string) (string, error) {
	_, instructions, err := f.read(name)
	return instructions, err
}

func (f *files) read(name string) (*Frontmatter, string, error) {
	if !validName(name) {
		return nil, "", fmt.Errorf("skill %q: %w", name, ErrInvalidSkillName)
	}
	file, err := f.open(path.Join(name, "SKILL.md"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("skill %q: %w", name, ErrSkillNotFound)
	}
	if err != nil {
		return nil, "", fmt.Errorf("skill %q: %w", name, err)
	}
	defer file.Close()
	content, err := io.ReadAll(file)
	if err != nil {
		return nil, "", fmt.Errorf("skill %q: %w", name, err)
	}
	front, instructions, err := ParseBytes(content)
	if err != nil {
		return nil, "", fmt.Errorf("skill %q: %w", name, err)
	}
	if front.Name != name {
		return nil, "", fmt.Errorf("skill %q: its SKILL.md has the name %q: %w", name, front.Name, ErrInvalidSkillName)
	}
	return front, instructions, nil
}

func (f *files) LoadResource(_ context.Context, name, resourcePath string) (io.ReadCloser, error) {
	clean, err := f.resource(name, resourcePath)
	if err != nil {
		return nil, err
	}
	file, err := f.open(path.Join(name, clean))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("skill %q: %q: %w", name, resourcePath, ErrResourceNotFound)
	case err != nil:
		return nil, fmt.Errorf("skill %q: %w", name, err)
	}
	return file, nil
}

func (f *files) ListResources(_ context.Context, name, subpath string) ([]string, error) {
	below := make([]string, 0, len(folders))
	if clean := path.Clean(subpath); clean != "." {
		one, err := f.resource(name, clean)
		if err != nil {
			return nil, err
		}
		switch err := f.follows(path.Join(name, one)); {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("skill %q: %q: %w", name, subpath, ErrResourceNotFound)
		case err != nil:
			return nil, fmt.Errorf("skill %q: %w", name, err)
		}
		below = append(below, one)
	} else {
		if _, _, err := f.read(name); err != nil {
			return nil, err
		}
		for _, folder := range folders { // a link or a missing folder has no files
			if f.follows(path.Join(name, folder)) == nil {
				below = append(below, folder)
			}
		}
	}
	var all []string
	for _, folder := range below {
		err := fs.WalkDir(f.fsys, path.Join(name, folder), func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				all = append(all, strings.TrimPrefix(p, name+"/"))
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("skill %q: list files: %w", name, err)
		}
	}
	return all, nil
}

// resource returns the clean path of an existing file of a skill.
func (f *files) resource(name, resourcePath string) (string, error) {
	if _, _, err := f.read(name); err != nil {
		return "", err
	}
	clean := path.Clean(resourcePath)
	folder, _, _ := strings.Cut(clean, "/")
	if !fs.ValidPath(clean) || !slices.Contains(folders, folder) || strings.Contains(clean, `\`) {
		return "", fmt.Errorf("skill %q: %q: %w: want a path below %s", name, resourcePath, ErrInvalidResourcePath,
			strings.Join(folders, ", "))
	}
	return clean, nil
}

// open opens a regular file of at most maxFile bytes.
func (f *files) open(name string) (fs.File, error) {
	if err := f.follows(name); err != nil {
		return nil, err
	}
	file, err := f.fsys.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%q is not a file: %w", name, ErrInvalidResourcePath)
	case info.Size() > maxFile:
		err = fmt.Errorf("%q has %d bytes, more than %d", name, info.Size(), maxFile)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// follows returns an error for a path with a symbolic link in it, because the link could lead out of the folder.
func (f *files) follows(name string) error {
	for i := range len(name) + 1 {
		if i < len(name) && name[i] != '/' {
			continue
		}
		info, err := fs.Lstat(f.fsys, name[:i])
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%q is a symbolic link: %w", name[:i], ErrInvalidResourcePath)
		}
	}
	return nil
}
