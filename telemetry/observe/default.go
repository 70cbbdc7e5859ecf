// SPDX-License-Identifier: Apache-2.0

package observe

import "sync/atomic"

var standard atomic.Pointer[Observer]

// SetDefault sets the observer of the runs of this process that have no observer of their own; nil removes
// it. It applies to runs that start, or are resumed, afterwards.
func SetDefault(o Observer) {
	if o == nil {
		standard.Store(nil)
		return
	}
	standard.Store(&o)
}

// Default returns the observer that [SetDefault] has set; nil if there is none.
func Default() Observer {
	if o := standard.Load(); o != nil {
		return *o
	}
	return nil
}
