// SPDX-License-Identifier: Apache-2.0

package codingcli

import (
	"encoding/json"
	"path/filepath"
	"slices"
)

// Bounds of the data about edits that is kept.
const (
	mostFiles   = 1000
	mostOpen    = 200  // edits that have not ended
	longestPath = 4096 // in bytes
	longestID   = 200
)

// Change is the fact about an edit that a line reports. With an ID and a path, the edit begins. With an ID and no path, the edit
// with that ID ends. With a path and no ID, the edit is done.
type Change struct {
	ID, Path string // an edit that ends has no path
	Failed   bool
}

// Folder is the folder in which a program works. It has the folder's absolute path, and the path without symbolic links if
// that is another one.
type Folder []string

// NewFolder returns the folder with an absolute path.
func NewFolder(dir string) Folder {
	if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
		return Folder{dir, real}
	}
	return Folder{dir}
}

// Below returns path relative to the folder if it is in the folder, and else as an absolute path. in reports whether it is.
// Below does not follow links, so a path that is in the folder can lead out of it by a link.
func (f Folder) Below(path string) (_ string, in bool) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(f[0], path)
	}
	for _, dir := range f {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return filepath.Clean(path), false
}

// Edited notes an edit of a file, named as [Folder.Below] does.
func (r *Report) Edited(path string) {
	switch {
	case slices.Contains(r.Files, path):
	case len(r.Files) < mostFiles && len(path) <= longestPath:
		r.Files = append(r.Files, path)
	default:
		r.MoreFiles++
	}
}

// filesLine is the line that [Lines] adds to the output of a program.
type filesLine struct {
	Type  string   `json:"type"` // filesRecord
	Files []string `json:"files"`
	More  int      `json:"more,omitempty"`
}

const filesRecord = "refrain.files"

// editList collects the edits of a program.
type editList struct {
	folder Folder
	open   map[string]string // the paths of edits that have not ended, by ID
	report Report            // with the files alone
}

func (e *editList) add(path string) {
	path, _ = e.folder.Below(path)
	e.report.Edited(path)
}

// take handles a change. It keeps the path of an edit that begins until the edit ends, and then adds it unless the edit failed.
func (e *editList) take(c Change) {
	switch {
	case c.Path == "":
		if path := e.open[c.ID]; path != "" && !c.Failed {
			e.add(path)
		}
		delete(e.open, c.ID)
	case c.ID == "":
		e.add(c.Path)
	case len(c.ID) <= longestID && len(c.Path) <= longestPath && len(e.open) < mostOpen:
		e.open[c.ID] = c.Path
	}
}

// line returns the line of [filesLine] with all files, or nil if it cannot be encoded.
func (e *editList) line() []byte {
	data, err := json.Marshal(filesLine{Type: filesRecord, Files: append([]string{}, e.report.Files...), More: e.report.MoreFiles})
	if err != nil {
		return nil
	}
	return append(data, '\n')
}

// readFiles reads the line with all files, if there is one.
func (r *Report) readFiles(stdout []byte) {
	each(stdout, func(line []byte) {
		var l filesLine
		if json.Unmarshal(line, &l) == nil && l.Type == filesRecord {
			r.Files, r.MoreFiles = l.Files, l.More
		}
	})
}
