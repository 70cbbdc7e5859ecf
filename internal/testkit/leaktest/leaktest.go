// SPDX-License-Identifier: Apache-2.0

// Package leaktest looks for goroutines that tests have left running. It gives goroutines that are about to end
// enough time for a loaded machine.
//
//	func TestMain(m *testing.M) { leaktest.Main(m) }
package leaktest

import (
	"fmt"
	"os"
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines have to end. goleak waits only half a second.
const patience = 30 * time.Second

// Find returns an error that shows the goroutines that still run after 30 s, except those that the options of goleak ignore.
func Find(options ...goleak.Option) error {
	// genai imports OpenCensus, which starts a goroutine when it is loaded.
	options = append(options, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
	for end := time.Now().Add(patience); ; {
		if err := goleak.Find(options...); err == nil || time.Now().After(end) {
			return err
		}
	}
}

// Main runs the tests of a package and ends the process. It also fails if all tests pass but leave goroutines behind.
func Main(m interface{ Run() int }) {
	code := m.Run()
	if code == 0 {
		if err := Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
