// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package workspace

// noMount finds no mount points on this system.
func noMount(string) error { return nil }
