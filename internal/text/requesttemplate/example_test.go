// SPDX-License-Identifier: Apache-2.0

package requesttemplate_test

import (
	"encoding/json"
	"fmt"

	"github.com/refrain-dev/refrain/internal/text/requesttemplate"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/internal/values/fielderror"
)

// D4: values are escaped in a URL; in a JSON value they keep their type, also in a struct.
func Example() {
	p := requesttemplate.Parser{
		Template: func(_, text string) *template.Template {
			t, err := template.Parse(text, template.Options{Dialect: template.Mustache})
			if err != nil {
				fmt.Println(err)
				return new(template.Template)
			}
			return t
		},
		Report: func(err *fielderror.Error) { fmt.Println(err) },
	}
	state := map[string]any{"item": "a/b", "n": 3}
	lookup := func(key string) (any, bool) { v, ok := state[key]; return v, ok }

	u, err := p.URL("URL", "https://shop.example.org/items/{{item}}?n={{n}}").Fill(lookup)
	fmt.Println(u, err)

	type order struct {
		Item  string `json:"item"`
		Count string `json:"count"`
		ID    int64  `json:"id"`
	}
	v, err := p.JSON("BodyJSON", order{Item: "1 {{item}}", Count: "{{n}}", ID: 1<<53 + 1})(lookup)
	text, _ := json.Marshal(v)
	fmt.Println(string(text), err)

	p.URL("URL", "https://ana:hunter2@example.org/{{item}}")
	// Output:
	// https://shop.example.org/items/a%2Fb?n=3 <nil>
	// {"count":3,"id":9007199254740993,"item":"1 a/b"} <nil>
	// URL has a name or a password in it; send them in a header
}
