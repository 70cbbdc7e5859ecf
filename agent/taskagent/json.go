// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/refrain-dev/refrain/session"
)

// parseJSON reads a text that is one JSON value, and returns it in the form of [session.Plain].
func parseJSON(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	var first json.RawMessage
	if err := d.Decode(&first); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the text is empty")
		}
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more after the first value")
	}
	v, err := session.PlainJSON(first)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil, fmt.Errorf("%s is out of range", wrong.Value)
	}
	return v, err
}

// cleanText makes a program's output a text that JSON can hold.
func cleanText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// trimNewline removes the line ends at the end of a text, as $(command) does.
func trimNewline(s string) string { return strings.TrimRight(s, "\r\n") }
