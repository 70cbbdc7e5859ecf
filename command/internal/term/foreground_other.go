// SPDX-License-Identifier: Apache-2.0

//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package term

import "os"

// foreground reports whether this process may use the terminal.
func foreground(*os.File) bool { return true }
