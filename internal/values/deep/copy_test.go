// SPDX-License-Identifier: Apache-2.0

package deep_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/values/deep"
)

func Example() {
	state := map[string]any{"list": []any{1, map[string]any{"a": "b"}}}
	own := deep.Copy(state)
	own["list"].([]any)[1].(map[string]any)["a"] = "edited"
	fmt.Println(state)
	// Output: map[list:[1 map[a:b]]]
}

type leaf struct{ N int }

func (*leaf) String() string { return "leaf" }

type tree struct {
	Leaf, Shared *leaf
	Texts        []string
	Numbers      map[string][]int
	Value        any
	Named        fmt.Stringer
	Bytes        []byte
	At           time.Time
	None         *leaf
	NoTexts      []string
	NoNumbers    map[string][]int
	Nothing      any
}

// An edit of the copy is not in the original, but for what is shared.
func TestCopy(t *testing.T) {
	one := &leaf{5}
	made := func() *tree {
		return &tree{
			Leaf: &leaf{1}, Texts: []string{"a"}, Numbers: map[string][]int{"a": {1}}, Value: []map[string]int{{"a": 1}},
			Named: one, Bytes: []byte("a"), At: time.Unix(1, 0),
		}
	}
	of := made()
	own := deep.Copy(of)
	if diff := cmp.Diff(of, own); diff != "" {
		t.Fatal(diff)
	}
	if own.Named != fmt.Stringer(one) || &own.Bytes[0] != &of.Bytes[0] {
		t.Error("what an interface with methods holds, or bytes, were copied")
	}
	own.Leaf.N, own.Texts[0], own.Numbers["a"][0] = 2, "b", 2
	own.Value.([]map[string]int)[0]["a"] = 2
	if diff := cmp.Diff(made(), of); diff != "" {
		t.Error(diff)
	}
	if again := deep.Copy(of, reflect.TypeFor[*leaf]()); again.Leaf != of.Leaf {
		t.Error("a pointer of a shared type was copied")
	}
	loop := map[string]any{"a": "b"}
	loop["loop"] = loop // such a value is no JSON, and an error elsewhere
	if got := deep.Copy(loop); got["a"] != "b" {
		t.Errorf("got %v", got["a"])
	}
	if deep.Copy[any](nil) != nil || deep.Copy[*leaf](nil) != nil {
		t.Error("nil is not nil any more")
	}
}
