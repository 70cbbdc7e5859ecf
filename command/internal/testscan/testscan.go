// SPDX-License-Identifier: Apache-2.0

// Package testscan counts the tests that the files of a folder declare, and those that are marked as skipped, without
// running them. It knows the usual forms of Go, Python, JavaScript, TypeScript, Rust, Java, Kotlin, C#, Ruby and PHP, and
// counts by lines, so that a test in a comment does not count.
package testscan

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Counts are numbers of tests.
type Counts struct{ Total, Skipped int64 }

// Limits of a scan.
const (
	mostFiles = 50_000
	mostSize  = 1 << 20 // of a file, in bytes
)

// language says how a language declares tests in files whose names match.
type language struct{ name, declares, skips *regexp.Regexp }

var languages = sync.OnceValue(func() []language {
	re := regexp.MustCompile
	return []language{
		{re(`_test\.go$`), re(`^func (Test|Fuzz|Example|Benchmark)\w*\(`), re(`^\s*\w+\.Skip(Now|f)?\(`)},
		{re(`(^|/)(test_[^/]*|[^/]*_test|conftest)\.py$|(^|/)tests?/.*\.py$`), re(`^\s*(async\s+)?def\s+test\w*\s*\(`),
			re(`^\s*(@(pytest\.mark\.(skip|skipif|xfail)|(unittest\.)?skip\w*)\b|(pytest\.skip|self\.skipTest)\()`)},
		{re(`\.(test|spec)\.[cm]?[jt]sx?$|(^|/)__tests__/.*\.[cm]?[jt]sx?$`), re(`^\s*x?(it|test|specify)(\.\w+)*\s*[(\x60]`),
			re(`^\s*(x(it|test|describe)\s*\(|(it|test|describe|specify|suite)(\.\w+)*\.(skip|todo|fixme|only)\b)`)},
		{re(`\.rs$`), re(`^\s*#\[(\w+::)*test\b`), re(`^\s*#\[ignore\b`)},
		{re(`\.(java|kt|kts|groovy|scala)$`), re(`^\s*@(Test|ParameterizedTest|RepeatedTest)\b`), re(`^\s*@(Disabled|Ignore)\b`)},
		{re(`\.cs$`), re(`^\s*\[(Fact|Theory|Test|TestCase|TestMethod)\b`), re(`^\s*\[(Ignore\b|(Fact|Theory)\(.*Skip\s*=)`)},
		{re(`_(spec|test)\.rb$|(^|/)test_[^/]*\.rb$`), re(`^\s*(x?(it|specify)\b.*(do|\{)|def\s+test_\w+)`),
			re(`^\s*(x(it|describe|context|specify)\b|skip\b|pending\b)`)},
		{re(`Test\.php$`), re(`^\s*(public\s+)?function\s+test\w*\s*\(|^\s*#\[Test\b`), re(`markTest(Skipped|Incomplete)\(`)},
	}
})

// Scan counts the tests below a folder: in a git repository those of the files that git does not ignore, otherwise those outside of hidden
// folders and of folders for packages. A file that is gone, cannot be read, is behind a link or has more than 1 MiB has none. It returns an
// error if the folder itself cannot be read or has more than 50,000 files.
func Scan(ctx context.Context, folder string) (c Counts, err error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return c, err
	}
	defer root.Close()
	names, err := list(ctx, folder, root)
	if err != nil {
		return c, err
	}
	folders := map[string]bool{".": true}
	for _, name := range names {
		for _, l := range languages() {
			if !l.name.MatchString(name) {
				continue
			}
			if isFolder(root, path.Dir(name), folders) {
				c.add(root, name, l)
			}
			break
		}
	}
	return c, nil
}

// isFolder reports whether a folder and those above it are there and are no links. known has what was found before.
func isFolder(root *os.Root, name string, known map[string]bool) bool {
	is, ok := known[name]
	if !ok {
		if isFolder(root, path.Dir(name), known) {
			info, err := root.Lstat(filepath.FromSlash(name))
			is = err == nil && info.IsDir()
		}
		known[name] = is
	}
	return is
}

// add counts the tests of a file.
func (c *Counts) add(root *os.Root, name string, l language) {
	info, err := root.Lstat(filepath.FromSlash(name))
	if err != nil || !info.Mode().IsRegular() || info.Size() > mostSize {
		return
	}
	text, err := root.ReadFile(filepath.FromSlash(name))
	if err != nil {
		return
	}
	for line := range bytes.Lines(text) {
		if l.declares.Match(line) {
			c.Total++
		}
		if l.skips.Match(line) {
			c.Skipped++
		}
	}
}

// list lists the files of a folder, relative to it and with slashes.
func list(ctx context.Context, folder string, root *os.Root) ([]string, error) {
	if bin, err := exec.LookPath("git"); err == nil {
		cmd := exec.CommandContext(ctx, bin, "-c", "core.fsmonitor=false", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
		cmd.Dir, cmd.Env = folder, append(os.Environ(), "GIT_OPTIONAL_LOCKS=0")
		if out, err := cmd.Output(); err == nil {
			names := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
			slices.Sort(names)
			return cut(slices.Compact(names))
		}
	}
	var names []string
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && name == ".":
			return err
		case err != nil:
			return fs.SkipDir
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || slices.Contains(packages, path.Base(name))):
			return fs.SkipDir
		case d.Type().IsRegular():
			names = append(names, name)
		}
		if len(names) > mostFiles {
			return errors.New("there are too many files")
		}
		return nil
	})
	return names, err
}

// packages are the folders of what package managers install.
var packages = []string{"node_modules", "vendor", "target", "venv", "site-packages"}

func cut(names []string) ([]string, error) {
	if len(names) > mostFiles {
		names = slices.DeleteFunc(names, func(name string) bool {
			return !slices.ContainsFunc(languages(), func(l language) bool { return l.name.MatchString(name) })
		})
	}
	if len(names) > mostFiles {
		return nil, errors.New("there are too many files with tests")
	}
	return names, nil
}
