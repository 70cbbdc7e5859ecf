// SPDX-License-Identifier: Apache-2.0

package shellword_test

import (
	"fmt"

	"github.com/refrain-dev/refrain/internal/process/shellword"
)

func ExampleOf() {
	for _, s := range []string{"out/a.patch", "it's", "a;b", "-x", "", "a\nb"} {
		fmt.Printf("%q\n", shellword.Of(s))
	}
	// Output:
	// "out/a.patch"
	// "'it'\\''s'"
	// "'a;b'"
	// "./-x"
	// "''"
	// "'a\nb'"
}
