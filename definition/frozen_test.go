// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/loop"
)

var frozenPrint = flag.String("frozen.print", "", "write what came of each generated definition to a file, to compare two versions by diff")

// frozenMany is how many definitions are made up for each field.
const frozenMany = 300

const frozenFile = "testdata/frozen.golden"

// What is read out of tens of thousands of made-up definitions, right and wrong, and where their problems are, changes
// only when somebody means it to. Each line of the golden file has a hash over the definitions with one field. Words of
// messages are not in the hashes. To see what has changed, run both versions with REFRAIN_LONG=1 and -frozen.print FILE,
// and compare the files.
func TestFrozenDefinitions(t *testing.T) {
	t.Parallel()
	if !longtest.On() && !*update {
		t.Skip("it reads 26,000 definitions: make long")
	}
	fields := definition.Fields()
	lines, results := make([]string, len(fields)), make([][]string, len(fields))
	var wg sync.WaitGroup
	busy := make(chan bool, 4)
	for at, f := range fields {
		wg.Go(func() {
			busy <- true
			defer func() { <-busy }()
			all := sha256.New()
			for i := range frozenMany {
				text, part := makerOf(f.Name, i).document(f)
				came := comesOf(text, part)
				io.WriteString(all, came.frozen())
				if *frozenPrint != "" {
					results[at] = append(results[at], fmt.Sprintf("=== %s %d\n%s--- part\n%s--- comes to\n%s", f.Name, i, text, part, came.whole()))
				}
			}
			lines[at] = fmt.Sprintf("%s %x", f.Name, all.Sum(nil)[:8])
		})
	}
	wg.Wait()
	if *frozenPrint != "" {
		if err := os.WriteFile(*frozenPrint, []byte(strings.Join(slices.Concat(results...), "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(lines)
	if *update {
		if err := os.WriteFile(frozenFile, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := strings.Split(strings.TrimSpace(readFile(t, frozenFile)), "\n")
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("other things come of the definitions with these fields (-want +got):\n%s\n"+
			"if that is meant: go test ./definition -run Frozen -update", diff)
	}
}

// came is what came of a definition.
type came struct {
	problems definition.Problems
	dump     string
}

func comesOf(text, part string) came {
	fsys := fstest.MapFS{"part.yaml": {Data: []byte(part)}}
	d, err := definition.Parse("x.yaml", []byte(text), definition.Options{FS: fsys})
	if err != nil {
		problems, _ := errors.AsType[definition.Problems](err)
		return came{problems: problems}
	}
	var b strings.Builder
	dump(&b, reflect.ValueOf(d), "")
	paths := slices.Concat(fieldPaths(text), fieldPaths(part))
	slices.Sort(paths)
	paths = slices.Compact(paths)
	for a := range d.Root.All {
		fmt.Fprintf(&b, "%s at %s\n", a.Name, a.Position())
		for _, path := range paths {
			if at, ok := a.FieldPosition(path); ok {
				fmt.Fprintf(&b, "  %s at %s\n", path, at)
			}
		}
	}
	return came{slices.Concat(d.Warnings(), d.Notes()), b.String()}
}

// frozen is all but the words of problems.
func (c came) frozen() string {
	var b strings.Builder
	for _, p := range c.problems {
		fmt.Fprintf(&b, "%s:%d:%d+%d %s %s\n", p.File, p.Line, p.Column, p.Length, p.Severity, p.Code)
	}
	return b.String() + c.dump
}

func (c came) whole() string {
	var b strings.Builder
	for _, p := range c.problems {
		fmt.Fprintf(&b, "%v +%d (%s)\n", p, p.Length, p.Hint)
	}
	return b.String() + c.dump
}

// plain returns a value as it is written into a dump: a duration with all its parts.
func plain(v reflect.Value) any {
	if d, ok := v.Interface().(loop.Duration); ok {
		return time.Duration(d)
	}
	return v.Interface()
}

// dump writes what is exported of a value and not zero, a line each.
func dump(b *strings.Builder, v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			if v.Kind() == reflect.Pointer && v.Elem().IsZero() {
				fmt.Fprintf(b, "%s is given\n", path)
			}
			dump(b, v.Elem(), path)
		}
	case reflect.Struct:
		for f, w := range v.Fields() {
			if f.IsExported() {
				at := path + "." + f.Name
				if f.Anonymous { // its fields are those of the struct
					at = path
				}
				dump(b, w, at)
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			fmt.Fprintf(b, "%s = %s\n", path, v.Bytes())
			return
		}
		for i := range v.Len() {
			fmt.Fprintf(b, "%s[%d]\n", path, i)
			dump(b, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(x, y reflect.Value) int { return strings.Compare(x.String(), y.String()) })
		for _, k := range keys {
			fmt.Fprintf(b, "%s[%q]\n", path, k.String())
			dump(b, v.MapIndex(k), fmt.Sprintf("%s[%q]", path, k.String()))
		}
	default:
		if v.IsValid() && !v.IsZero() {
			fmt.Fprintf(b, "%s = %s %v\n", path, v.Type().Name(), plain(v))
		}
	}
}

// fieldPaths are the paths of all values in a text, as agent.FieldPosition has them.
func fieldPaths(text string) (paths []string) {
	var doc yaml.Node
	if yaml.Unmarshal([]byte(text), &doc) != nil {
		return nil
	}
	var walk func(n *yaml.Node, path string)
	walk = func(n *yaml.Node, path string) {
		switch n.Kind {
		case yaml.SequenceNode:
			for i, c := range n.Content {
				walk(c, fmt.Sprintf("%s[%d]", path, i))
			}
		case yaml.MappingNode:
			if has(n, "name") && path != "" {
				walk(n, "") // an agent
			}
			for i := 0; i+1 < len(n.Content); i += 2 {
				walk(n.Content[i+1], strings.TrimPrefix(path+"."+n.Content[i].Value, "."))
			}
		}
		paths = append(paths, path)
	}
	for _, n := range doc.Content {
		walk(n, "")
	}
	return paths
}
