// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // a container may have no time zones

	"github.com/robfig/cron/v3"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/values/days"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/internal/values/suggest"
)

// Limits of a file of schedules.
const (
	mostSchedules = 1000
	mostCatchUp   = 7 * 24 * time.Hour
	mostEvery     = 366 * 24 * time.Hour
	mostKeep      = 100 * 366 * 24 * time.Hour
)

// nameOf matches the names of schedules. The IDs of their runs have at most 64 characters.
var nameOf = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$`)

// reader reads a file of schedules.
type reader struct {
	src      *source.Source
	problems definition.Problems
}

// Parse reads a text as a file of schedules. name is its name in problems. If there are problems, Parse returns no schedules.
func Parse(name string, text []byte) ([]*Schedule, definition.Problems) {
	r, nodes := &reader{src: source.New(name, name, 0, "")}, 0
	root, faults := source.Read(strings.NewReader(string(text)), r.src, &nodes)
	for _, f := range faults {
		if f.Empty {
			return nil, nil
		}
		r.add(f.At, definition.CodeSyntax, "%s", f.Message).Hint = f.Hint
	}
	var all []*Schedule
	if root != nil {
		all = r.file(root)
	}
	if len(r.problems) > 0 {
		slices.SortStableFunc(r.problems, func(a, b *definition.Problem) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
		return nil, r.problems
	}
	return all, nil
}

// Read reads the file of schedules in a folder. It refuses a file that is not regular, because opening a named pipe would wait for a writer.
// The error is that of the file, or definition.Problems.
func Read(dir string) ([]*Schedule, error) {
	file := filepath.Join(dir, File)
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	list, problems := Parse(file, text)
	if len(problems) > 0 {
		return nil, problems
	}
	return list, nil
}

func (r *reader) add(s source.Span, code, format string, args ...any) *definition.Problem {
	p := &definition.Problem{File: r.src.Name, Line: s.Line, Column: s.Column, Length: s.Length, Severity: definition.SeverityError,
		Code: code, Message: fmt.Sprintf(format, args...)}
	if s.Line > 0 {
		p.Excerpt = r.src.Excerpt(s.Line)
	}
	r.problems = append(r.problems, p)
	return p
}

// report reports a mistake at a value.
func (r *reader) report(n *source.Node, code, format string, args ...any) *definition.Problem {
	return r.add(r.src.Of(n), code, format, args...)
}

// read reads a map of known fields, and reports which of them are given.
func (r *reader) read(n *source.Node, what string, names []string, field func(name string, v *source.Node)) map[string]*source.Node {
	given := make(map[string]*source.Node)
	if n = source.Deref(n); n.Kind != source.Map {
		r.report(n, definition.CodeValue, "%s must be a map, got %s", what, source.Describe(n))
		return given
	}
	for _, p := range source.Pairs(n) {
		key, v := p.Key.Value, source.Deref(p.Value)
		switch {
		case !slices.Contains(names, key):
			r.report(p.Key, definition.CodeField, "unknown field %q of %s", key, what).Hint = suggest.Hint(key, names)
		case given[key] != nil:
			r.report(p.Key, definition.CodeDuplicate, "%q is given twice", key)
		default:
			given[key] = v
			field(key, v)
		}
	}
	return given
}

func (r *reader) file(n *source.Node) (all []*Schedule) {
	first := make(map[string]int)
	given := r.read(n, "a file of schedules", []string{"schedules"}, func(_ string, list *source.Node) {
		if source.IsNull(list) {
			return
		}
		if list.Kind != source.List {
			r.report(list, definition.CodeValue, "schedules must be a list, got %s", source.Describe(list))
			return
		}
		if len(list.Content) > mostSchedules {
			r.report(list, definition.CodeValue, "schedules has %d elements, and the most is %d", len(list.Content), mostSchedules)
			return
		}
		for _, one := range list.Content {
			s, name := r.schedule(one)
			if name != nil && first[s.Name] > 0 {
				r.report(name, definition.CodeDuplicate, "the schedule %q is in line %d already", s.Name, first[s.Name]).Hint = "give it another name"
			} else if name != nil {
				first[s.Name] = name.Line
			}
			all = append(all, s)
		}
	})
	if n := source.Deref(n); n.Kind == source.Map && given["schedules"] == nil && len(r.problems) == 0 {
		r.report(n, definition.CodeMissing, "schedules is missing").Hint = "write schedules: and a list"
	}
	return all
}

var fields = []string{"name", "definition", "cron", "every", "timezone", "request", "set", "overlap", "catch_up", "jitter", "keep", "keep_failed"}

// schedule reads one schedule, and returns the node of its name; nil if it has no valid one.
func (r *reader) schedule(n *source.Node) (s *Schedule, name *source.Node) {
	s = &Schedule{Location: time.UTC, Overlap: Skip, CatchUp: DefaultCatchUp}
	before := len(r.problems)
	given := r.read(n, "a schedule", fields, func(field string, v *source.Node) {
		switch field {
		case "name":
			s.Name = r.text(v, field)
		case "definition":
			s.Definition, s.At = r.text(v, field), definition.Position{File: r.src.Name, Line: v.Line, Column: v.Column}
		case "cron":
			s.Cron = r.text(v, field)
		case "every":
			s.Every = r.duration(v, field, time.Second, mostEvery)
			if s.Every%time.Second != 0 {
				r.report(v, definition.CodeValue, "every must be in whole seconds, got %s", v.Value)
			}
		case "timezone":
			s.Location = r.zone(v)
		case "request":
			s.Request = r.text(v, field)
		case "set":
			s.Set = r.set(v)
		case "overlap":
			s.Overlap = r.overlap(v)
		case "catch_up":
			s.CatchUp = r.duration(v, field, 0, mostCatchUp)
		case "jitter":
			s.Jitter = r.duration(v, field, 0, mostCatchUp)
		case "keep":
			s.Keep = r.duration(v, field, time.Second, mostKeep)
		case "keep_failed":
			s.KeepFailed = r.duration(v, field, time.Second, mostKeep)
		}
	})
	if source.Deref(n).Kind != source.Map || len(r.problems) > before { // a field that seems missing may be mistyped
		return s, nil
	}
	for _, must := range []string{"name", "definition"} {
		if given[must] == nil {
			r.report(n, definition.CodeMissing, "a schedule without %s", must).Hint = "add " + must + ":"
		}
	}
	if v := given["name"]; v != nil && s.Name != "" && !nameOf().MatchString(s.Name) {
		r.report(v, definition.CodeName, "%q cannot be the name of a schedule", s.Name).Hint = "use up to 40 letters, digits and _ -"
	} else if s.Name != "" {
		name = v
	}
	r.times(n, s, given)
	return s, name
}

// times checks the fields that say when a schedule starts.
func (r *reader) times(n *source.Node, s *Schedule, given map[string]*source.Node) {
	at := given["cron"]
	switch {
	case at == nil && given["every"] == nil:
		r.report(n, definition.CodeMissing, "a schedule without cron or every").Hint = `add cron: "0 2 * * *" for 2:00 each day, or every: 1h`
		return
	case at != nil && given["every"] != nil:
		r.report(at, definition.CodeConflict, "a schedule has either cron or every")
		return
	case at == nil && given["timezone"] != nil:
		r.report(given["timezone"], definition.CodeConflict, "timezone applies only to cron").Hint = "every counts from 1970-01-01 00:00 UTC"
		return
	case at != nil && !r.cron(at, s), at == nil && s.Every < time.Second:
		return
	}
	if v := given["jitter"]; v != nil {
		if gap := s.shortest(); s.Jitter >= gap {
			r.report(v, definition.CodeValue, "jitter must be shorter than the time between two starts, which is %s", gap)
		}
	}
}

// reference is a time from which a leap day comes within five years.
var reference = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)

// shortest returns the shortest time between two of the next times.
func (s *Schedule) shortest() time.Duration {
	gap, last := mostEvery, s.Next(reference)
	for range 200 {
		t := s.Next(last)
		if t.IsZero() {
			break
		}
		gap, last = min(gap, t.Sub(last)), t
	}
	return gap
}

// cron parses the expression of a schedule.
func (r *reader) cron(n *source.Node, s *Schedule) bool {
	wrong := func(why string) bool {
		r.report(n, definition.CodeValue, "cron %q: %s", s.Cron, why).Hint = "write minute, hour, day of month, month, day of week, such as 0 2 * * 1-5, or @daily"
		return false
	}
	switch {
	case s.Cron == "":
		return false
	case strings.HasPrefix(s.Cron, "TZ=") || strings.HasPrefix(s.Cron, "CRON_TZ="):
		return wrong("the time zone has a field of its own, timezone")
	case strings.HasPrefix(s.Cron, "@every"):
		return wrong("an interval has a field of its own, every")
	}
	parser := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
	parsed, err := parser.Parse(s.Cron)
	if err != nil {
		return wrong(err.Error())
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return wrong("it has no times")
	}
	if s.spec = spec; s.Next(reference).IsZero() {
		return wrong("this time never comes")
	}
	return true
}

func (r *reader) zone(n *source.Node) *time.Location {
	name := r.text(n, "timezone")
	if name == "" {
		return time.UTC
	}
	loc, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		r.report(n, definition.CodeValue, "there is no time zone %q", name).Hint = "write a name of the IANA database, such as Europe/Berlin, or UTC"
		return time.UTC
	}
	return loc
}

func (r *reader) overlap(n *source.Node) Overlap {
	words := []string{string(Skip), string(Queue), string(CancelPrevious)}
	text := r.text(n, "overlap")
	if text != "" && !slices.Contains(words, text) {
		r.report(n, definition.CodeValue, "overlap cannot be %q", text).Hint = suggest.Hint(text, words)
	}
	return Overlap(text)
}

func (r *reader) set(n *source.Node) map[string]any {
	if n.Kind != source.Map {
		r.report(n, definition.CodeValue, "set must be a map, got %s", source.Describe(n))
		return nil
	}
	var values map[string]any
	if err := n.Load(&values); err != nil {
		r.report(n, definition.CodeValue, "set cannot be read: %v", err)
	}
	return values
}

func (r *reader) text(n *source.Node, what string) string {
	if n.Kind != source.Scalar || source.IsNull(n) || n.Value == "" {
		r.report(n, definition.CodeValue, "%s must be text, got %s", what, source.Describe(n))
		return ""
	}
	return n.Value
}

// duration reads a time such as 90s, 1h or 2d.
func (r *reader) duration(n *source.Node, what string, least, most time.Duration) time.Duration {
	d, err := days.Parse(n.Value)
	switch {
	case n.Kind != source.Scalar || err != nil:
		r.report(n, definition.CodeValue, "%s must be a time such as 90s, 1h or 2d, got %s", what, source.Describe(n))
	case d < least || d > most:
		r.report(n, definition.CodeValue, "%s must be between %s and %s, got %s", what, least, most, n.Value)
		return least
	}
	return d
}
