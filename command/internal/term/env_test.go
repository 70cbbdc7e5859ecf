// SPDX-License-Identifier: Apache-2.0

package term_test

import (
	"runtime/debug"
	"testing"

	"github.com/refrain-dev/refrain/command/internal/term"
)

func TestVersionNamesCommitAndDayOnce(t *testing.T) {
	for version, want := range map[string]string{
		"(devel)":                              "refrain (devel) b888353d56e3 2026-11-28 go1.26.8",
		"v1.2.3":                               "refrain v1.2.3 b888353d56e3 2026-11-28 go1.26.8",
		"v1.2.4-0.20261128224558-b888353d56e3": "refrain v1.2.4-0.20261128224558-b888353d56e3 go1.26.8",
		"v1.2.4-0.20261128224558-b888353d56e3+dirty": "refrain v1.2.4-0.20261128224558-b888353d56e3+dirty go1.26.8",
	} {
		info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: version},
			Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "b888353d56e3481402600112233445566778899a"},
				{Key: "vcs.time", Value: "2026-11-28T22:45:58Z"}}}
		if got := term.VersionOf(info); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
