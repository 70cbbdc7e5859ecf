// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// MaxFile is the largest size of a file, in bytes.
const MaxFile = 1 << 20

// Limits of a definition. They are far above what a person writes.
const (
	maxNodes = 20_000 // values in all files, aliases spelled out
	MaxDepth = 64     // nesting of values
)

// Fault says why a text cannot be read, and where.
type Fault struct {
	At Span
	// OfFile is true if the file cannot be opened or is too large. Otherwise the text is not YAML with one value:
	// Empty is true if it has no value, and Second if it has more than one.
	OfFile, Empty, Second bool
	Message, Hint         string
	// Err is the cause; nil if there is none.
	Err error
}

// reading collects the faults of a text.
type reading struct {
	src    *Source
	nodes  *int // values seen so far, in all files
	faults []*Fault
}

func (r *reading) wrong(at Span, format string, args ...any) *Fault {
	f := &Fault{At: at, Message: fmt.Sprintf(format, args...)}
	r.faults = append(r.faults, f)
	return f
}

func (r *reading) tooMuch(at Span, format string, args ...any) *Fault {
	f := r.wrong(at, format, args...)
	f.OfFile = true
	return f
}

// Read reads the text of src and returns its single value. If the value cannot be used, Read returns nil and at least
// one fault. nodes counts the values of all files of a definition, for their limit.
func Read(from io.Reader, src *Source, nodes *int) (*yaml.Node, []*Fault) {
	r := &reading{src: src, nodes: nodes}
	n := r.value(from)
	return n, r.faults
}

// Parse does what [Read] does, with a text of src that [Unreadable] has accepted.
func Parse(src *Source, text string, nodes *int) (*yaml.Node, []*Fault) {
	r := &reading{src: src, nodes: nodes}
	n := r.parse(text)
	return n, r.faults
}

func (r *reading) value(from io.Reader) *yaml.Node {
	data, err := io.ReadAll(io.LimitReader(from, MaxFile+1))
	whole := Span{Src: r.src}
	switch {
	case err != nil:
		r.tooMuch(whole, "the file cannot be read: %v", Cause(err)).Err = err
		return nil
	case len(data) > MaxFile:
		r.tooMuch(whole, "the file is larger than 1 MiB").Hint = "keep data in files of its own"
		return nil
	}
	text := strings.TrimPrefix(string(data), "\ufeff")
	r.src.says(text)
	if at, what := Unreadable(text); what != "" {
		line, column := r.src.Place(at)
		f := r.wrong(Span{r.src, line, column, 1}, "the file has %s in it", what)
		if what == notText {
			f.Hint = "save the file as UTF-8"
		}
		return nil
	}
	return r.parse(text)
}

// Open opens a file if it is regular, because opening a named pipe would wait for a writer.
func Open(fsys fs.FS, name string) (fs.File, error) {
	info, err := fs.Stat(fsys, name)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return nil, err
	}
	return fsys.Open(name)
}

// ReadFile returns the content of a regular file of at most [MaxFile] bytes.
func ReadFile(fsys fs.FS, name string) ([]byte, error) {
	f, err := Open(fsys, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err == nil && len(data) > MaxFile {
		err = errors.New("the file is larger than 1 MiB")
	}
	return data, err
}

// Cause removes the path at the beginning of an error of a file system.
func Cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

const notText = "a byte that is not UTF-8 text"

// Unreadable finds the first character that YAML does not allow in a text.
func Unreadable(text string) (at int, what string) {
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
func (r *reading) parse(text string) (value *yaml.Node) {
	src := r.src
	start := Span{src, 1, 1, 1}
	defer func() {
		// The parser is not ours, and the text is untrusted.
		if v := recover(); v != nil {
			r.wrong(start, "this is not YAML that can be read: %v", v)
			value = nil
		}
	}()
	data, shorter := []byte(text), wideColumns(nil)
	if json.Valid(data) {
		data, shorter = fromJSON(data)
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	var docs [2]yaml.Node
	for i := range docs {
		err := d.Decode(&docs[i])
		switch {
		case errors.Is(err, io.EOF) && i == 1:
		case errors.Is(err, io.EOF), err == nil && i == 0 && empty(&docs[0]):
			r.wrong(start, "the file is empty").Empty = true
			return nil
		case err != nil:
			r.syntax(err)
			return nil
		case i == 1:
			r.wrong(src.Of(&docs[1]), "a second YAML document begins here").Second = true
		}
	}
	if len(docs[0].Content) != 1 || !r.take(docs[0].Content[0]) {
		return nil
	}
	if shorter != nil {
		shorter.widen(docs[0].Content[0])
	}
	return docs[0].Content[0]
}

// Take checks a value of src that was not parsed as YAML, as [Read] checks values.
func Take(src *Source, n *yaml.Node, nodes *int) []*Fault {
	r := &reading{src: src, nodes: nodes}
	r.take(n)
	return r.faults
}

// take checks the size of a value, and collects its secrets. It returns false if the value is too large.
func (r *reading) take(n *yaml.Node) bool {
	if !r.measure(n, 0, false) {
		return false
	}
	r.src.conceal(n, "")
	return true
}

func empty(doc *yaml.Node) bool {
	return len(doc.Content) == 0 || doc.Content[0].ShortTag() == "!!null" && doc.Content[0].Value == ""
}

// measure reports whether a value, with its aliases expanded, is within the limits. All later walks over such a value end.
func (r *reading) measure(n *yaml.Node, depth int, aliased bool) bool {
	*r.nodes++
	switch {
	case *r.nodes > maxNodes:
		r.tooMuch(r.src.Of(n), "the files have more than %d values", maxNodes).Hint = "aliases count each time " +
			"they are used"
		return false
	case depth > MaxDepth:
		p := r.tooMuch(r.src.Of(n), "values are nested deeper than %d", MaxDepth)
		if aliased {
			p.Hint = "an alias must not contain itself"
		}
		return false
	case n.Kind == yaml.AliasNode:
		return n.Alias != nil && r.measure(n.Alias, depth+1, true)
	}
	return !slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return !r.measure(c, depth+1, aliased) })
}
