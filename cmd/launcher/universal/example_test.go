// SPDX-License-Identifier: Apache-2.0

package universal_test

import (
	"fmt"

	"github.com/refrain-dev/refrain/cmd/launcher/universal"
)

func ExampleErrorOnUnparsedArgs() {
	fmt.Println(universal.ErrorOnUnparsedArgs(nil))
	fmt.Println(universal.ErrorOnUnparsedArgs([]string{"x", "y"}))
	// Output:
	// <nil>
	// unknown arguments: x y
}
