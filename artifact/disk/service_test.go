// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"testing"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/artifact/artifacttest"
	"github.com/refrain-dev/refrain/artifact/disk"
)

// E6
func TestService(t *testing.T) {
	artifacttest.TestService(t, func(t *testing.T) artifact.Service { return open(t, t.TempDir()) })
}

func open(t testing.TB, dir string) *disk.Service {
	t.Helper()
	s, err := disk.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
