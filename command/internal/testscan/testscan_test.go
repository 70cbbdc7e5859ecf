// SPDX-License-Identifier: Apache-2.0

package testscan_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/command/internal/testscan"
)

func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func scan(t *testing.T, dir string) testscan.Counts {
	t.Helper()
	c, err := testscan.Scan(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTestsAreCountedInEachLanguage(t *testing.T) {
	for name, tt := range map[string]struct {
		file, text string
		want       testscan.Counts
	}{
		"go": {"a_test.go", "func TestA(t *testing.T) {\n\tt.Skip(\"later\")\n}\n" +
			"// func TestB(t *testing.T) {}\nfunc helper() {}\nfunc FuzzC(f *testing.F) {}\n",
			testscan.Counts{Total: 2, Skipped: 1}},
		"go code": {"a.go", "func TestA(t *testing.T) {}\n", testscan.Counts{}},
		"python": {"tests/test_a.py", "class A:\n" +
			"    @pytest.mark.skip\n    def test_a(self):\n        pass\n" +
			"async def test_b():\n    pass\n# def test_c():\n", testscan.Counts{Total: 2, Skipped: 1}},
		"js": {"src/a.test.ts", "describe('a', () => {\n" +
			"  it('b', f)\n  test.each([1])('c', f)\n  it.skip('d', f)\n  xit('e', f)\n  // it('f', f)\n})\n", testscan.Counts{Total: 4, Skipped: 2}},
		"js only": {"a.spec.js", "it.only('b', f)\nit('c', f)\n", testscan.Counts{Total: 2, Skipped: 1}},
		"rust":    {"src/lib.rs", "#[test]\nfn a() {}\n#[tokio::test]\n#[ignore]\nasync fn b() {}\n", testscan.Counts{Total: 2, Skipped: 1}},
		"java": {"src/ATest.java", "  @Test\n" +
			"  @Disabled\n  void a() {}\n  @ParameterizedTest\n  void b() {}\n", testscan.Counts{Total: 2, Skipped: 1}},
		"c sharp":  {"ATests.cs", "[Fact]\npublic void A() {}\n[Fact(Skip = \"later\")]\npublic void B() {}\n", testscan.Counts{Total: 2, Skipped: 1}},
		"ruby":     {"spec/a_spec.rb", "describe 'a' do\n  it 'b' do\n  end\n  xit 'c' do\n  end\nend\n", testscan.Counts{Total: 2, Skipped: 1}},
		"php":      {"tests/ATest.php", "  public function testA() {\n    $this->markTestSkipped('later');\n", testscan.Counts{Total: 1, Skipped: 1}},
		"no tests": {"README.md", "func TestA(\n", testscan.Counts{}},
	} {
		dir := t.TempDir()
		put(t, dir, map[string]string{tt.file: tt.text})
		if got := scan(t, dir); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestIgnoredFilesHaveNoTests(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"a_test.go": "func TestA(",
		"node_modules/b/b_test.go": "func TestB(", ".hidden/c_test.go": "func TestC(", "made/d_test.go": "func TestD("})
	if got := scan(t, dir); got.Total != 2 {
		t.Errorf("a plain folder has %+v", got)
	}
	put(t, dir, map[string]string{".gitignore": "made\nnode_modules\n"})
	run(t, "git", "-C", dir, "init", "-q")
	if got := scan(t, dir); got.Total != 2 { // a_test.go and .hidden/c_test.go
		t.Errorf("a repository has %+v", got)
	}
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "e_test.go")); err != nil {
		t.Fatal(err)
	}
	if got := scan(t, dir); got.Total != 2 {
		t.Errorf("with a link out of the folder: %+v", got)
	}
}

// What makes a file unreadable takes its tests away, and does not end the count.
func TestUnreadableFilesHaveNoTests(t *testing.T) {
	const noPermission = "no permission for the "
	for name, change := range map[string]func(dir string) error{
		"a link out of the folder in place of a folder": func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "tests")), os.Symlink(t.TempDir(), filepath.Join(dir, "tests")))
		},
		"a link to a folder that is counted": func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "tests")), os.Symlink("more", filepath.Join(dir, "tests")))
		},
		"a file in place of a folder": func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "tests")), os.WriteFile(filepath.Join(dir, "tests"), nil, 0o600))
		},
		noPermission + "file":   func(dir string) error { return os.Chmod(filepath.Join(dir, "tests", "test_a.py"), 0) },
		noPermission + "folder": func(dir string) error { return os.Chmod(filepath.Join(dir, "tests"), 0) },
	} {
		if strings.HasPrefix(name, noPermission) && os.Getuid() <= 0 {
			continue // root may read all, and Windows has no such permissions
		}
		for _, git := range []bool{false, true} {
			dir := t.TempDir()
			put(t, dir, map[string]string{"tests/test_a.py": "def test_a():\n", "more/test_a.py": "def test_b():\n"})
			if git {
				run(t, "git", "-C", dir, "init", "-q")
				run(t, "git", "-C", dir, "add", ".")
			}
			if got := scan(t, dir); got.Total != 2 {
				t.Errorf("git %t: before: %+v", git, got)
			}
			if err := change(dir); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.Chmod(filepath.Join(dir, "tests"), 0o700) })
			if got := scan(t, dir); got.Total != 1 {
				t.Errorf("git %t: with %s: %+v", git, name, got)
			}
		}
	}
}

func run(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, out)
	}
}
