// SPDX-License-Identifier: Apache-2.0

// Package problem holds the errors of operations as the clients of a server get them, whatever protocol
// they speak: a kind for programs, and a text for people.
//
//	if n < 1 {
//		return problem.Bad("limit %d: give a number of at least 1", n)
//	}
package problem

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/supervisor"
)

// Problem is an error as a client gets it: RFC 9457.
type Problem struct {
	// Type names the kind of problem, for programs.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Problems are those of a definition.
	Problems definition.Problems `json:"problems,omitempty"`

	// Agent and Field say where in a definition; they are empty if nowhere or everywhere.
	Agent string `json:"-"`
	Field string `json:"-"`
	// Err is the reason; it is logged if the server is to blame.
	Err error `json:"-"`
	// Header is that of the answer over HTTP.
	Header map[string]string `json:"-"`
}

func (p *Problem) Error() string { return p.Title + ": " + p.Detail }

func (p *Problem) Unwrap() error { return p.Err }

// New returns a problem of a kind.
func New(status int, kind, title, format string, args ...any) *Problem {
	return &Problem{Type: "urn:refrain:" + kind, Title: title, Status: status, Detail: fmt.Sprintf(format, args...)}
}

// Bad returns the problem of a request that is not valid.
func Bad(format string, args ...any) *Problem {
	return New(http.StatusBadRequest, "bad_request", "The request is not valid", format, args...)
}

// With sets the header of the answer over HTTP, and returns the problem.
func (p *Problem) With(header, value string) *Problem {
	p.Header = map[string]string{header: value}
	return p
}

// Foreign is the error of a text of another product that is no definition.
type Foreign interface {
	error
	Problems() definition.Problems
}

// Of translates an error.
func Of(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if all, ok := errors.AsType[definition.Problems](err); ok {
		p := New(http.StatusUnprocessableEntity, "bad_definition", "The definition has mistakes", "%s", all.Summary())
		p.Problems = all
		if other, ok := errors.AsType[*program.OtherProgramError](err); ok {
			p.Detail += "; " + other.Hint()
		}
		return p
	}
	if other, ok := errors.AsType[Foreign](err); ok {
		return Of(other.Problems())
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return New(http.StatusRequestEntityTooLarge, "too_large", "The request is too large",
			"the limit is %d bytes", large.Limit)
	}
	if held, ok := errors.AsType[*lease.HeldError](err); ok {
		return New(http.StatusConflict, "run_held", "Another process drives the run", "it is %s", held.Owner)
	}
	if errors.Is(err, runlog.ErrNoEvents) {
		return New(http.StatusNotFound, "run_not_begun", "The run has not begun", "%v", err)
	}
	if at, ok := errors.AsType[*fs.PathError](err); ok && strings.HasSuffix(at.Error(), "path escapes from parent") { // package os has no name for it
		return Bad("%s is a link that leads out of its folder", at.Path)
	}
	if k, ok := supervisor.KindOf(err); ok {
		return New(k.Status, k.Problem, k.Title, "%v", err)
	}
	if in, ok := errors.AsType[*definition.InputError](err); ok {
		return New(http.StatusUnprocessableEntity, "bad_input", "An input does not fit", "%v", in)
	}
	p := New(http.StatusInternalServerError, "internal", "The server could not do that", "%v", err)
	p.Err = err
	return p
}

// NoRun returns the problem of a run that does not exist, with its ID. It returns any other error unchanged.
func NoRun(id string, err error) error {
	if !errors.Is(err, session.ErrNotFound) && !errors.Is(err, supervisor.ErrNotFound) {
		return err
	}
	p := New(http.StatusNotFound, "run_not_found", "There is no such run", "there is no run %q", id)
	p.Err = err
	return p
}

// Whole returns the text of the problem, with the problems of the definition, one a line.
func (p *Problem) Whole() string {
	var text strings.Builder
	text.WriteString(p.Error())
	for i, one := range p.Problems {
		if i == problemsMost {
			text.WriteString(fmt.Sprintf("\n… and %d more", len(p.Problems)-i))
			break
		}
		text.WriteString("\n" + one.Error())
	}
	return text.String()
}

// problemsMost is how many problems of a definition such an error lists.
const problemsMost = 20
