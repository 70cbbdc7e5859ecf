// SPDX-License-Identifier: Apache-2.0

package refrain_test

import (
	"path"
	"strings"
	"testing"
)

// filesOfARoom is how many files a folder of Go may have, without tests, so that whoever opens it finds the one that matters.
// Whoever needs one more finds the concept in the room that deserves a room of its own.
const filesOfARoom = 30

func TestRoomsAreSmall(t *testing.T) {
	rooms := make(map[string]int)
	walk(t, func(name string) {
		if path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") {
			rooms[path.Dir(name)]++
		}
	})
	for room, files := range rooms {
		if files > filesOfARoom {
			t.Errorf("%s has %d files, want at most %d", room, files, filesOfARoom)
		}
	}
	if rooms["loop"] == 0 {
		t.Errorf("no room has files: %v", rooms)
	}
}
