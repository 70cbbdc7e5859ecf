// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/definition"
)

// A definition in JSON is often one line: its problems have their columns however
// far behind they are, in characters.
func TestPlacesInALongLine(t *testing.T) {
	for _, n := range []int{0, 1, 3, 40, 400} {
		text := `{"name": "x", "max_iterations": 3, "sub_agents": [`
		for i := range n {
			text += fmt.Sprintf(`{"name": "a%d", "text": %q}, `, i, strings.Repeat("é", 23))
		}
		text += `{"name": "b", "text": "b", `
		column := utf8.RuneCountInString(text) + 1
		text += `"outputkey": "b"}]}`
		_, err := definition.Parse("x.json", []byte(text), definition.Options{})
		problems, _ := errors.AsType[definition.Problems](err)
		if len(problems) != 1 || problems[0].Line != 1 || problems[0].Column != column {
			t.Errorf("%d agents before: got %v, want a problem at 1:%d", n, err, column)
		}
	}
}
