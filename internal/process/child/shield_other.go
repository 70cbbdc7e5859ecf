// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package child

// Shield does nothing, because this system has no such setting.
func Shield() {}
