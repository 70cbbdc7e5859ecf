// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"regexp/syntax"
)

// probes lists texts that can turn a value into code, an option or another path, each with its name for people.
var probes = []struct{ text, name string }{
	{";", "a semicolon"}, {"$(", "$(x)"}, {"`", "a backtick"}, {"|", "|"}, {"&", "&"}, {"<", "<"}, {">", ">"}, {"'", "a single quote"}, {`"`, "a double quote"},
	{`\`, "a backslash"}, {"\n", "a line break"}, {" ", "a blank"}, {"../", "../"},
}

// Permits names the dangerous texts that the pattern lets through: a semicolon, $(x), quotes, a blank, a line break,
// ../ and the like anywhere in the value, and a dash at its beginning. It returns nil without a pattern, with
// choices, and for numbers and truth values.
func (s Shape) Permits() (names []string) {
	if s.Pattern == "" || s.literal() || s.path() {
		return nil
	}
	parsed, err := syntax.Parse(s.Pattern, syntax.Perl)
	if err != nil {
		return nil // ParsePattern reports it
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil
	}
	begin := closure(prog, []uint32{uint32(prog.Start)})
	if reads(prog, begin, "-") {
		names = append(names, "a dash at the beginning")
	}
	anywhere := begin
	for seen := map[uint32]bool{}; ; { // collect every place that the program reaches with some text
		var next []uint32
		for _, pc := range anywhere {
			if i := &prog.Inst[pc]; !seen[pc] && isRune(i) {
				next = append(next, i.Out)
			}
			seen[pc] = true
		}
		fresh := closure(prog, next)
		before := len(anywhere)
		for _, pc := range fresh {
			if !seen[pc] {
				anywhere = append(anywhere, pc)
			}
		}
		if len(anywhere) == before {
			break
		}
	}
	for _, p := range probes {
		if reads(prog, anywhere, p.text) {
			names = append(names, p.name)
		}
	}
	return names
}

// reads reports whether a program can read a text from one of the given places. It takes assertions such as ^ and \b as
// true.
func reads(prog *syntax.Prog, places []uint32, text string) bool {
	for _, r := range text {
		var next []uint32
		for _, pc := range places {
			if i := &prog.Inst[pc]; isRune(i) && i.MatchRune(r) {
				next = append(next, i.Out)
			}
		}
		places = closure(prog, next)
	}
	return len(places) > 0
}

// closure returns the given places and those that a program reaches from them without reading a character.
func closure(prog *syntax.Prog, places []uint32) []uint32 {
	seen := make(map[uint32]bool)
	var all []uint32
	for len(places) > 0 {
		pc := places[len(places)-1]
		if places = places[:len(places)-1]; seen[pc] {
			continue
		}
		seen[pc] = true
		switch i := &prog.Inst[pc]; i.Op {
		case syntax.InstFail:
			continue
		case syntax.InstAlt, syntax.InstAltMatch:
			places = append(places, i.Out, i.Arg)
		case syntax.InstCapture, syntax.InstEmptyWidth, syntax.InstNop:
			places = append(places, i.Out)
		}
		all = append(all, pc)
	}
	return all
}

func isRune(i *syntax.Inst) bool {
	switch i.Op {
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return true
	}
	return false
}
