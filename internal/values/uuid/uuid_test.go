// SPDX-License-Identifier: Apache-2.0

package uuid_test

import (
	"testing"

	google "github.com/google/uuid"

	"github.com/refrain-dev/refrain/internal/values/uuid"
)

func TestRandomUUIDs(t *testing.T) {
	seen := make(map[string]bool)
	for range 1000 {
		id := uuid.New().String()
		if u, err := google.Parse(id); err != nil || u.Version() != 4 || u.Variant() != google.RFC4122 || seen[id] || !uuid.Valid(id) {
			t.Fatal(id, err)
		}
		seen[id] = true
	}
}

// IDs of calls in stored sessions are made of names: they stay as they were.
func TestNamedUUIDs(t *testing.T) {
	for _, name := range []string{"", "s1\x001\x00call_1", "é"} {
		if got, want := uuid.Named([]byte(name)).String(), google.NewSHA1(google.NameSpaceOID, []byte(name)).String(); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}

func TestValid(t *testing.T) {
	for text, want := range map[string]bool{
		"0f8fad5b-d9cb-469f-a165-70867728950e":  true,
		"0F8FAD5B-D9CB-469F-A165-70867728950E":  true,
		"0f8fad5b-d9cb-469f-a165-70867728950":   false,
		"0f8fad5b-d9cb-469f-a165-70867728950eb": false,
		"0f8fad5bd9-cb-469f-a165-70867728950e":  false,
		"0f8fad5b-d9cb-469f-a165-70867728950g":  false,
		"":                                      false,
	} {
		if uuid.Valid(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
