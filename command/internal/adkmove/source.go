// SPDX-License-Identifier: Apache-2.0

package adkmove

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A source is a Go file.
type source struct {
	text string
	file *token.File

	imports  []importLine
	named    map[string]string // path of an imported package by its name, see [imported]
	uses     bool              // the file imports ADK or Refrain
	edits    []edit            // in the order of the file
	findings []*Finding
}

// importLine is a line in an import declaration.
type importLine struct {
	*ast.ImportSpec
	path string // relative to ADK's or our prefix, or the whole path of another package
	of   origin
}

// origin tells who provides a package.
type origin int

const (
	other origin = iota
	fromADK
	ours
)

// edit replaces some bytes of a line with a text.
type edit struct {
	at, length int
	text       string
}

// read reads a file. A file that is not Go, or imports neither ADK nor Refrain, has no edits.
func read(text []byte) *source {
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, "", text, parser.SkipObjectResolution)
	s := &source{text: string(text), file: files.File(1), named: map[string]string{}}
	for _, spec := range tree.Imports {
		s.readImport(spec)
	}
	wrong, _ := errors.AsType[scanner.ErrorList](err)
	switch {
	case !s.uses:
	case len(wrong) > 0:
		line, column := s.position(wrong[0].Pos.Offset)
		s.edits, s.findings = nil, []*Finding{{Line: line, Column: column, Breaks: true,
			Text: wrong[0].Msg + "; this file was not changed"}}
	default:
		s.inspect(tree)
	}
	return s
}

func (s *source) readImport(spec *ast.ImportSpec) {
	whole, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return
	}
	im := importLine{ImportSpec: spec, path: whole}
	if below, is := strings.CutPrefix(whole, adk+"/"); is {
		below = strings.TrimPrefix(below, "v2/")
		im.path, im.of = below, fromADK
		if _, known := lookup(below); known {
			s.edits = append(s.edits, edit{s.file.Offset(spec.Path.Pos()), len(spec.Path.Value), strconv.Quote(Module + "/" + below)})
		}
	} else if below, is := strings.CutPrefix(whole, Module+"/"); is {
		im.path, im.of = below, ours
	}
	s.uses = s.uses || im.of != other
	s.imports = append(s.imports, im)
	name := path.Base(im.path)
	if v, is := strings.CutPrefix(name, "v"); is && v != "" && strings.Trim(v, "0123456789") == "" {
		name = path.Base(path.Dir(im.path))
	}
	if spec.Name != nil {
		name = spec.Name.Name
	}
	s.named[name] = im.path
}

// moved returns the new text.
func (s *source) moved() string {
	out := strings.SplitAfter(s.text, "\n")
	for _, e := range slices.Backward(s.edits) { // from the end, because an edit moves the bytes after it
		n, column := s.position(e.at)
		line := &out[n-1]
		*line = (*line)[:column-1] + e.text + (*line)[column-1+e.length:]
	}
	if len(s.edits) > 0 {
		s.sortImports(out)
	}
	return strings.Join(out, "")
}

// sortImports sorts imports in out as gofmt does: adjacent lines by path.
func (s *source) sortImports(out []string) {
	paths := map[int]string{} // by line
	lines := strings.Split(s.text, "\n")
	for _, im := range s.imports {
		n, column := s.position(s.file.Offset(im.Pos()))
		line := lines[n-1]
		before := strings.TrimSpace(line[:column-1])
		_, end := s.position(s.file.Offset(im.End()))
		after := strings.TrimSpace(line[min(end-1, len(line)):])
		switch {
		case before != "" && before != "import" || after != "" && !strings.HasPrefix(after, "//"):
		case im.of == other:
			paths[n-1] = im.path
		default:
			paths[n-1] = Module + "/" + im.path
		}
	}
	type row struct{ path, text string } // sorted as pointers, because another instance of sort makes the command larger
	for i := 0; i < len(out); i++ {
		var run []*row
		for paths[i+len(run)] != "" {
			run = append(run, &row{paths[i+len(run)], out[i+len(run)]})
		}
		slices.SortFunc(run, func(a, b *row) int { return strings.Compare(a.path+"\n"+a.text, b.path+"\n"+b.text) })
		for k, r := range run {
			out[i+k] = r.text
		}
		i += len(run)
	}
}

// position returns the line and the column of a byte offset, both from 1.
func (s *source) position(at int) (line, column int) {
	p := s.file.PositionFor(s.file.Pos(at), false)
	return p.Line, p.Column
}

// written returns the text of an expression, without spaces.
func (s *source) written(e ast.Expr) string {
	return strings.Join(strings.Fields(s.text[s.file.Offset(e.Pos()):s.file.Offset(e.End())]), "")
}
