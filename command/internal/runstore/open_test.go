// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"testing"
)

// A store's password is not shown, in whatever is wrong with the rest of it.
func TestStoreWithoutItsPassword(t *testing.T) {
	for in, want := range map[string]string{
		"postgrs://u:SECRET@h/db":              "postgrs://[secret]@h/db",
		"postgrs://u:SEC@RET@h:5/db":           "postgrs://[secret]@h:5/db",
		"postgrs://u:SEC/RET@h/db":             "postgrs://[secret]@h/db",
		"pg:host=h password=SECRET dbname=x":   "pg:host=h password=[secret] dbname=x",
		"pg:password = 'SEC RET' host=h":       "pg:password = [secret] host=h",
		"pg://h/db?user=u&password=SECRET&x=1": "pg://h/db?user=u&password=[secret]&x=1",
		"runs.db":                              "runs.db",
		"a/b@c.db":                             "a/b@c.db",
	} {
		if got := withoutPassword(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}
