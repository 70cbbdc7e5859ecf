// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package trust

// writers returns "", because the permissions of this system are not those of a file mode.
func writers(string) string { return "" }

// writable returns true, because the permissions of this system are not those of a file mode.
func writable(string) bool { return true }
