// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/definition"
)

// The file names variables. A problem about an address in the file does not show it.
func TestNotify(t *testing.T) {
	const rest = "\nname: x\nmax_iterations: 1\nsub_agents:\n  - {name: a, text: hi}\n"
	d, err := definition.Parse("x.yaml", []byte("notify: {OPS: [failed, asks], ME: [ended]}"+rest), definition.Options{})
	if err != nil || d.Notify.String() != "ME of ended; OPS of failed, asks" {
		t.Errorf("got %v, %v", d, err)
	}
	for text, want := range map[string]string{
		"{'https://x.example/SECRET': [failed]}": "put it into a variable",
		"{'https://x.example/SECRET': [faild]}":  "put it into a variable",
		"https://x.example/SECRET":               "must be a map",
		"[https://x.example/SECRET]":             "must be a map",
		"{OPS: https://x.example/SECRET}":        "must be a list",
		"{OPS: [faild]}":                         `did you mean "failed"?`,
		"{OPS: []}":                              "name some events",
		"{OPS: failed}":                          "write it as a list: [failed]",
	} {
		_, err := definition.Parse("x.yaml", []byte("notify: "+text+rest), definition.Options{})
		var b strings.Builder
		if problems, ok := errors.AsType[definition.Problems](err); ok {
			problems.Format(&b)
		}
		if !strings.Contains(b.String(), want) || strings.Contains(b.String(), "SECRET") {
			t.Errorf("%s: %s", text, &b)
		}
	}
	if n, err := definition.ParseNotify([]string{"A", "B=asks,limited"}); err != nil || n.String() != "A of ended, stopped_by_limit, failed, asks; B of asks, limited" {
		t.Errorf("got %s, %v", n, err)
	}
	for _, text := range []string{"https://x.example/SECRET", "A=asked", "A=", "A=https://x.example/SECRET", "A=failed,SECRET"} {
		if _, err := definition.ParseNotify([]string{text}); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: error %v", text, err)
		}
	}
}
