// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"testing"

	"github.com/refrain-dev/refrain/session"
)

func TestAddressParts(t *testing.T) {
	for _, tt := range []struct{ address, agent, parent session.Address }{
		{"", "", ""},
		{"story", "story", ""},
		{"story#2", "story", ""},
		{"story/refine", "refine", "story"},
		{"story/refine[3]", "refine", "story"},
		{"story/refine[3]/critic", "critic", "story/refine"},
		{"story/refine[12]/critic#2", "critic", "story/refine"},
		{"story/refine#2[3]/critic", "critic", "story/refine#2"},
		{"story/refine#2[3]", "refine", "story"},
		{"a[1]/b[2]/c", "c", "a[1]/b"},
		{"a[1]/b", "b", "a"},
		{"]/", "", "]"}, // never written, but a store may hold anything
	} {
		if got := tt.address.Agent(); got != string(tt.agent) {
			t.Errorf("%q.Agent() = %q, want %q", tt.address, got, tt.agent)
		}
		if got := tt.address.Parent(); got != tt.parent {
			t.Errorf("%q.Parent() = %q, want %q", tt.address, got, tt.parent)
		}
	}
}

func TestAddressUnder(t *testing.T) {
	for _, tt := range []struct {
		a, p session.Address
		want bool
	}{
		{"story", "story", true},
		{"story/refine", "story", true},
		{"story/refine[3]/critic", "story", true},
		{"story/refine[3]/critic", "story/refine", true},
		{"story/refine[3]/critic", "story/refine[3]", true},
		{"story/refine[3]", "story/refine", true},
		{"story/refine[3]/critic", "story/refine[4]", false},
		{"story/refine[10]/critic", "story/refine[1]", false},
		{"story/refiner", "story/refine", false},
		{"story/refine#2/critic", "story/refine", false},
		{"story/refine#2/critic", "story/refine#2", true},
		{"story", "story/refine", false},
		{"other", "story", false},
		{"", "story", false},
	} {
		if got := tt.a.Under(tt.p); got != tt.want {
			t.Errorf("%q.Under(%q) = %t, want %t", tt.a, tt.p, got, tt.want)
		}
	}
}
