// SPDX-License-Identifier: Apache-2.0

// Package access keeps the people who may use a server, each with a role and, for most of them, a token.
//
//	people, err := access.Open("tokens.json")
//	if err != nil {
//		return err
//	}
//	who, err := people.WithToken(token) // access.Person{Name: "ana", Role: access.Operator}
//
// The file has hashes of the tokens, and not the tokens. It is read at each question, so a change counts at once.
package access

import (
	"fmt"

	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/internal/values/suggest"
)

// Role says what a person may do. Each role includes those before it.
type Role int

// The roles.
const (
	None     Role = iota // nothing
	Reader               // look at runs and definitions
	Operator             // start runs of the server's definitions, and act on runs
	Author               // change and send definitions, and remove runs
)

var roles = []string{"none", "reader", "operator", "author"}

func (r Role) String() string { return roles[r] }

// ParseRole reads a role that a person can have: reader, operator or author.
func ParseRole(text string) (Role, error) {
	for r := Reader; r <= Author; r++ {
		if roles[r] == text {
			return r, nil
		}
	}
	hint := ""
	if near := suggest.Nearest(text, roles[Reader:]); near != "" {
		hint = fmt.Sprintf(" (did you mean %s?)", near)
	}
	return None, fmt.Errorf("there is no role %q%s: use reader, operator or author", text, hint)
}

// MarshalText writes the role's name.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what ParseRole reads.
func (r *Role) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRole(string(text))
	return err
}

// Person is somebody who may use the server. The zero value is nobody.
type Person struct {
	Name string `json:"name"`
	Role Role   `json:"role"`
}

// A name has no spaces, unlike the names of processes and schedules in the log of a run.
var name = lazyregexp.New(`^[A-Za-z0-9][!-~]{0,127}$`)

// CheckName returns an error for a text that cannot be the name of a person.
func CheckName(text string) error {
	switch {
	case text == "token" || text == "local":
		return fmt.Errorf("the name %q stands for clients without a name: choose another one", text)
	case !name().MatchString(text):
		return fmt.Errorf("%q cannot be a name: begin with a letter or digit, and use up to 128 letters, digits and signs of ASCII, no spaces", text)
	}
	return nil
}
