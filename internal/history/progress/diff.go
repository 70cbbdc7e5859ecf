// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Change is the change of one state key.
type Change struct {
	// Key is the changed key. A field of an object is "analysis.clarity".
	Key string `json:"key"`
	// Before and After are JSON values; nil means that the key did not, or does not, exist.
	Before any `json:"before,omitempty"`
	After  any `json:"after,omitempty"`
	// Words is the difference of two texts, word by word; nil for other values.
	Words []Edit `json:"words,omitempty"`
}

// Diff lists the changes from one state to another, by key. Objects are compared field by field, also if they are
// JSON within a text, as models write it; other texts are compared word by word, and all other values as a whole.
//
//	for _, c := range progress.Diff(before, after) {
//		fmt.Println(c.Key, c.Before, "→", c.After)
//	}
func Diff(before, after map[string]any) []Change {
	return diff([]Change{}, "", plain(before), plain(after))
}

// Same reports whether two values have the same JSON: a store may give back a number of another type than the event does.
func Same(a, b any) bool { return len(Diff(map[string]any{"": a}, map[string]any{"": b})) == 0 }

// plain converts a state to JSON values, so that its storage makes no difference. It replaces a value that JSON
// cannot hold by the name of its type.
func plain(state map[string]any) map[string]any {
	out := make(map[string]any, len(state))
	for k, val := range state {
		data, err := json.Marshal(val)
		if err != nil {
			data, _ = json.Marshal(reflect.TypeOf(val).String())
		}
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.UseNumber()
		var v any
		if dec.Decode(&v) == nil && v != nil {
			out[k] = v
		}
	}
	return out
}

func diff(all []Change, under string, before, after map[string]any) []Change {
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		was, is := before[k], after[k]
		if reflect.DeepEqual(was, is) {
			continue
		}
		c := Change{Key: under + k, Before: was, After: is}
		a, object := was.(map[string]any)
		b, objects := is.(map[string]any)
		if object && objects {
			all = diff(all, c.Key+".", a, b)
			continue
		}
		x, text := was.(string)
		y, texts := is.(string)
		if a, b := objectIn(x), objectIn(y); a != nil && b != nil {
			n := len(all)
			if all = diff(all, c.Key+".", a, b); len(all) > n {
				continue // else it is written otherwise
			}
		}
		if text && texts {
			c.Words = DiffWords(x, y)
		}
		all = append(all, c)
	}
	return all
}

// objectIn returns the JSON object in a text; nil if the text is none.
func objectIn(text string) map[string]any {
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var o map[string]any
	if dec.Decode(&o) != nil || dec.Decode(new(any)) != io.EOF {
		return nil
	}
	return o
}
