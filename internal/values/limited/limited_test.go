// SPDX-License-Identifier: Apache-2.0

package limited_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/values/limited"
)

func ExampleHead() {
	out := &limited.Head{Most: 10, Full: func() error { return errors.New("stdout has more than 10 bytes") }}
	_, err := fmt.Fprint(out, "All 12 tests pass.")
	fmt.Printf("%q, %v\n", out, err)
	// Output: "All 12 tes", stdout has more than 10 bytes
}

func ExampleTail() {
	errs := &limited.Tail{Most: 10}
	fmt.Fprint(errs, "warning: unused\n", "fatal: höher\n")
	fmt.Printf("%q\n", errs)
	// Output: "l: höher\n"
}

// Whatever the pieces are, a head has the beginning and a tail the end, without a part of a character in front.
func TestSeams(t *testing.T) {
	for _, pieces := range [][]string{
		nil, {""}, {"a"}, {"abc", "defgh", "ijklmnopqrstuvwx", "é", "yz"}, {"日本語", "", "日本語日本語"}, {"\xff\xfe\x80\x80\x80\x80\x80\x80"},
		{"\u202eab", "\x1b[31m"},
	} {
		all := strings.Join(pieces, "")
		for most := range 9 {
			head, tail := &limited.Head{Most: int64(most)}, &limited.Tail{Most: int64(most)}
			for _, p := range pieces {
				for _, err := range []error{second(head.Write([]byte(p))), second(tail.Write([]byte(p)))} {
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			if got, want := head.String(), all[:min(most, len(all))]; got != want || head.Cut() != (len(all) > most) {
				t.Errorf("the head of %d bytes of %q is %q, %t", most, all, got, head.Cut())
			}
			got := tail.String()
			if !strings.HasSuffix(all, got) || len(got) > most || len(got) < min(most, len(all))-3 {
				t.Errorf("the tail of %d bytes of %q is %q", most, all, got)
			}
			if strings.ToValidUTF8(all, "") == all && strings.ToValidUTF8(got, "") != got {
				t.Errorf("the tail of %d bytes of %q is %q, with a part of a character", most, all, got)
			}
			if tail.Reset(); tail.String() != "" {
				t.Errorf("after a reset the tail is %q", tail)
			}
		}
	}
}

func second(_ int, err error) error { return err }

// A limit from elsewhere can be less than 0: nothing is kept.
func TestLessThanNothing(t *testing.T) {
	head, tail := &limited.Head{Most: -1}, &limited.Tail{Most: -1}
	for range 3 {
		if n, err := head.Write([]byte("abc")); n != 3 || err != nil || !head.Cut() || head.String() != "" {
			t.Errorf("the head takes %d, %v, and is %q", n, err, head)
		}
		if n, err := tail.Write([]byte("abc")); n != 3 || err != nil || tail.String() != "" {
			t.Errorf("the tail takes %d, %v, and is %q", n, err, tail)
		}
	}
}
