// SPDX-License-Identifier: Apache-2.0

package slug

import "testing"

func TestMake(t *testing.T) {
	for _, tt := range []struct{ title, want string }{
		{"Hello", "hello"},
		{"Hello, World!", "hello-world"},
		{"  three   wide  gaps", "three-wide-gaps"},
		{"Ação 24 horas", "ação-24-horas"},
		{"?!", ""},
	} {
		if got := Make(tt.title); got != tt.want {
			t.Errorf("Make(%q) = %q, want %q", tt.title, got, tt.want)
		}
	}
}
