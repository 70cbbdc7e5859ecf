// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// noMount returns a [*MountError] if a folder, or a folder in it, is a mount point: what is deleted or restored there belongs to
// another folder. It returns nil if the system does not list its mounts.
func noMount(folder string) error {
	path, err := filepath.Abs(folder)
	if err != nil {
		return fmt.Errorf("find the folder %q: %w", folder, err)
	}
	if real, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(real, filepath.Base(path)) // a link at its end is not followed
	}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			continue
		}
		if at := mountPath(fields[4]); within(at, path) {
			return &MountError{at}
		}
	}
	return lines.Err()
}

// mountPath reads a path of mountinfo, in which \040 stands for a blank.
func mountPath(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var path strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+4 <= len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				path.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		path.WriteByte(text[i])
	}
	return path.String()
}
