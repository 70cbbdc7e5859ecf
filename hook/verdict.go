// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// readVerdict reads the answer of a gate: nothing, which is no veto, or an object with veto and
// perhaps reason. It is stricter than package json: an answer such as {"approved": false}, null, or
// one with both true and false is an error, because it does not clearly approve.
func readVerdict(answer []byte) (veto bool, reason string, err error) {
	answer = bytes.TrimSpace(answer)
	if len(answer) == 0 {
		return false, "", nil
	}
	d := json.NewDecoder(bytes.NewReader(answer))
	if t, err := d.Token(); err != nil {
		return false, "", syntax(err)
	} else if t != json.Delim('{') {
		return false, "", errors.New("it is no object")
	}
	seen := make(map[string]bool)
	for d.More() {
		name, value, err := field(d)
		if err != nil {
			return false, "", err
		}
		if seen[name] {
			return false, "", fmt.Errorf("it has %s twice", name)
		}
		seen[name] = true
		ok := false
		switch name {
		case "veto":
			if veto, ok = value.(bool); !ok {
				return false, "", errors.New("veto is neither true nor false")
			}
		case "reason":
			if reason, ok = value.(string); !ok {
				return false, "", errors.New("reason is no text")
			}
		default:
			return false, "", fmt.Errorf("it has %q, which is nothing that a gate can say", head60(name))
		}
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return false, "", syntax(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return false, "", errors.New("there is more text after it")
	}
	if !seen["veto"] {
		return false, "", errors.New("it does not say veto")
	}
	return veto, reason, nil
}

// field reads a name and its value; of a list or an object, which no field can be,
// only the beginning.
func field(d *json.Decoder) (name string, value any, err error) {
	t, err := d.Token()
	if err != nil {
		return "", nil, syntax(err)
	}
	name, _ = t.(string) // in an object nothing else can stand there
	if value, err = d.Token(); err != nil {
		return "", nil, syntax(err)
	}
	return name, value, nil
}

// syntax returns an error about invalid JSON, with its own text if the JSON ends too early.
func syntax(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func head60(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
