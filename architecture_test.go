// SPDX-License-Identifier: Apache-2.0

package refrain_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Every folder and file that the page on the architecture names is there.
func TestArchitectureNamesWhatIsThere(t *testing.T) {
	page, err := os.ReadFile("doc/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, span := range regexp.MustCompile("`([a-z0-9/_.]+/[a-z0-9/_.]+)`").FindAllStringSubmatch(string(page), -1) {
		if _, err := os.Stat(filepath.FromSlash(span[1])); err != nil {
			t.Errorf("doc/architecture.md names a place that is not there: %v", err)
		}
		found++
	}
	if found < 30 {
		t.Errorf("found only %d names", found)
	}
}
