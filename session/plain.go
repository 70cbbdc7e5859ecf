// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrNotJSON says that the state, or an event, cannot hold a value because JSON has no form for it: NaN, an
// infinity, a function, a channel, or a value that contains itself. Such an error also matches [ErrInvalid]
// in errors.Is.
var ErrNotJSON error = notJSONError{}

type notJSONError struct{}

func (notJSONError) Error() string {
	return "only JSON values can be kept: leave the value out, or set a text in its place"
}

func (notJSONError) Is(target error) bool { return target == ErrInvalid }

// exact is 2^53. Above it, float64 cannot represent every integer.
const exact = 1 << 53

// Plain converts a value to the form that the state holds: written as JSON by encoding/json and read again.
// The result is nil, a bool, a string, a float64, or a []any or map[string]any of such values. An integer
// below -2^53 or above 2^53 keeps its digits: it is an int64, or a uint64 if it does not fit. So a []byte
// becomes base64 text, a time.Duration a number of nanoseconds, a struct a map by the names of its JSON,
// and a nil map or slice nil.
//
// Plain returns a value that is already plain as it is, without an allocation. The error wraps
// [ErrNotJSON].
func Plain(v any) (any, error) { return plain(v, 0) }

// Normalize makes each value of a state, or of a state delta, plain; see [Plain]. It
// returns the map itself if all values are plain, else a copy. The error names the key.
func Normalize(state map[string]any) (map[string]any, error) {
	state, _, err := normalize(state)
	if err != nil {
		return nil, err
	}
	return state, nil
}

// normalize does the same as Normalize, and also reports whether it has made a copy.
func normalize(state map[string]any) (_ map[string]any, copied bool, err error) {
	if len(state) == 0 { // faster than to begin a range over a map
		return state, false, nil
	}
	all, first, left := state, "", len(state)
	for key, v := range state {
		if left--; isPlain(v, 0) && isKey(key) {
			if left == 0 { // faster than to let the range search for another key
				break
			}
			continue
		}
		p, failed := plainOf(v, 0)
		if failed == nil {
			failed = hasJSON(p)
		}
		if failed == nil && !isKey(key) {
			failed = fmt.Errorf("a key must be UTF-8 without a zero byte; %w", ErrNotJSON)
		}
		switch {
		case failed != nil && (err == nil || key < first): // report the first key in the alphabet, because the order of a map is random
			first, err = key, keyError(key, failed)
		case failed == nil && !copied:
			all, copied = maps.Clone(state), true
			fallthrough
		case failed == nil:
			all[key] = p
		}
	}
	return all, copied, err
}

// isKey reports whether a text is UTF-8 without a zero byte.
func isKey(key string) bool {
	for i := range len(key) {
		if b := key[i]; b == 0 || b >= utf8.RuneSelf {
			return utf8.ValidString(key[i:]) && strings.IndexByte(key[i:], 0) < 0
		}
	}
	return true
}

// Normalize makes the values of the state delta plain; see [Plain]. It replaces the map and does not change
// it. The error wraps [ErrNotJSON] and names the key; on an error the actions are unchanged.
func (a *EventActions) Normalize() error {
	delta, copied, err := normalize(a.StateDelta)
	if copied && err == nil {
		a.StateDelta = delta
	}
	return err
}

// Normalize makes the state delta plain, as [EventActions.Normalize] does, and checks that the rest of the
// event has a JSON form, as stores need it. The error wraps [ErrNotJSON] and names the part; on an error
// the event is unchanged.
func (e *Event) Normalize() error {
	if err := e.writable(); err != nil {
		return err
	}
	return e.Actions.Normalize()
}

// writable returns an error if a part of the event, other than its state delta, has no JSON form. It checks the
// parts that a program can fill with any value.
func (e *Event) writable() error {
	if f := e.AvgLogprobs; f-f != 0 {
		return fmt.Errorf("average log probability: %w", hasJSON(f))
	}
	if x := e.Actions.Exit; x != nil && x.Score != nil && *x.Score-*x.Score != 0 {
		return fmt.Errorf("score of the exit: %w", hasJSON(*x.Score))
	}
	if len(e.CustomMetadata) > 0 {
		if err := hasJSON(e.CustomMetadata); err != nil {
			return fmt.Errorf("custom metadata: %w", err)
		}
	}
	if len(e.Actions.RequestedToolConfirmations) > 0 { // faster than to begin a range over a map
		for id, c := range e.Actions.RequestedToolConfirmations {
			if err := hasJSON(c.Payload); err != nil {
				return fmt.Errorf("payload of the confirmation %q: %w", id, err)
			}
		}
	}
	if e.Content == nil {
		return nil
	}
	for _, p := range e.Content.Parts {
		if p == nil {
			continue
		}
		if c := p.FunctionCall; c != nil && len(c.Args) > 0 {
			if err := hasJSON(c.Args); err != nil {
				return fmt.Errorf("call of %s: %w", c.Name, err)
			}
		}
		if a := p.FunctionResponse; a != nil && len(a.Response) > 0 {
			if err := hasJSON(a.Response); err != nil {
				return fmt.Errorf("answer of %s: %w", a.Name, err)
			}
		}
	}
	return nil
}

// hasJSON returns the reason why a value has no JSON form; nil if it has one.
func hasJSON(v any) error {
	if isPlain(v, 0) {
		return nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%w; %w", err, ErrNotJSON)
	}
	if !json.Valid(slices.Concat(bytes.Repeat([]byte("["), around), data, bytes.Repeat([]byte("]"), around))) {
		return fmt.Errorf("its lists and objects are nested too deeply to be read again; %w", ErrNotJSON)
	}
	return nil
}

// around is a bound for the lists and objects that enclose a value in the JSON of an event, an export or an answer.
// encoding/json reads at most 10,000 levels of nesting.
const around = 100

// encodable removes the values that JSON cannot hold from a state, makes the others plain (see [Plain]), and returns
// the same map.
func encodable(state map[string]any) map[string]any {
	for key, v := range state {
		switch p, err := Plain(v); {
		case err != nil || !isKey(key):
			delete(state, key)
		case !isPlain(v, 0):
			state[key] = p
		}
	}
	return state
}

func keyError(key string, err error) error { return fmt.Errorf("state key %q: %w", key, err) }

// maxNesting is how many levels of a value this package checks itself. It passes deeper values to encoding/json,
// which detects a value that contains itself.
const maxNesting = 1000

// isPlain reports whether a value has the form of [Plain] already. It returns false for a value that is nested too deeply.
func isPlain(v any, depth int) bool {
	switch x := v.(type) {
	case nil, bool:
		return true
	case string:
		return utf8.ValidString(x)
	case float64:
		return x > -exact && x < exact || isPlainFloat(x)
	case int64:
		return x < -exact || x > exact
	case uint64:
		return x > math.MaxInt64
	case []any:
		if x == nil || depth > maxNesting {
			return false
		}
		return !slices.ContainsFunc(x, func(e any) bool { return !isPlain(e, depth+1) })
	case map[string]any:
		if x == nil || depth > maxNesting {
			return false
		}
		for k, e := range x {
			if !utf8.ValidString(k) || !isPlain(e, depth+1) {
				return false
			}
		}
		return true
	}
	return false
}

// isPlainFloat reports whether the plain form of a number is a float64. It is false for large integers, which are
// an int64 or a uint64, and for numbers that JSON cannot hold.
func isPlainFloat(f float64) bool {
	p, err := plainFloat(f)
	_, is := p.(float64)
	return err == nil && is
}

func plain(v any, depth int) (any, error) {
	if isPlain(v, depth) {
		return v, nil
	}
	return plainOf(v, depth)
}

// plainOf returns the plain form of a value. The caller has found that the value is not plain, or has not checked it.
func plainOf(v any, depth int) (any, error) {
	switch x := v.(type) {
	case nil, bool:
		return v, nil
	case int:
		return plainInt(int64(x)), nil
	case int64:
		return plainInt(x), nil
	case uint64:
		return plainUint(x), nil
	case float64:
		return plainFloat(x)
	case []any:
		if x != nil && depth <= maxNesting {
			return plainList(x, depth)
		}
	case map[string]any:
		if x != nil && depth <= maxNesting {
			return plainMap(x, depth)
		}
	}
	data, err := json.Marshal(v)
	if err == nil {
		v, err = PlainJSON(data)
	}
	if err != nil && !errors.Is(err, ErrNotJSON) {
		err = fmt.Errorf("%w; %w", err, ErrNotJSON)
	}
	return v, err
}

func plainList(list []any, depth int) (any, error) {
	all := make([]any, len(list))
	for i, v := range list {
		p, err := plain(v, depth+1)
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
		all[i] = p
	}
	return all, nil
}

func plainMap(m map[string]any, depth int) (any, error) {
	all := make(map[string]any, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		p, err := plain(m[k], depth+1)
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", k, err)
		}
		if !utf8.ValidString(k) {
			k = validText(k)
		}
		all[k] = p
	}
	return all, nil
}

// validText returns a text with the invalid UTF-8 replaced, as encoding/json does it.
func validText(s string) string { return string([]rune(s)) }

func plainInt(i int64) any {
	if i < -exact || i > exact {
		return i
	}
	return float64(i)
}

func plainUint(u uint64) any {
	if u > math.MaxInt64 {
		return u
	}
	return plainInt(int64(u))
}

// plainFloat converts a large float64 to an int64 or a uint64 with the same value. Otherwise its value could change
// when it is stored, because encoding/json writes the shortest digits for a float64, and read as an integer these can
// be another number.
func plainFloat(f float64) (any, error) {
	switch {
	case f-f != 0:
		return nil, fmt.Errorf("%s has no JSON form; %w", strconv.FormatFloat(f, 'g', -1, 64), ErrNotJSON)
	case f >= -exact && f <= exact || f < math.MinInt64 || f >= 1<<64:
		return f, nil
	case f >= math.MaxInt64: // as a float64 it is 2^63
		return uint64(f), nil
	}
	return int64(f), nil // from 2^53 on, a float64 has no fraction
}

// PlainJSON reads a JSON value and returns it in the form of [Plain].
func PlainJSON(data []byte) (any, error) {
	var v any
	if err := json.Unmarshal(data, &v); err == nil && !mayLoseDigits(v) {
		return v, nil
	} else if err != nil && !json.Valid(data) {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data)) // an integer may have more digits than a float64, or a number is out of range
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return withNumbers(v)
}

// mayLoseDigits reports whether a value that encoding/json has read has a number that may have had more digits than a float64.
func mayLoseDigits(v any) bool {
	switch x := v.(type) {
	case float64:
		return x <= -exact || x >= exact
	case []any:
		return slices.ContainsFunc(x, mayLoseDigits)
	case map[string]any:
		for _, e := range x {
			if mayLoseDigits(e) {
				return true
			}
		}
	}
	return false
}

// withNumbers returns a value with each json.Number replaced by a plain number. It changes lists and objects.
func withNumbers(v any) (_ any, err error) {
	switch x := v.(type) {
	case json.Number:
		return number(x.String())
	case []any:
		for i := range x {
			if x[i], err = withNumbers(x[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for key := range x {
			if x[key], err = withNumbers(x[key]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// number returns the plain form of a JSON number.
func number(text string) (any, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("number %s is out of range; %w", text, ErrNotJSON)
	}
	if f > -exact && f < exact {
		return f, nil
	}
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return plainInt(i), nil
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return plainUint(u), nil
	}
	return plainFloat(f)
}

// restore decodes the state delta and the metadata of an event again from its JSON if a number in them may have lost
// digits.
func (e *Event) restore(data []byte) error {
	if !mayLoseDigits(e.Actions.StateDelta) && !mayLoseDigits(e.CustomMetadata) {
		return nil
	}
	var exactly struct {
		Actions struct {
			StateDelta exactMap `json:"stateDelta"`
		} `json:"actions"`
		CustomMetadata exactMap `json:"customMetadata"`
	}
	if err := json.Unmarshal(data, &exactly); err != nil {
		return err
	}
	e.Actions.StateDelta, e.CustomMetadata = exactly.Actions.StateDelta, exactly.CustomMetadata
	return nil
}

// exactMap reads an object in the form of [Plain].
type exactMap map[string]any

// UnmarshalJSON reads the object. If the map has values already, it adds to them, as encoding/json does.
func (m *exactMap) UnmarshalJSON(data []byte) error {
	v, err := PlainJSON(data)
	if err != nil {
		return err
	}
	read, _ := v.(map[string]any)
	if *m == nil || read == nil {
		*m = read
	}
	maps.Copy(*m, read)
	return nil
}
