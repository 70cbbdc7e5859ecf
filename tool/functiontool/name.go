// SPDX-License-Identifier: Apache-2.0

package functiontool

import (
	"reflect"
	"runtime"
	"strings"

	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

var (
	typeArguments = lazyregexp.New(`\[.*\]`)
	anonymous     = lazyregexp.New(`^(func|gowrap)?\d+$`) // what the compiler calls a function without a name
	notInNames    = lazyregexp.New(`[^A-Za-z0-9]+`)
)

// nameOf is a function's name without its package, as a model may call it: Search
// for pkg.Search and for the method value c.Search. An anonymous function has the
// name of the one around it and a number. Nil has the name "function".
func nameOf(f any) string {
	v := reflect.ValueOf(f)
	if !v.IsValid() || v.IsNil() {
		return "function"
	}
	name := typeArguments().ReplaceAllString(runtime.FuncForPC(v.Pointer()).Name(), "")
	name = strings.TrimSuffix(name[strings.LastIndex(name, "/")+1:], "-fm")
	_, name, _ = strings.Cut(name, ".")
	if last := name[strings.LastIndex(name, ".")+1:]; !anonymous().MatchString(last) {
		name = last
	}
	return strings.Trim(notInNames().ReplaceAllString(name, "_"), "_")
}
