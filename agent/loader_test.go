// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/agent"
)

func named(t *testing.T, name string) agent.Agent {
	t.Helper()
	a, err := agent.New(agent.Config{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestLoaders(t *testing.T) {
	a, b := named(t, "a"), named(t, "b")
	one := agent.NewSingleLoader(a)
	for _, name := range []string{"a", ""} {
		if got, err := one.LoadAgent(name); got != a || err != nil {
			t.Errorf("LoadAgent(%q) = %v, %v", name, got, err)
		}
	}
	both, err := agent.NewMultiLoader(b, a)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(both.ListAgents(), " "); got != "a b" || both.RootAgent() != b {
		t.Errorf("agents %q, root %v", got, both.RootAgent())
	}
	if got, err := both.LoadAgent("a"); got != a || err != nil {
		t.Errorf("LoadAgent = %v, %v", got, err)
	}
	if _, err := both.LoadAgent("c"); err == nil || !strings.Contains(err.Error(), "the program has a, b") {
		t.Errorf("LoadAgent of an unknown name: %v", err)
	}
	if _, err := agent.NewMultiLoader(a, named(t, "a")); err == nil {
		t.Error("two agents have one name")
	}
}

func ExampleNewMultiLoader() {
	writer, err := agent.New(agent.Config{Name: "writer"})
	if err != nil {
		fmt.Println(err)
		return
	}
	critic, err := agent.New(agent.Config{Name: "critic"})
	if err != nil {
		fmt.Println(err)
		return
	}
	loader, err := agent.NewMultiLoader(writer, critic)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(loader.ListAgents(), loader.RootAgent().Name())
	// Output: [critic writer] writer
}
