// SPDX-License-Identifier: Apache-2.0

// Package leaktest looks for goroutines that tests have left behind, and gives those that are
// about to end the time that a loaded machine needs.
//
//	func TestMain(m *testing.M) { leaktest.Main(m) }
package leaktest

import (
	"fmt"
	"os"
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines have to end. goleak alone waits for half a second.
const patience = 30 * time.Second

// Find returns an error that shows the goroutines that are still there after 30 s, without
// those that the options of goleak leave out.
func Find(options ...goleak.Option) error {
	// genai brings OpenCensus along, which starts a goroutine as it is loaded.
	options = append(options, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
	for end := time.Now().Add(patience); ; {
		if err := goleak.Find(options...); err == nil || time.Now().After(end) {
			return err
		}
	}
}

// Main runs the tests of a package and ends the process: with a failure, too, if all of them
// pass and leave goroutines behind.
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
