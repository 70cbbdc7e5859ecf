// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"testing"
	"unsafe"
)

// A long run has a hundred thousand steps and more in its tree, so the size of one is most of what the page of the run takes.
func TestAStepIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Step{}); unsafe.Sizeof(uintptr(0)) == 8 && size > 288 {
		t.Errorf("a step has %d bytes: put what few steps have behind a pointer", size)
	}
}
