// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// parseJSON reads a text that is one JSON value. Whole numbers that fit are
// int64, or else uint64, so that long identifiers stay as they are; others are
// float64.
func parseJSON(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the text is empty")
		}
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more after the first value")
	}
	return plain(v)
}

// plain replaces each json.Number in a value.
func plain(v any) (any, error) {
	var err error
	switch x := v.(type) {
	case json.Number:
		if i, err := x.Int64(); err == nil {
			return i, nil
		}
		if u, err := strconv.ParseUint(x.String(), 10, 64); err == nil {
			return u, nil
		}
		f, err := x.Float64()
		if err != nil {
			return nil, fmt.Errorf("number %s is out of range", x)
		}
		return f, nil
	case []any:
		for i := range x {
			if x[i], err = plain(x[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for key := range x {
			if x[key], err = plain(x[key]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// cleanText makes a program's output a text that JSON can hold.
func cleanText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// trimNewline removes the line ends at the end of a text, as $(command) does.
func trimNewline(s string) string { return strings.TrimRight(s, "\r\n") }
