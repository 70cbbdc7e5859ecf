// SPDX-License-Identifier: Apache-2.0

package exitlooptool_test

import (
	"fmt"

	"github.com/refrain-dev/refrain/tool/exitlooptool"
)

func ExampleNewWith() {
	exit, err := exitlooptool.NewWith(exitlooptool.Config{Criteria: "the mean score is at least 8.0 and no score is below 7.0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(exit.Name())
	fmt.Println(exit.Description())
	// Output:
	// exit_loop
	// Call this function ONLY when the mean score is at least 8.0 and no score is below 7.0. It ends the loop. As long as that is not so, do not call it: the loop goes on by itself.
}
