// SPDX-License-Identifier: Apache-2.0

package drive_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
)

// A12: everybody in a tree is found by name, with who is above.
func TestTree(t *testing.T) {
	leaf := speaker(t, "leaf", "x")
	mid := custom(t, "mid", nil, leaf)
	root := custom(t, "root", nil, mid, speaker(t, "other", "y"))
	tree, err := drive.NewTree(root)
	if err != nil {
		t.Fatal(err)
	}
	if tree.Root() != root || tree.Find("leaf") != leaf || tree.Find("root") != root || tree.Find("nobody") != nil {
		t.Error("somebody is not found")
	}
	if tree.Parent("leaf") != mid || tree.Parent("mid") != root || tree.Parent("root") != nil || tree.Parent("nobody") != nil {
		t.Error("somebody has the wrong parent")
	}
	if diff := cmp.Diff([]string{"leaf", "mid", "other", "root"}, tree.Names()); diff != "" {
		t.Error(diff)
	}
	var none *drive.Tree
	if none.Root() != nil || none.Find("x") != nil || none.Parent("x") != nil || none.Names() != nil {
		t.Error("a nil tree is empty")
	}
	if _, err := drive.NewTree(custom(t, "twice", nil, leaf, custom(t, "mid", nil, speaker(t, "leaf", "z")))); err == nil ||
		!strings.Contains(err.Error(), "unique") {
		t.Errorf("got %v", err)
	}
}

// A step and all in it know the tree; one may be given another.
func TestTreeOfAStep(t *testing.T) {
	var got []*drive.Tree
	note := func(ctx agent.InvocationContext) { got = append(got, drive.At(ctx).Tree()) }
	leaf := custom(t, "leaf", func(ctx agent.InvocationContext, _ yield) { note(ctx) })
	root := custom(t, "root", func(ctx agent.InvocationContext, y yield) {
		note(agent.NewCallbackContext(ctx, nil))
		under, cancel := context.WithCancel(ctx)
		defer cancel()
		for _, c := range []agent.InvocationContext{ctx, ctx.WithContext(under), agent.NewCallbackContext(ctx, nil)} {
			for ev, err := range drive.Run(c, leaf) {
				y(ev, err)
			}
		}
		own, err := drive.NewTree(leaf)
		if err != nil {
			t.Fatal(err)
		}
		drive.NewStep(ctx, drive.StepConfig{Agent: leaf, Tree: own}).Run(func(*session.Event) bool { return true })
		if last := got[len(got)-1]; last != own {
			t.Error("a step does not have the tree that it was given")
		}
	}, leaf)
	tree, err := drive.NewTree(root)
	if err != nil {
		t.Fatal(err)
	}
	drive.NewStep(invocation(t.Context()), drive.StepConfig{Agent: root, Tree: tree}).Run(func(*session.Event) bool { return true })
	if len(got) != 5 {
		t.Fatalf("%d steps", len(got))
	}
	for i, tr := range got[:4] {
		if tr != tree {
			t.Errorf("step %d has another tree", i)
		}
	}
	if drive.At(invocation(t.Context())).Tree() != nil {
		t.Error("who gives none has none")
	}
}
