// SPDX-License-Identifier: Apache-2.0

package cel

import "slices"

// Function is a function that an expression can call, or a few that belong together.
type Function struct {
	// Form is how to call it, such as number(text).
	Form string
	// Doc says what the function returns, on one line.
	Doc string
	// Example is an expression that uses the function and is true.
	Example string
}

// Functions lists every function, those that conditions need most first. Help and manual are made from it.
func Functions() []Function { return slices.Clone(manual) }

// manual lists every function that expressions can call: a test compares it with the environment.
var manual = []Function{
	{"number(text)", "first number in a text; a number is itself", `number("Score: 8.5/10") == 8.5`},
	{"json(text)", "JSON in a text, also between fences; a value that is no text is itself", `json('Here: {"score": 8}').score == 8`},
	{"says(text, phrase)", "whether a text says a phrase and nothing else; case, white space and punctuation do not count",
		`says("No issues found.", "no issues found")`},
	{"has(state.key)", "whether the key has a value", `has({"key": 1}.key)`},
	{"state.?key.orValue(x)", "value of the key, or x if it has none", `{"other": 1}.?key.orValue(2) == 2`},
	{"size(x)", "length of a text, a list or a map", `size("text") == 4 && size([1, 2]) == 2`},
	{"text.contains(part), text.startsWith(part), text.endsWith(part)", "whether a text has a part, or begins or ends with it",
		`"all tests pass".contains("pass")`},
	{"text.matches(pattern)", "whether a part of a text fits a regular expression, in the syntax of RE2", `"v12".matches("[0-9]+$")`},
	{"x in list, key in map", "whether a list has a value, or a map a key", `2 in [1, 2] && "a" in {"a": 1}`},
	{"list.exists(x, condition), list.all(x, condition), list.exists_one(x, condition)",
		"whether a condition holds for one, for every, or for exactly one element", `[1, 9].exists(x, x > 8) && ![1, 9].all(x, x > 8)`},
	{"list.filter(x, condition), list.map(x, value)", "elements for which a condition holds; a value for each element",
		`[1, 9].filter(x, x > 8) == [9] && [1, 2].map(x, x * 2) == [2, 4]`},
	{"list.exists(i, x, condition), map.all(k, v, condition), map.existsOne(k, v, condition)",
		"the same with the index of each element, or with the key and the value of each entry of a map",
		`["a", "b"].exists(i, x, i == 1 && x == "b") && {"a": 1}.all(k, v, v > 0)`},
	{"list.transformList(i, x, value), map.transformMap(k, v, value), map.transformMapEntry(k, v, entry)",
		"list of a value for each element or entry; map with other values; map with other entries; a condition can stand before the value",
		`{"a": 1}.transformMap(k, v, v + 1) == {"a": 2} && {"a": 1}.transformMapEntry(k, v, {v: k}) == {1: "a"}`},
	{"cel.bind(x, value, expression)", "expression in which x stands for a value", `cel.bind(x, 2 + 1, x * x) == 9`},
	{"list.sort(), list.sortBy(x, value), list.reverse(), list.distinct(), list.flatten()",
		"list in order, backwards, with each element once, or with its inner lists opened", `[2, 1, 2].distinct().sort() == [1, 2]`},
	{"list.first(), list.last(), list.slice(from, to)", "first or last element, read with .value() or .orValue(x); part of a list",
		`[1, 2].last().orValue(0) == 2 && [1, 2, 3].slice(0, 2) == [1, 2]`},
	{"list.hasAll(others), list.hasAny(others), list.hasOnly(others), list.hasExactly(others)",
		"whether a list has all or any of other elements, no others, or just them", `[1, 2].hasAll([1]) && [1, 2].hasExactly([2, 1])`},
	{"lists.range(n)", "numbers from 0 to n-1", `lists.range(3) == [0, 1, 2]`},
	{"text.trim(), text.lowerAscii(), text.upperAscii(), text.reverse()",
		"text without white space at its ends, in lower or upper case, or backwards", `" Yes ".trim().lowerAscii() == "yes"`},
	{"text.replace(old, new), text.split(separator), list.join(separator)", "text with other parts, as a list, or made of a list",
		`"a, b".split(", ").join("+") == "a+b"`},
	{"text.substring(from, to), text.charAt(n), text.indexOf(part), text.lastIndexOf(part)",
		"part of a text, or where a part begins; the first character is 0", `"abc".substring(1, 3) == "bc" && "abc".indexOf("c") == 2`},
	{"text.format(list), strings.quote(text)", "text with %s and %d filled in; text in quotes", `"%d of %d".format([1, 2]) == "1 of 2"`},
	{"math.least(a, b), math.greatest(a, b)", "smallest or largest of numbers, or of a list of them", `math.greatest(1, 3, 2) == 3`},
	{"math.abs(x), math.sign(x), math.sqrt(x)", "number without its sign; -1, 0 or 1; square root", `math.abs(-1) == 1 && math.sqrt(9) == 3.0`},
	{"math.round(x), math.floor(x), math.ceil(x), math.trunc(x)", "nearest, next lower, next higher whole number; number without its fraction",
		`math.round(7.6) == 8.0`},
	{"math.isNaN(x), math.isInf(x), math.isFinite(x)", "whether a value is not a number, is infinite, or is neither", `math.isFinite(1.0)`},
	{"math.bitAnd(a, b), math.bitOr(a, b), math.bitXor(a, b), math.bitNot(a), math.bitShiftLeft(a, n), math.bitShiftRight(a, n)",
		"operations on the bits of whole numbers", `math.bitAnd(6, 3) == 2`},
	{"int(x), uint(x), double(x), string(x), bool(x), bytes(x), dyn(x), type(x)", "value as another type; its type",
		`string(7.0) == "7" && int("7") == 7`},
	{"timestamp(text), duration(text)", "point in time, as in RFC 3339; length of time, such as 90s",
		`timestamp("2026-01-01T00:00:00Z") + duration("24h") == timestamp("2026-01-02T00:00:00Z")`},
	{"time.getFullYear(), time.getMonth(), time.getDate(), time.getDayOfMonth(), time.getDayOfWeek(), time.getDayOfYear()",
		"part of a date; the month, and the day of the week, month and year but for getDate, count from 0", `timestamp("2026-01-31T00:00:00Z").getDate() == 31`},
	{"time.getHours(), time.getMinutes(), time.getSeconds(), time.getMilliseconds()", "part of a point in time; a length of time in that unit",
		`duration("90s").getSeconds() == 90`},
	{"optional.of(x), optional.none(), optional.ofNonZeroValue(x), optional.unwrap(list), list.unwrapOpt()",
		"value that may be missing, as state.?key is one; the values that are there", `optional.unwrap([optional.of(1), optional.none()]) == [1]`},
	{"x.hasValue(), x.value(), x.or(other), x.optMap(y, value), x.optFlatMap(y, value)",
		"of a value that may be missing: whether it is there; it; another in its place; one made of it", `optional.none().or(optional.of(2)).value() == 2`},
}
