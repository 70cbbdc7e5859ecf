// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package runstore

// bootID is not known here: whoever may be dead is waited for.
func bootID() string { return "" }

func alive(int) bool { return true }
