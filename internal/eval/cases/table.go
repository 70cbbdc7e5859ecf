// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/values/suggest"
)

// table reads a file with a case in each row.
func (f *file) table(name string) {
	data, ok := f.data(name, maxTable)
	if !ok {
		return
	}
	r := f.reader(name, string(data))
	if at, what := source.Unreadable(r.src.Text); what != "" {
		line, column := r.src.Place(at)
		at := source.Span{Src: r.src, Line: line, Column: column, Length: 1}
		r.at(at, definition.CodeSyntax, "the file has %s in it", what).Hint = "save the file as UTF-8"
		return
	}
	before := len(f.set.Cases)
	if strings.EqualFold(path.Ext(name), ".csv") {
		f.csv(r, data)
	} else {
		f.jsonLines(name, data)
	}
	if len(f.problems) == 0 && len(f.set.Cases) == before {
		r.at(source.Span{}, definition.CodeMissing, "the file has no cases")
	}
}

// jsonLines reads a case in each line.
func (f *file) jsonLines(name string, data []byte) {
	row := 0
	for line := range bytes.Lines(data) {
		text := strings.TrimRight(string(line), "\r\n")
		if strings.TrimSpace(text) != "" {
			r := f.reader(name, text)
			r.row = row
			if len(text) > source.MaxFile {
				r.at(source.Span{Src: r.src, Line: 1, Column: 1, Length: 1}, definition.CodeFile, "the line is longer than %d MiB", source.MaxFile>>20)
				return
			}
			n, faults := source.Parse(r.src, text, new(int))
			r.faults(faults)
			if n != nil {
				if !f.room(r, n, len(f.set.Cases)) {
					return
				}
				f.one(r, source.Deref(n), "a case")
			}
			if len(f.problems) >= most {
				return
			}
		}
		row++
	}
}

// columns are the columns of a CSV file, besides those that begin with the name of a field and a dot, such as set.topic.
var columns = []string{"id", "input", "expected", "group", "tags", "weight", "repeat"}

// prefixes are the fields of which a CSV file has a column for each key.
var prefixes = []string{"set", "state", "answers"}

// csv reads a case in each row. The first row has the names of the fields.
func (f *file) csv(r *reader, data []byte) {
	t := &csvTable{reader: r, csv: csv.NewReader(bytes.NewReader(data)), starts: []int{0}}
	for i, b := range data {
		if b == '\n' {
			t.starts = append(t.starts, i+1)
		}
	}
	first, _, _ := bytes.Cut(data, []byte("\n"))
	if !bytes.ContainsRune(first, ',') && bytes.ContainsRune(first, ';') {
		t.csv.Comma = ';' // as spreadsheets write in countries with a decimal comma
	}
	var header []string
	for len(f.problems) < most {
		row, err := t.csv.Read()
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			t.broken(err)
			return
		case header == nil:
			if header = row; !t.header(header) {
				return
			}
		case !f.room(r, t.node(0, ""), len(f.set.Cases)):
			return
		default:
			f.one(r, t.root(header, row), "a case")
		}
	}
}

// csvTable is the reading of a CSV file.
type csvTable struct {
	*reader
	csv    *csv.Reader
	starts []int // offsets of the lines
}

// node returns a text with the place of a field of the last row.
func (t *csvTable) node(field int, value string) *source.Node {
	line, column := t.csv.FieldPos(field)
	n := &source.Node{Kind: source.Scalar, Tag: "!!str", Value: value}
	n.Line, n.Column = t.place(line, column)
	return n
}

// place converts a line and a column in bytes.
func (t *csvTable) place(line, column int) (int, int) {
	if line < 1 || line > len(t.starts) {
		return 1, 1
	}
	return t.src.Place(min(t.starts[line-1]+max(column-1, 0), len(t.src.Text)))
}

func (t *csvTable) broken(err error) {
	at := source.Span{Src: t.src, Line: 1, Column: 1, Length: 1}
	message, hint := "this is not CSV: "+err.Error(), ""
	if e, ok := errors.AsType[*csv.ParseError](err); ok {
		at.Line, at.Column = t.place(e.Line, e.Column)
		message = "this is not CSV: " + e.Err.Error()
		if errors.Is(e.Err, csv.ErrFieldCount) {
			message, hint = "the row does not have as many fields as the first row", "quote a field with a comma in it"
		}
	}
	t.at(at, definition.CodeSyntax, "%s", message).Hint = hint
}

// header checks the names of the columns.
func (t *csvTable) header(names []string) bool {
	before := len(*t.problems)
	seen := make(map[string]bool)
	asks := false
	for i, name := range names {
		if len(*t.problems) >= most {
			return false
		}
		name = strings.TrimSpace(name)
		names[i] = name
		n := t.node(i, name)
		prefix, key, _ := strings.Cut(name, ".")
		asks = asks || name == "input" || prefix == "set"
		switch {
		case seen[name]:
			t.report(n, definition.CodeDuplicate, "two columns have the name %q", name)
		case slices.Contains(columns, name), key != "" && slices.Contains(prefixes, prefix):
		default:
			p := t.report(n, definition.CodeField, "unknown column %q", name)
			if near := suggest.Nearest(name, columns); near != "" {
				p.Hint = fmt.Sprintf("did you mean %q?", near)
			} else {
				p.Hint = "an input of the definition is the column set." + name
			}
		}
		seen[name] = true
	}
	if len(*t.problems) == before && !asks {
		t.report(t.node(0, ""), definition.CodeMissing, "the first row names no column input").Hint = "the first row has the names of the columns"
	}
	return len(*t.problems) == before
}

// root returns the case of a row as a map. An empty field is left out.
func (t *csvTable) root(header, row []string) *source.Node {
	root := t.node(0, "")
	root.Kind, root.Tag = source.Map, "!!map"
	groups := make(map[string]*source.Node)
	for i, name := range header {
		if row[i] == "" {
			continue
		}
		n, into := t.node(i, row[i]), root
		if prefix, key, dotted := strings.Cut(name, "."); dotted {
			if into = groups[prefix]; into == nil {
				into = t.node(i, "")
				into.Kind, into.Tag = source.Map, "!!map"
				groups[prefix] = into
				root.Content = append(root.Content, t.node(i, prefix), into)
			}
			name = key
		}
		switch {
		case into != root:
		case name == "tags":
			list := t.node(i, "")
			list.Kind, list.Tag = source.List, "!!seq"
			for tag := range strings.FieldsFuncSeq(n.Value, func(c rune) bool { return c == ' ' || c == ',' || c == ';' }) {
				list.Content = append(list.Content, t.node(i, tag))
			}
			n = list
		case name == "weight", name == "repeat":
			n.Value = strings.TrimSpace(n.Value)
			if _, err := strconv.ParseInt(n.Value, 10, 64); err == nil {
				n.Tag = "!!int"
			} else if _, err := strconv.ParseFloat(n.Value, 64); err == nil {
				n.Tag = "!!float"
			}
		}
		into.Content = append(into.Content, t.node(i, name), n)
	}
	return root
}
