// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"testing"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/internal/testkit/artifacttest"
)

// E6
func TestInMemoryService(t *testing.T) {
	artifacttest.TestService(t, func(*testing.T) artifact.Service { return artifact.InMemoryService() })
}
