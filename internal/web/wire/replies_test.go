// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"testing"
)

// A request that ends in a panic can be asked again under its key.
func TestReplyAfterAPanic(t *testing.T) {
	var all Replies
	func() {
		defer func() { _ = recover() }()
		_ = all.DoOnce("key", [32]byte{}, func() error { panic("once") })
	}()
	failed := errors.New("failed")
	if err := all.DoOnce("key", [32]byte{}, func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("after a panic: %v, want %v", err, failed)
	}
	if err := all.DoOnce("key", [32]byte{}, func() error { return nil }); err != nil {
		t.Errorf("after a failure: %v", err)
	}
	if err := all.DoOnce("key", [32]byte{}, func() error { return failed }); err != nil {
		t.Errorf("after it was done: %v", err)
	}
}
