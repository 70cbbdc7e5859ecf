// SPDX-License-Identifier: Apache-2.0

package fielderror_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/values/fielderror"
)

func Example() {
	err := fielderror.New("Output", "%s also writes %q; remove one", fielderror.Name("Result"), "Result")
	fmt.Println(err)
	fmt.Println(err.Message(strings.ToLower))
	fmt.Println(err.Text(strings.ToLower))
	fmt.Println(fielderror.About("Timeout", "is negative: %d", -1).Message(strings.ToLower))
	// Output:
	// Output: Result also writes "Result"; remove one
	// output: result also writes "Result"; remove one
	// result also writes "Result"; remove one
	// timeout is negative: -1
}

func TestErrorWrapsItsCause(t *testing.T) {
	err := fielderror.New("Body", "read %s: %w", fielderror.Name("Args"), io.ErrUnexpectedEOF)
	if !errors.Is(err, io.ErrUnexpectedEOF) || err.Error() != "Body: read Args: unexpected EOF" {
		t.Errorf("%v", err)
	}
	if err := fielderror.Whole("both %s and %s are set", fielderror.Name("A"), fielderror.Name("B")); err.Error() != "both A and B are set" {
		t.Errorf("%v", err)
	}
}
