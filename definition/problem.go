// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/fielderror"
)

// Severity says how serious a problem is.
type Severity string

// The severities. A definition with errors cannot be run.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityNote    Severity = "note" // worth knowing before a run; see [Definition.Notes]
)

// Problem is one problem of a definition, with its position.
type Problem struct {
	// File is the name under which the file was loaded.
	File string `json:"file,omitzero"`
	// Line and Column count from 1, Column in characters; they are 0 if the problem concerns the whole file. Length
	// is the number of affected characters of the line.
	Line     int      `json:"line,omitzero"`
	Column   int      `json:"column,omitzero"`
	Length   int      `json:"length,omitzero"`
	Severity Severity `json:"severity"`
	// Code is one of [Codes].
	Code    string `json:"code"`
	Message string `json:"message"`
	// Hint says what may help; empty if there is no hint.
	Hint string `json:"hint,omitzero"`
	// Suggestion is the text that the Hint proposes instead of the text at the problem's place; empty if it proposes none. A
	// placeholder has its braces.
	Suggestion string `json:"suggestion,omitzero"`
	// Excerpt is the line of the file.
	Excerpt string `json:"excerpt,omitzero"`

	err  error
	hint func() (hint, suggestion string) // makes the hint of a problem that is shown, if that takes long
	file int                              // which file, in the order of loading
	left map[Severity]int                 // of the first problem: how many there are besides all that are shown
}

// suggest sets the hint with its suggestion.
func (p *Problem) suggest(hint, suggestion string) { p.Hint, p.Suggestion = hint, suggestion }

// Error returns file:line:column: severity: message [code], on one line and without control characters.
func (p *Problem) Error() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
		}
		b.WriteString(": ")
	}
	fmt.Fprintf(&b, "%s: %s [%s]", p.Severity, p.Message, p.Code)
	return brief.Printable(b.String())
}

// Field returns the path of the field of a task that is wrong, such as cli or env.LEVEL; empty if the problem is not about a
// single field of a task.
func (p *Problem) Field() string {
	if wrong, ok := errors.AsType[*fielderror.Error](p.err); ok {
		return filePath(wrong.Field)
	}
	return ""
}

// Unwrap returns the cause, such as fs.ErrNotExist or an expression's error; nil
// if there is none.
func (p *Problem) Unwrap() error { return p.err }

// Format writes the problem for people: the line of Error, and below it the
// excerpt with a caret, and the hint.
func (p *Problem) Format() string {
	var b strings.Builder
	b.WriteString(p.Error())
	b.WriteByte('\n')
	hint := brief.Printable(p.Hint)
	switch {
	case p.Line > 0 && p.Excerpt != "":
		text, column, length := p.window()
		fmt.Fprintf(&b, "%5d | %s\n", p.Line, text)
		line := strings.Repeat(" ", column-1) + strings.Repeat("^", length) + " " + hint
		fmt.Fprintf(&b, "      | %s\n", strings.TrimRight(line, " "))
	case hint != "":
		fmt.Fprintf(&b, "      | %s\n", hint)
	}
	return b.String()
}

// window returns the part of the excerpt around the problem that fits on a line, and the position of the problem in
// it.
func (p *Problem) window() (text string, column, length int) {
	const width, before = 100, 40
	all, rest := utf8.RuneCountInString(p.Excerpt), p.Excerpt
	column = min(max(p.Column, 1), all+1)
	if all > width && column > before {
		from := min(column-before, all-width/2)
		column -= from
		for range from {
			_, n := utf8.DecodeRuneInString(rest)
			rest = rest[n:]
		}
	}
	line := []rune(brief.Printable(source.Runes(rest, width+1))) // the line may be as long as the file
	if len(line) > width {
		line = append(slices.Clone(line[:width-1]), '…')
	}
	length = max(1, min(p.Length, len(line)-column+1))
	return strings.TrimRight(string(line), " "), column, length
}

// Position is a place in a file. Line and Column count from 1, Column in
// characters.
type Position struct {
	File         string
	Line, Column int
}

// String returns file:line:column.
func (p Position) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// positionOf returns the beginning of a span.
func positionOf(s source.Span) Position { return Position{s.Src.Name, s.Line, s.Column} }

// Problems lists the problems in the order of the files and of their text. It has at least one and at most the first
// 200, errors before anything else. [Load] and [Parse] return it as their error.
type Problems []*Problem

// Error returns one line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.Is and errors.As look at each problem.
func (ps Problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

// Format writes each problem for people, and then their number; it writes nothing if there are none. It returns the
// error of w.
func (ps Problems) Format(w io.Writer) error {
	if len(ps) == 0 {
		return nil
	}
	var b strings.Builder
	for _, p := range ps {
		b.WriteString(p.Format())
	}
	b.WriteString(ps.Summary() + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// Summary returns the numbers of problems: "3 errors, 1 warning", or "200 of 3000 errors".
func (ps Problems) Summary() string {
	var parts []string
	for _, s := range []Severity{SeverityError, SeverityWarning, SeverityNote} {
		n := ps.count(s)
		all := n
		if len(ps) > 0 {
			all += ps[0].left[s]
		}
		switch {
		case all > n:
			parts = append(parts, fmt.Sprintf("%d of %d %ss", n, all, s))
		case n > 0:
			parts = append(parts, brief.Count(n, string(s)))
		}
	}
	return strings.Join(parts, ", ")
}

// first returns at most that many problems, and keeps errors before others.
func (ps Problems) first(most int) Problems {
	if len(ps) <= most {
		return ps
	}
	errors := min(most, ps.count(SeverityError))
	others := most - errors
	kept, left := make(Problems, 0, most), make(map[Severity]int)
	for _, p := range ps {
		room := &others
		if p.Severity == SeverityError {
			room = &errors
		}
		if *room == 0 {
			left[p.Severity]++
			continue
		}
		*room--
		kept = append(kept, p)
	}
	kept[0].left = left
	return kept
}

func (ps Problems) count(s Severity) int {
	n := 0
	for _, p := range ps {
		if p.Severity == s {
			n++
		}
	}
	return n
}

// sort orders the problems and removes duplicates.
func (ps Problems) sort() Problems {
	slices.SortStableFunc(ps, func(a, b *Problem) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.CompactFunc(ps, func(a, b *Problem) bool {
		return a.File == b.File && a.Line == b.Line && a.Column == b.Column && a.Code == b.Code &&
			a.Message == b.Message
	})
}

func quoteText(s string) string { return `"` + s + `"` }

// SortedCodes returns the codes of [Codes] in alphabetical order.
func SortedCodes() []string { return slices.Sorted(maps.Keys(Codes)) }

// The codes of problems, which [Codes] explains. They are stable: a code keeps its meaning for ever.
const (
	CodeSyntax    = "LOOP001"
	CodeFile      = "LOOP002"
	CodeField     = "LOOP003"
	CodeValue     = "LOOP004"
	CodeDuplicate = "LOOP005"
	CodeMissing   = "LOOP006"
	CodeConflict  = "LOOP007"
	CodeRef       = "LOOP008"

	CodeName      = "LOOP010"
	CodeSameName  = "LOOP011"
	CodeOrder     = "LOOP012"
	CodeEndless   = "LOOP013"
	CodeFinalizer = "LOOP014"
	CodeNoSteps   = "LOOP015"
	CodeNoLoop    = "LOOP016"
	CodeCannot    = "LOOP017"
	CodeAnyone    = "LOOP018"
	CodeTimes     = "LOOP019"

	CodeUnknownKey = "LOOP020"
	CodeKeyTaken   = "LOOP021"
	CodeKeyName    = "LOOP022"
	CodeUnread     = "LOOP023"
	CodeNeverSet   = "LOOP024"
	CodeExitKey    = "LOOP025"
	CodeSharedKey  = "LOOP026"

	CodeExpr     = "LOOP030"
	CodeTemplate = "LOOP031"
	CodeStop     = "LOOP032"
	CodeCache    = "LOOP033"
	CodeJudge    = "LOOP034"
	CodeWords    = "LOOP035"
	CodeSpoiled  = "LOOP036"
	CodeNoise    = "LOOP037"

	CodeTask    = "LOOP040"
	CodeOutside = "LOOP041"
	CodeModel   = "LOOP042"
	CodeTool    = "LOOP043"
	CodePrice   = "LOOP044"
	CodeCalls   = "LOOP045"
	CodeNoBound = "LOOP046"

	CodeResult   = "LOOP050"
	CodeUnsafe   = "LOOP049"
	CodePerson   = "LOOP047"
	CodeCallback = "LOOP048"

	CodeWorkspace = "LOOP051"
)

// Codes explains each code in a few words, for help texts and documentation.
var Codes = map[string]string{
	CodeSyntax:    "the file is not one YAML document",
	CodeFile:      "the file cannot be read, is too large or nested too deep",
	CodeField:     "unknown field, or a field of another type of agent",
	CodeValue:     "value of the wrong type, or out of range",
	CodeDuplicate: "a key is given twice",
	CodeMissing:   "a required field is missing",
	CodeConflict:  "fields exclude each other",
	CodeRef:       "a ref that leads nowhere, outside its folder, in a circle, or twice to one file",

	CodeName:      "not a valid name of an agent",
	CodeSameName:  "two agents have one name",
	CodeOrder:     "order does not list every sub-agent once",
	CodeEndless:   "the loop can never stop",
	CodeFinalizer: "more than one finalizer, a finalizer that may exit, or no other step",
	CodeNoSteps:   "a workflow agent has no sub-agents",
	CodeNoLoop:    "this works only inside a loop",
	CodeCannot:    "an exit would be refused, or a permission is never used",
	CodeAnyone:    "every model may end the loop, because no can_exit_loop is set",
	CodeTimes:     "one time limit leaves no room for another",

	CodeUnknownKey: "a key is read, but no agent writes it",
	CodeKeyTaken:   "a key has the name of a built-in value",
	CodeKeyName:    "a placeholder cannot name this key, or it is not in snake_case",
	CodeUnread:     "no agent reads this input or result",
	CodeNeverSet:   "this value never exists here",
	CodeExitKey:    "the turn that ends the loop does not write this key",
	CodeSharedKey:  "two agents write one output key, or it is an input",

	CodeExpr:     "the expression does not compile",
	CodeTemplate: "the placeholders of a text cannot be read",
	CodeStop:     "a stop condition, score or limit that makes no sense",
	CodeCache:    "the cache cannot know what its step depends on",
	CodeJudge:    "an agent scores its own work",
	CodeWords:    "a score must be found in a model's words",

	CodeSpoiled: "a placeholder keeps the provider's cache from what stands behind it",
	CodeNoise:   "scores vary by chance, and the loop cannot see it",

	CodeTask:    "the task cannot run as described",
	CodeOutside: "a path leaves its folder",
	CodeModel:   "the model does not exist, or none is given",
	CodeTool:    "the tool does not exist, or cannot work as described",
	CodePrice:   "the cost is limited, but a model has no price",
	CodeCalls:   "more model calls than a run may make",
	CodeNoBound: "something is unbounded, or its bound is unknown",

	CodeResult:    "it is unclear which step's words the loop hands back",
	CodeWorkspace: "the workspace cannot work as described, or leaves something out",

	CodeUnsafe:   "a value may run as code in this command",
	CodePerson:   "a person who may not answer, or whose answer is not used",
	CodeCallback: "a callback cannot work as described, or is never called",
}
