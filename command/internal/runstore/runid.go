// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxID is the largest number of characters in a run's ID, so that the ID fits into a list.
const MaxID = 64

// CheckID returns an error for an ID that a person could not type later, in a command or copied from a list.
func CheckID(id string) error {
	switch n := utf8.RuneCountInString(id); {
	case id == "":
		return errors.New("the ID is empty; leave out the flag to get a new ID")
	case id == "last":
		return errors.New("last always means the newest run; choose another ID")
	case n > MaxID:
		return fmt.Errorf("the ID has %d characters; the limit is %d", n, MaxID)
	case strings.HasPrefix(id, "-"):
		return fmt.Errorf("the ID %q begins with a hyphen, as flags do; choose another one", id)
	case !utf8.ValidString(id) || strings.ContainsFunc(id, unseen):
		return fmt.Errorf("the ID %q has characters that cannot be seen or typed; use letters, digits and - _ . : @ /",
			id)
	}
	return nil
}

// unseen reports whether a character cannot be read in a list, such as white space.
func unseen(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
