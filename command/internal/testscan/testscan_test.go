// SPDX-License-Identifier: Apache-2.0

package testscan_test

import (
	"os"
	"os/exec"
	"path/filepath"
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
	if out, err := exec.Command("git", "-C", dir, "init", "-q").CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, out)
	}
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
