// SPDX-License-Identifier: Apache-2.0

package elsewhere

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
)

// Failure is an error as it travels in the result of a task: its text, and what tells its kind.
type Failure map[string]json.RawMessage

// Kind is a kind of error that is known again where the result is read.
type Kind struct {
	name string
	find func(err error) any         // returns what travels, nil if err is of another kind
	read func(f Failure) (err error) // returns the error again
	flat bool                        // what travels is an object whose fields stand beside the text
}

// Late is the kind of the errors of a task that ran out of time.
var Late = Is("late", context.DeadlineExceeded)

// Is returns the kind of the errors in which errors.Is finds known.
func Is(name string, known error) Kind {
	return When(name, func(err error) bool { return errors.Is(err, known) }, known)
}

// When returns the kind of the errors for which has returns true. They become known.
func When(name string, has func(error) bool, known error) Kind {
	return Kind{name: name, find: func(err error) any {
		if !has(err) {
			return nil
		}
		return true
	}, read: func(Failure) error { return known }}
}

// As returns the kind of the errors in which errors.As finds an E. It travels as JSON.
func As[E error](name string) Kind {
	return Kind{name: name, find: found[E], read: func(f Failure) error { return decoded[E](f[name]) }}
}

// Fields is [As] for an error whose fields travel beside the text. The field name is always among them.
func Fields[E error](name string) Kind {
	return Kind{name: name, find: found[E], read: func(f Failure) error { return decoded[E](encode(f)) }, flat: true}
}

func found[E error](err error) any {
	if e, ok := errors.AsType[E](err); ok {
		return e
	}
	return nil
}

func decoded[E error](data json.RawMessage) error {
	var e E
	if json.Unmarshal(data, &e) != nil {
		return nil // the text is all that is known
	}
	return e
}

// encode writes texts, flags and errors that consist of them, which JSON can always say.
func encode(v any) json.RawMessage {
	data, _ := json.Marshal(v)
	return data
}

// Kinds lists the kinds of errors of a kind of task; the first that fits an error is its kind.
type Kinds []Kind

// Write returns an error as it travels; nil if err is nil.
func (all Kinds) Write(err error) Failure {
	if err == nil {
		return nil
	}
	f := Failure{"text": encode(err.Error())}
	for _, k := range all {
		if data := k.find(err); data != nil {
			k.write(f, encode(data))
			break
		}
	}
	return f
}

// write adds what travels of an error.
func (k *Kind) write(f Failure, data json.RawMessage) {
	if !k.flat {
		f[k.name] = data
		return
	}
	var fields Failure
	_ = json.Unmarshal(data, &fields) // an object, as Fields says
	maps.Copy(f, fields)
}

// Read returns the error of a failure, which wraps the error of its kind; nil if f is nil.
func (all Kinds) Read(f Failure) error {
	if f == nil {
		return nil
	}
	e := new(farError)
	_ = json.Unmarshal(f["text"], &e.text)
	for _, k := range all {
		if f[k.name] != nil {
			e.err = k.read(f)
			break
		}
	}
	return e
}

// farError is an error that has travelled.
type farError struct {
	text string
	err  error // of its kind; nil if it has none
}

func (e *farError) Error() string { return e.text }
func (e *farError) Unwrap() error { return e.err }
