// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

// hostile are texts that are meant to exhaust whoever reads them. They are as
// large as a file may be, which is 1 MiB, or small and grow. The short form has a
// quarter of that, and tries every third text.
func hostile() map[string]string {
	mega := longtest.N(1<<18, 1<<20)
	large := longtest.N(1<<11, 1<<13) // placeholders in one text, nearly as many as are allowed
	fill := func(head, part, tail string) string {
		return head + strings.Repeat(part, (mega-len(head)-len(tail))/len(part)) + tail
	}
	return map[string]string{
		"bomb":               bomb(9, 9),
		"bomb of keys":       strings.ReplaceAll(bomb(9, 9), "state:", "inputs:"),
		"bomb of merges":     mergeBomb(25),
		"deep lists":         fill("state: ", "[", ""),
		"deep lists, closed": "name: x\nstate: {a: " + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + "}\ntext: a\n",
		"deep maps":          fill("", "{a: ", ""),
		"deep blocks":        deepBlocks(1000),
		"deep sequences":     fill("", "- ", "x"),
		"huge scalar":        fill("name: x\ntext: '", "{{a}} ", "'\n"),
		"huge plain":         fill("name: x\ntext: ", "a", "\n"),
		"huge name":          fill("name: ", "a", "\ntext: a\n"),
		"huge folded":        fill("name: x\ntext: >\n", "  {{b}}\n", ""),
		"large folded":       "name: x\ntext: >\n" + strings.Repeat("  {{b}}\n", large),
		"large quoted":       "name: x\ntext: '" + strings.Repeat("{{b}} ", large) + "'\n",
		"large spaced":       "name: x\ntext: '" + strings.Repeat("{{b c}} ", large) + "'\n",
		"long key":           "name: x\ntext: '" + strings.Repeat("{{b}} ", large) + "'\nstate: {" + strings.Repeat("a", mega/2) + ": 1}\n",
		"many unknown keys":  "name: x\nstate: {" + manyKeys(large/4) + "}\ntext: '" + strings.Repeat("{{kez_1}} ", large) + "'\n",
		"huge section":       fill("name: x\nstate: {a: 1}\ntext: '", "{{#a}}", "'\n"),
		"huge expression":    fill("name: x\noutput_key: y\nvalue: '1", " + 1", "'\n"),
		"deep expression":    fill("name: x\noutput_key: y\nvalue: '", "(", "'\n"),
		"one line":           fill(`{"name": "x", "text": "a", "state": {`, `"nowhere": [], `, "}}"),
		"many agents":        fill("name: x\nsub_agents: [", "{name: a, text: '{{n}}'}, ", "]\n"),
		"many errors":        fill("name: x\ntext: a\n", "y: 1\n", ""),
		"many tags":          fill("name: x\ntext: ", "!!str ", "a\n"),
		"many anchors":       manyAnchors(mega),
		"many comments":      fill("name: x\n", "# nothing\n", "text: a\n"),
		"many documents":     fill("", "---\n", ""),
		"NUL":                "name: x\x00\ntext: a\n",
		"all NUL":            strings.Repeat("\x00", mega),
		"no UTF-8":           fill("name: x\ntext: ", "\xff\xfe", "\n"),
		"UTF-16":             "\xff\xfen\x00a\x00m\x00e\x00:\x00 \x00x\x00",
		"surrogate":          "name: x\ntext: \xed\xa0\x80\n",
		"line separators":    fill("name: x\ntext: 'a", "\u2028", "'\n"),
		"directive":          "%YAML 9.9\n---\nname: x\ntext: a\n",
		"tags of Go":         "name: !!python/object/apply:os.system [ls]\ntext: a\n",
	}
}

// bomb is small and has width to the power of depth values.
func bomb(depth, width int) string {
	var b strings.Builder
	b.WriteString("name: bomb\nstate:\n  a0: &a0 lol\n")
	for i := 1; i <= depth; i++ {
		fmt.Fprintf(&b, "  a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), width), ", "))
	}
	return b.String() + "text: '{{a9}}'\n"
}

func mergeBomb(depth int) string {
	var b strings.Builder
	b.WriteString("x0: &x0 {text: a}\n")
	for i := 1; i <= depth; i++ {
		fmt.Fprintf(&b, "x%d: &x%d {<<: [*x%d, *x%d]}\n", i, i, i-1, i-1)
	}
	return fmt.Sprintf("%s<<: *x%d\n", b.String(), depth)
}

func deepBlocks(depth int) string {
	var b strings.Builder
	for i := range depth {
		fmt.Fprintf(&b, "%sa:\n", strings.Repeat(" ", i))
	}
	return b.String()
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "key_%d: 1, ", i)
	}
	return b.String()
}

func manyAnchors(size int) string {
	var b strings.Builder
	b.WriteString("name: x\ntext: a\nstate:\n")
	for i := 0; b.Len() < size-40; i++ {
		fmt.Fprintf(&b, "  k%d: &k%d 1\n", i, i)
	}
	return b.String()
}

// Limits that a definition keeps to, whatever is in it. What it measures is
// everything that was allocated, kept or not.
const (
	mostMemory = 512 << 20 // of a file of 1 MiB, with its report
	mostTime   = 20 * time.Second
)

// allocated is what f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// parseHostile reads a file and makes its report.
func parseHostile(t *testing.T, text string) {
	t.Helper()
	_, err := definition.Parse("x.yaml", []byte(text), definition.Options{})
	if err == nil {
		return
	}
	problems, ok := errors.AsType[definition.Problems](err)
	if !ok || len(problems) > 200 {
		t.Errorf("%d problems, %T", len(problems), err)
	}
	if err := problems.Format(io.Discard); err != nil {
		t.Error(err)
	}
}

// F11, T33: whatever stands in a file, reading it ends soon, with bounded memory,
// in a definition or in problems that can be shown.
func TestHostileFilesAreBounded(t *testing.T) {
	texts := hostile()
	for i, name := range slices.Sorted(maps.Keys(texts)) {
		if i%longtest.N(3, 1) != 0 {
			continue
		}
		text := texts[name]
		t.Run(name, func(t *testing.T) {
			var used uint64
			var took time.Duration
			for try := 0; try == 0 || try < 5 && took > mostTime; try++ { // the machine may be busy with other things
				began := time.Now()
				used = allocated(func() { parseHostile(t, text) })
				took = time.Since(began)
			}
			t.Logf("%d bytes: %d MiB in %s", len(text), used>>20, took.Round(time.Millisecond))
			if used > longtest.N[uint64](mostMemory/4, mostMemory) || took > mostTime {
				t.Errorf("%d bytes took %d MiB and %s", len(text), used>>20, took)
			}
		})
	}
}

// Nine to the ninth values are never made: the bomb costs what its few lines do.
func TestBombIsNotUnpacked(t *testing.T) {
	for _, depth := range []int{9, 30, 60} {
		var err error
		used := allocated(func() { _, err = definition.Parse("bomb.yaml", []byte(bomb(depth, 9)), definition.Options{}) })
		if got := codes(err); len(got) == 0 || got[0] != definition.CodeFile {
			t.Errorf("depth %d: %v", depth, err)
		}
		if used > 8<<20 {
			t.Errorf("depth %d: %d KiB for %d bytes", depth, used>>10, len(bomb(depth, 9)))
		}
	}
}

// A file of 100 MB is not read: what is beyond the limit stays where it is.
func TestLargeFileIsNotRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "large.yaml")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("name: x\ntext: a\n# "); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(100_000_000), f.Close()); err != nil { // zeros, without taking up space
		t.Fatal(err)
	}
	used := allocated(func() { _, err = definition.Load(file) })
	if got := codes(err); len(got) != 1 || got[0] != definition.CodeFile || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("err = %v", err)
	}
	if used > 16<<20 {
		t.Errorf("%d MiB were allocated", used>>20)
	}
}

// What editors on other systems write is read as it is meant.
func TestBOMAndLineEndsAreRead(t *testing.T) {
	const text = "name: x\nstate: {a: 1}\ntext: |\n  {{a}}\n  {{nobody}}\n"
	for name, text := range map[string]string{
		"BOM": "\ufeff" + text, "CRLF": strings.ReplaceAll(text, "\n", "\r\n"), "both": "\ufeff" + strings.ReplaceAll(text, "\n", "\r\n"),
		"CR": strings.ReplaceAll(text, "\n", "\r"), "BOM inside": "# \ufeff\n" + text,
	} {
		_, err := definition.Parse("x.yaml", []byte(text), definition.Options{})
		problems, _ := errors.AsType[definition.Problems](err)
		line := 5
		if name == "BOM inside" {
			line++
		}
		if len(problems) != 1 || problems[0].Line != line || problems[0].Column != 3 || !strings.Contains(problems[0].Message, "{{nobody}}") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Excerpts of long lines do not make a report larger than the file.
func TestReportOfAOneLineFileIsShort(t *testing.T) {
	text := hostile()["one line"]
	_, err := definition.Parse("x.yaml", []byte(text), definition.Options{})
	problems, _ := errors.AsType[definition.Problems](err)
	var b bytes.Buffer
	if err := problems.Format(&b); err != nil || b.Len() > 200*600 {
		t.Errorf("%d bytes for %d problems, %v", b.Len(), len(problems), err)
	}
}

// T33: of thousands of problems the first are shown, all are counted, and errors come
// before warnings.
func TestManyProblemsAreCounted(t *testing.T) {
	var b strings.Builder
	b.WriteString("name: x\nmax_iterations: 2\nsub_agents:\n")
	for i := range 300 {
		fmt.Fprintf(&b, "  - {name: w%d, question: Shall I?, deadline: 5m}\n", i) // a warning each
	}
	for i := range 3000 {
		fmt.Fprintf(&b, "  - {name: a%d, tekst: hi}\n", i)
	}
	_, err := definition.Parse("x.yaml", []byte(b.String()), definition.Options{})
	problems, _ := errors.AsType[definition.Problems](err)
	if len(problems) != 200 || problems.Summary() != "200 of 6000 errors, 0 of 300 warnings" {
		t.Errorf("%d problems: %s", len(problems), problems.Summary())
	}
	if last := problems[len(problems)-1]; last.Line != 3+300+100 || last.Severity != definition.SeverityError {
		t.Errorf("the last is %v", last)
	}
}
