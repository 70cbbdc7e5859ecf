// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/internal/credential"
)

// Limits of a definition. They are far above what a person writes.
const (
	maxFileSize = 1 << 20 // bytes of one file
	maxNodes    = 20_000  // values in all files, aliases spelled out
	maxDepth    = 64      // nesting of values
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
	sources  []*source
	problems Problems
	notes    Problems
	nodes    int             // seen so far
	reading  []*source       // files around the current place
	used     map[string]span // files that a ref has led to, and from where
}

// report adds an error. A hint can be set on what is returned.
func (l *loader) report(at span, code, format string, args ...any) *Problem {
	p := &Problem{
		File: at.src.name, file: at.src.index, Line: at.line, Column: at.column, Length: at.length,
		Severity: SeverityError, Code: code, Message: credential.Mask(fmt.Sprintf(format, args...), at.src.secrets), Excerpt: at.src.excerpt(at.line),
	}
	if len(l.problems) < maxFound {
		l.problems = append(l.problems, p)
	}
	return p
}

func (l *loader) warn(at span, code, format string, args ...any) *Problem {
	p := l.report(at, code, format, args...)
	p.Severity = SeverityWarning
	return p
}

// note adds what is worth knowing.
func (l *loader) note(at span, code, format string, args ...any) *Problem {
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
func (l *loader) read(r io.Reader, name, path string) (*source, *yaml.Node) {
	data, err := io.ReadAll(io.LimitReader(r, maxFileSize+1))
	src := newSource(name, path, len(l.sources), "")
	l.sources = append(l.sources, src)
	whole := span{src: src}
	switch {
	case err != nil:
		l.report(whole, CodeFile, "the file cannot be read: %v", cause(err)).err = err
		return src, nil
	case len(data) > maxFileSize:
		l.report(whole, CodeFile, "the file is larger than 1 MiB").Hint = "keep data in files of its own"
		return src, nil
	}
	text := strings.TrimPrefix(string(data), "\ufeff")
	src.says(text)
	if at, what := unreadable(text); what != "" {
		before := splitLines(text[:at])
		last := before[len(before)-1]
		p := l.report(span{src, len(before), utf8.RuneCountInString(last) + 1, 1}, CodeSyntax, "the file has %s in it", what)
		if what == notText {
			p.Hint = "save the file as UTF-8"
		}
		return src, nil
	}
	return src, l.parse(src, text)
}

const notText = "a byte that is not UTF-8 text"

// unreadable finds what YAML does not allow in a text.
func unreadable(text string) (at int, what string) {
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			return i, notText
		case r < ' ' && r != '\t' && r != '\n' && r != '\r', r == 0x7f, r > 0x7f && r < 0xa0 && r != 0x85:
			return i, fmt.Sprintf("the control character %U", r)
		}
	}
	return 0, ""
}

// parse returns the value of the text's one document.
func (l *loader) parse(src *source, text string) (value *yaml.Node) {
	start := span{src, 1, 1, 1}
	defer func() {
		// The parser is somebody else's, and the text is anybody's.
		if r := recover(); r != nil {
			l.report(start, CodeSyntax, "this is not YAML that can be read: %v", r)
			value = nil
		}
	}()
	d := yaml.NewDecoder(bytes.NewReader([]byte(text)))
	var docs [2]yaml.Node
	for i := range docs {
		err := d.Decode(&docs[i])
		switch {
		case errors.Is(err, io.EOF) && i == 1:
		case errors.Is(err, io.EOF), err == nil && i == 0 && empty(&docs[0]):
			l.report(start, CodeSyntax, "the file is empty").Hint = "a loop begins with its name: and its sub_agents:"
			return nil
		case err != nil:
			l.syntax(src, err)
			return nil
		case i == 1:
			l.report(src.of(&docs[1]), CodeSyntax, "a second YAML document begins here").
				Hint = "put it in a file of its own and use ref"
		}
	}
	if len(docs[0].Content) != 1 || !l.measure(src, docs[0].Content[0], 0, false) {
		return nil
	}
	src.conceal(docs[0].Content[0])
	return docs[0].Content[0]
}

func empty(doc *yaml.Node) bool {
	return len(doc.Content) == 0 || doc.Content[0].ShortTag() == "!!null" && doc.Content[0].Value == ""
}

// measure looks whether a value, with its aliases spelled out, is of a size
// that can be worked with. After it every walk over the value ends.
func (l *loader) measure(src *source, n *yaml.Node, depth int, aliased bool) bool {
	l.nodes++
	switch {
	case l.nodes > maxNodes:
		l.report(src.of(n), CodeFile, "the definition has more than %d values", maxNodes).Hint = "aliases count each time they are used"
		return false
	case depth > maxDepth:
		p := l.report(src.of(n), CodeFile, "values are nested deeper than %d", maxDepth)
		if aliased {
			p.Hint = "an alias must not contain itself"
		}
		return false
	case n.Kind == yaml.AliasNode:
		return n.Alias != nil && l.measure(src, n.Alias, depth+1, true)
	}
	return !slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return !l.measure(src, c, depth+1, aliased) })
}

// cause leaves out the path that an error of a file system begins with.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
