// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// Shape limits the values that may stand in an argument or an environment variable of a command. A
// value must satisfy every field. The zero value allows any text; a value of that shape can stand neither in an
// argument nor in a variable, except one whose name begins with [FreePrefix].
type Shape struct {
	// Type is the type of the value; empty is text.
	Type ShapeType
	// Choices are the texts that the value can be.
	Choices []string
	// Pattern is a regular expression (RE2) that matches the whole value.
	Pattern string

	builtIn bool
}

// ShapeType is the type of a value that a [Shape] describes.
type ShapeType string

// The types. A text that is written like a number or a truth value counts as one, because the output of a
// command is text.
const (
	ShapeNumber ShapeType = "number"
	ShapeInt    ShapeType = "int"
	ShapeBool   ShapeType = "bool"
	// ShapeFile is the path of a file that exists inside the command's root when the command starts, relative
	// to its working directory. It has no "..", none of the characters |;`"'\<>& and "$(", "${", and no
	// control characters, and no link in it leads out of the root. The command gets it with "./" before it.
	ShapeFile ShapeType = "file"
	// ShapeFolder is the path of a folder, with the same rules. The folder must not be inside a repository below
	// the root, because the settings of a repository can name programs to run.
	ShapeFolder ShapeType = "folder"
)

// Free reports whether the shape allows every text.
func (s Shape) Free() bool { return s.Type == "" && len(s.Choices) == 0 && s.Pattern == "" }

// literal reports whether every value of the shape is a number, a truth value, one of the declared choices, or a
// built-in value.
func (s Shape) literal() bool {
	switch s.Type {
	case ShapeNumber, ShapeInt, ShapeBool:
		return true
	}
	return len(s.Choices) > 0 || s.builtIn
}

// path reports whether the values are paths.
func (s Shape) path() bool {
	return (s.Type == ShapeFile || s.Type == ShapeFolder) && len(s.Choices) == 0
}

// String describes the allowed values, such as "a whole number" or "one of low, high".
func (s Shape) String() string {
	var all []string
	if of, known := typeWords[s.Type]; known {
		all = append(all, of)
	}
	if len(s.Choices) > 0 {
		all = append(all, "one of "+strings.Join(s.Choices, ", "))
	}
	if s.Pattern != "" {
		all = append(all, "text that matches "+s.Pattern)
	}
	if all == nil {
		return "text"
	}
	return strings.Join(all, ", ")
}

var typeWords = map[ShapeType]string{
	ShapeNumber: "a number", ShapeInt: "a whole number", ShapeBool: "true or false", ShapeFile: "a path inside the root",
	ShapeFolder: "a folder inside the root",
}

// ParsePattern compiles a pattern so that it matches the whole of a text.
func ParsePattern(pattern string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(pattern); err != nil { // "a)(b" alone is wrong
		return nil, err
	}
	return regexp.Compile(`\A(?:` + pattern + `)\z`)
}

// Check returns why a value does not have the shape, or nil if it does. For a file it checks only the
// path.
func (s Shape) Check(v any) error {
	text, ok := scalar(v)
	switch {
	case !ok:
		return s.refuse(v, "")
	case strings.Contains(text, "\x00"):
		return s.refuse(v, "it has a zero byte in it")
	case s.Type == ShapeNumber && !numeral().MatchString(text),
		s.Type == ShapeInt && !whole().MatchString(text),
		s.Type == ShapeBool && text != "true" && text != "false",
		len(s.Choices) > 0 && !slices.Contains(s.Choices, text):
		return s.refuse(v, "")
	case s.path() && !isInside(text):
		return s.refuse(v, "it is empty or absolute, or has .. in it")
	case s.path() && (strings.ContainsFunc(text, unicode.IsControl) || strings.ContainsAny(text, "|;`\"'\\<>&") ||
		strings.Contains(text, "$(") || strings.Contains(text, "${")):
		return s.refuse(v, "a program may read a part of it as code: a path has no control characters, none of |;`\"'\\<>& and no $( or ${")
	case s.Pattern == "":
		return nil
	}
	pattern, err := ParsePattern(s.Pattern)
	if err == nil && !pattern.MatchString(text) {
		err = s.refuse(v, "")
	}
	return err
}

// checkStart returns an error if a value at the beginning of an argument begins with "-", unless the shape is a number or
// has choices.
func (s Shape) checkStart(v any) error {
	text, _ := scalar(v)
	if s.Type != ShapeNumber && s.Type != ShapeInt && len(s.Choices) == 0 && strings.HasPrefix(text, "-") {
		return s.refuse(v, dashed)
	}
	return nil
}

const dashed = "it begins with -, as an option does"

// refuse returns an error which says that a value does not have the shape. why is the reason; it is empty if the
// description of the shape is reason enough.
func (s Shape) refuse(v any, why string) error {
	if why != "" {
		why = ": " + why
	}
	return fmt.Errorf("must be %s, got %s%s", s, display(v), why)
}

var (
	numeral = lazyregexp.New(`\A-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?\z`)
	whole   = lazyregexp.New(`\A-?[0-9]+\z`)
)

// isInside reports whether a path, as it is written, stays below the folder that it is relative to.
func isInside(name string) bool {
	return filepath.IsLocal(name) && !slices.Contains(strings.Split(filepath.ToSlash(name), "/"), "..")
}

// scalar returns a value as the text of an argument. It returns false for a list, a map, nil, a number that is not finite,
// and any other type.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case json.Number:
		return v.String(), true
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return fmt.Sprint(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), !math.IsNaN(v) && !math.IsInf(v, 0)
	case float32:
		return scalar(float64(v))
	}
	return "", false
}

// builtIn maps names that are not state keys to their shapes; see drive.Place.Lookup. Built-in names that are not in it
// have the zero Shape, which is text.
var builtIn = map[string]Shape{
	"iteration": {Type: ShapeInt}, "max_iterations": {Type: ShapeInt}, "remaining_iterations": {Type: ShapeInt},
	"is_first_iteration": {Type: ShapeBool}, "is_last_iteration": {Type: ShapeBool},
	"score": {Type: ShapeNumber}, "best.score": {Type: ShapeNumber},
	"elapsed": {Pattern: `([0-9]+[hms])+`, builtIn: true},
}

// callID is the shape of {{call_id}} in a command of [NewCommandReconcile], where it is a built-in value. In any other
// command {{call_id}} is an ordinary state key.
var callID = Shape{Pattern: `[A-Za-z0-9][-\w./:\[\]]*`, builtIn: true}

// shape returns the declared shape of a placeholder. For prev.KEY, best.KEY and rejected.KEY it returns the shape of KEY
// if they have none of their own.
func (c *CommandConfig) shape(name string) Shape {
	if s, ok := c.Shapes[name]; ok || c.parameter(name) {
		return s
	}
	for _, earlier := range []string{"prev.", "best.", "rejected."} {
		if key, ok := strings.CutPrefix(name, earlier); ok {
			if s, ok := c.Shapes[key]; ok {
				return s
			}
		}
	}
	return builtIn[name]
}

// ShapeError reports a placeholder without a declared shape in a place that needs one.
type ShapeError struct {
	// Field is the field with the placeholder: "Args[2]", `Env["LEVEL"]` or "Dir".
	Field string
	// Name is the placeholder's name.
	Name string
	// Shape is the declared shape.
	Shape Shape
	// Code reports that a known program reads the field as code, where only numbers, truth values and choices
	// may stand.
	Code bool

	in  place  // where in the command the field is
	why string // how to write a placeholder whose shape does not suffice; if it is empty, the other fields say it
}

// Permanent returns true, because a retry would insert the same value.
func (e *ShapeError) Permanent() bool { return true }

// Error names the field and the placeholder, and says what to do.
func (e *ShapeError) Error() string {
	text := e.Field + ": " + e.Problem()
	if advice := e.Advice(); advice != "" {
		text += "; " + advice
	}
	return text
}

// Problem names the placeholder and says why it may not stand in the field.
func (e *ShapeError) Problem() string {
	switch {
	case e.why != "":
		return fmt.Sprintf("{{%s}} is %s", e.Name, e.Shape)
	case e.Code && !e.Shape.Free():
		return fmt.Sprintf("{{%s}} is %s, and stands where a program reads code: only a number, true or false, or one of "+
			"declared choices may stand there", e.Name, e.Shape)
	case e.in == program:
		return fmt.Sprintf("the program's name has the placeholder {{%s}}, which is %s: only declared choices may choose what runs", e.Name, e.Shape)
	case e.in == folder:
		return fmt.Sprintf("{{%s}} is text of any content, and a program may run what it finds in its folder", e.Name)
	case strings.HasPrefix(e.Field, "Env["):
		return fmt.Sprintf("{{%s}} is text of any content, which a program may read as a setting", e.Name)
	}
	return fmt.Sprintf("{{%s}} is text of any content, which a program may read as an option or as code", e.Name)
}

// Advice says what to do; it is empty if Problem says it.
func (e *ShapeError) Advice() string {
	switch {
	case e.why != "":
		return e.why
	case e.Code && !e.Shape.Free():
		return "give it to the command in a variable that begins with " + FreePrefix + ", or as a further argument"
	case e.in == program:
		return ""
	case e.in == folder:
		return "declare its shape"
	case strings.HasPrefix(e.Field, "Env["):
		return "give it to the command in a variable that begins with " + FreePrefix + ", or declare its shape"
	}
	return "give it to the command as standard input or in a variable that begins with " + FreePrefix + ", or declare its shape"
}

// ValueError reports a value that does not have its declared shape.
type ValueError struct {
	Field, Name string // as in a [ShapeError]
	// Err names the declared shape and the value.
	Err error
}

// Error names the field, the placeholder and the value.
func (e *ValueError) Error() string { return fmt.Sprintf("%s: {{%s}} %v", e.Field, e.Name, e.Err) }

// Unwrap returns Err.
func (e *ValueError) Unwrap() error { return e.Err }

// Permanent returns true, because a retry would insert the same value.
func (e *ValueError) Permanent() bool { return true }

// display returns a value as text for a message, at most 100 characters.
func display(v any) string {
	text, ok := scalar(v)
	if !ok {
		text = fmt.Sprint(v)
	}
	text = brief.Clip(text, 100)
	if _, is := v.(string); !is && ok {
		return text
	}
	return strconv.Quote(text)
}
