// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"fmt"
	"os"
)

// opened returns a path of an open folder that no program can replace, for the time until a command has started. It returns path if the
// system has no such paths.
func opened(folder *os.File, path string) string {
	name := fmt.Sprintf("/proc/self/fd/%d", folder.Fd())
	if _, err := os.Stat(name); err != nil {
		return path
	}
	return name
}
