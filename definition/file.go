// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"io"
	"io/fs"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition/internal/source"
	"github.com/refrain-dev/refrain/internal/credential"
)

// Limits of a definition. They are far above what a person writes.
const (
	maxFiles    = 100
	maxPrograms = 1000   // expressions, which take most of the time
	maxBraces   = 20_000 // that texts are searched for placeholders
	maxNames    = 2000   // among more, nothing is guessed
	maxProblems = 200    // what is shown; there may be more
	maxFound    = 20_000 // what is found after that is not counted
)

// loader reads the files of one definition and collects what is wrong.
type loader struct {
	fsys     fs.FS  // nil: refs are refused
	folder   string // how the names of files begin, for people
	sources  []*source.Source
	problems Problems
	notes    Problems
	nodes    int                    // seen so far
	reading  []*source.Source       // files around the current place
	used     map[string]source.Span // files that a ref has led to, and from where
}

// report adds an error. A hint can be set on what is returned.
func (l *loader) report(at source.Span, code, format string, args ...any) *Problem {
	p := &Problem{
		File: at.Src.Name, file: at.Src.Index, Line: at.Line, Column: at.Column, Length: at.Length,
		Severity: SeverityError, Code: code, Message: credential.Mask(fmt.Sprintf(format, args...), at.Src.Secrets), Excerpt: at.Src.Excerpt(at.Line),
	}
	if len(l.problems) < maxFound {
		l.problems = append(l.problems, p)
	}
	return p
}

func (l *loader) warn(at source.Span, code, format string, args ...any) *Problem {
	p := l.report(at, code, format, args...)
	p.Severity = SeverityWarning
	return p
}

// note adds what is worth knowing.
func (l *loader) note(at source.Span, code, format string, args ...any) *Problem {
	kept := l.problems
	l.problems = nil
	p := l.report(at, code, format, args...)
	p.Severity = SeverityNote
	l.problems = kept
	if len(l.notes) < maxFound {
		l.notes = append(l.notes, p)
	}
	return p
}

// full reports that there are so many problems that more are of no use.
func (l *loader) full() bool { return len(l.problems) >= maxFound }

// read reads a file and returns its one value, nil if there is a problem.
func (l *loader) read(r io.Reader, name, path string) (*source.Source, *yaml.Node) {
	src := source.New(name, path, len(l.sources), "")
	l.sources = append(l.sources, src)
	n, faults := source.Read(r, src, &l.nodes)
	l.blame(faults)
	return src, n
}

// parse returns the one value of the text of src, nil if there is a problem.
func (l *loader) parse(src *source.Source, text string) *yaml.Node {
	n, faults := source.Parse(src, text, &l.nodes)
	l.blame(faults)
	return n
}

// blame reports why a text cannot be read.
func (l *loader) blame(faults []*source.Fault) {
	for _, f := range faults {
		code := CodeSyntax
		if f.OfFile {
			code = CodeFile
		}
		p := l.report(f.At, code, "%s", f.Message)
		p.Hint, p.err = f.Hint, f.Err
	}
}
