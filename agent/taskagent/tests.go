// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/agent/taskagent/internal/testcount"
	"github.com/refrain-dev/refrain/internal/values/fielderror"
)

// The values of [CommandConfig.Tests] other than the path of a file.
const (
	TestsGo     = testcount.GoJSON  // the output of go test -json
	TestsJUnit  = testcount.JUnit   // XML in JUnit's format
	TestsCounts = testcount.Numbers // a JSON object with passed, failed, and perhaps skipped, broken, total_before and skipped_before
)

// testsLimit is the default of OutputLimit in bytes for a command whose tests are counted, because such programs print much.
const testsLimit = 16 << 20

// report returns the path of the file that has the results of the tests. It returns "" if no file has them.
func (c *CommandConfig) report() string {
	if c.Tests == "" || slices.Contains(testcount.Formats(), c.Tests) {
		return ""
	}
	return filepath.FromSlash(c.Tests)
}

// checkTests adds an error to s if Tests is not valid.
func (a *CommandAgent) checkTests(s *source) {
	switch cfg := &a.cfg; {
	case cfg.Tests == "" || cfg.CLI != nil:
	case cfg.JSON:
		s.about("Tests", "is set, and %s too: the counts are JSON already", fielderror.Name("JSON"))
	case cfg.report() == "":
	case !strings.HasSuffix(cfg.Tests, ".xml"):
		s.report("Tests", "%q is not one of %s, nor a file whose name ends with .xml", cfg.Tests, strings.Join(testcount.Formats(), ", "))
	case !filepath.IsLocal(cfg.report()):
		s.report("Tests", "%q is not a path below the working directory", cfg.Tests)
	}
}

// counted counts the tests, and returns out with the counts as the output. It returns an error if it finds no tests to count.
func (a *CommandAgent) counted(out outcome, got *completion) (outcome, error) {
	format, text, where := a.cfg.Tests, got.Stdout, "the output"
	if a.cfg.report() != "" {
		format, text, where = TestsJUnit, got.Report, a.cfg.Tests
	}
	r, err := testcount.Of(format, text)
	if err != nil {
		if said := tail(got.Stderr); said != "" {
			err = fmt.Errorf("%w; it wrote to stderr: %s", err, said)
		}
		return out, fmt.Errorf("count the tests in %s of command %q: %w", where, a.cfg.Args[0], err)
	}
	m := r.Map()
	out.output, out.result["json"] = m, m
	if r.Summary != "" {
		out.words = r.Summary
	}
	return out, nil
}

// removeReport deletes the report of an earlier command, so that it is not mistaken for the report of this command.
func removeReport(r *os.Root, name string) error {
	if name == "" {
		return nil
	}
	if err := r.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the report of an earlier run: %w", err)
	}
	return nil
}

// readReport returns the text of a report, or "" if the file does not exist. A file of more than limit bytes is a
// [*LimitError].
func readReport(r *os.Root, name string, limit int64) (string, error) {
	if name == "" {
		return "", nil
	}
	info, err := r.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err == nil && !info.Mode().IsRegular():
		return "", fmt.Errorf("read the report: %s is not a file", name)
	case err != nil:
		return "", fmt.Errorf("read the report: %w", err)
	}
	f, err := r.Open(name)
	if err != nil {
		return "", fmt.Errorf("read the report: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return "", fmt.Errorf("read the report: %w", err)
	}
	if int64(len(b)) > limit {
		return "", &LimitError{Stream: name, Limit: limit}
	}
	return string(b), nil
}
