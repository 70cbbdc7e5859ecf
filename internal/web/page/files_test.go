// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/files/workspace"
)

// codefix changes the files of a repository: its third iteration is undone, and the fourth adds a file with a name
// and a content that would do harm as HTML.
const codefix = `name: codefix
workspace: {result: {branch: "refrain/{{run}}"}}
max_iterations: 4
on_regression: rollback
score: {key: points, target: 9.6}
sub_agents:
  - name: coder
    output_key: said
    command:
      - sh
      - -c
      - |
        slug() {
          printf '%s\n' '// Make is a title as part of an address.' 'func Make(title string) string {' '	var out []rune' "$@" \
            '	}' '	return string(out)' '}' > slug.go
        }
        case $0 in
        1) slug '	for _, r := range title {' '		if r < 128 && isWord(r) {' '			out = append(out, r)' '		}'; echo 1.2 > points;;
        2) printf 'package slug\n\nfunc isWord(r rune) bool { return true }\n' > runes.go; echo 3.4 > points;;
        3) rm runes.go; echo broken >> slug.go; echo 1.6 > points;;
        *) slug '	gap := false' '	for _, r := range title {' '		if unicode.IsLetter(r) || unicode.IsDigit(r) {' \
             '			out = append(out, r)' '		}'
           echo 'Usage: slug.Make(title)' >> README.md; printf '\000\001' > logo.bin; echo 9.6 > points
           printf '<script>document.title = "pwned"</script>\n\033[31mred\342\200\256\n' > '<img src=x onerror="document.title=1">';;
        esac
      - "{{iteration}}"
  - {name: judge, command: [cat, points], json: true, output_key: points}
  - {name: deliverer, text: "Make keeps letters and digits of any script and puts one dash between words.", output_key: loop_output}
`

// coded is a server with a run of codefix that has ended.
func coded(t *testing.T, text string) (s *site, id string) {
	t.Helper()
	if err := workspace.CheckGit(t.Context()); err != nil || runtime.GOOS == "windows" {
		t.Skip("no git, or no shell: ", err)
	}
	s = serve(t, map[string]string{"codefix.yaml": text})
	sh := exec.Command("sh", "-ec", `git init -q; printf '.refrain/\n*.yaml\npoints\n' > .gitignore
printf 'package slug\n' > slug.go; echo '# slug' > README.md; git add -A
git -c user.name=ana -c user.email=ana@example.com commit -qm first`)
	sh.Dir = s.dir
	if out, err := sh.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	id = s.start(t, "codefix")
	if _, err := s.server.Supervisor().Wait(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return s, id
}

const (
	hostileName = `<img src=x onerror="document.title=1">`
	hostileText = `<script>document.title = "pwned"</script>`
)

// A run over a repository says which branch its result is in and how to take it, shows each file by the iterations
// that changed it, with its lines, and saves the patch; all of it as text.
func TestTheFilesOfARun(t *testing.T) {
	s, id := coded(t, codefix)
	p := open(t, s)
	p.visit("/runs/" + id)
	p.sees("Why it stopped")
	p.until("the hand-over", `document.querySelector('.handover .take code')?.innerText === 'git merge refrain/`+id+`' &&
		document.querySelector('.handover').innerText.includes('The files are in the branch')`)
	p.until("the files by iteration", `[...document.querySelectorAll('.files thead th')].map(h => h.innerText.trim()).join('|') ===
		 'File|1|2|3 undone|4 best|Start → result'`)
	cell := func(path, column string) string {
		return `[...document.querySelectorAll('.files td button')].find(b => b.getAttribute('aria-label').startsWith(` +
			quote(path+", "+column+":") + `))`
	}
	p.until("what an undone iteration has changed", cell("runes.go", "Iteration 3")+`?.innerText === '−3'`)
	p.until("nothing where nothing has changed", `!`+cell("runes.go", "Iteration 1"))
	p.js(cell("slug.go", "Iteration 4") + `.click()`)
	p.until("its lines", `(() => {
		const rows = [...document.querySelectorAll('.panel > .diff.file > div')].map(d => [...d.children].map(c => c.textContent).join('|'))
		return rows.includes('5||−|\t\tif r < 128 && isWord(r) {') &&
			rows.includes('|6|+|\t\tif unicode.IsLetter(r) || unicode.IsDigit(r) {') && rows[0] === 'slug.go · iteration 2 → 4'
	})()`)
	p.until("what differs in them", `document.querySelector('.diff.file del')?.innerText === 'r < 128 && isWord(r)' &&
		[...document.querySelectorAll('.diff.file ins')].at(-1).innerText === 'unicode.IsLetter(r) || unicode.IsDigit(r)'`)
	p.accessible("lines")
	p.js(cell("slug.go", "Iteration 4") + `.focus()`)
	p.do(chromedp.KeyEvent(kb.ArrowLeft))
	p.until("the cell on the left", `document.activeElement === `+cell("slug.go", "Iteration 3"))
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until("its lines", `document.querySelector('.panel > .diff.file')?.innerText.includes('broken')`)

	p.js(`document.querySelector('[data-key="codefix[4]"]').click()`)
	p.press("Files")
	p.until("its address", `location.hash === '#4//files'`)
	p.until("the files of the iteration", `document.querySelector('.insp .panelbody').innerText.includes('against iteration 2, the version') &&
		document.querySelectorAll('.insp .flist > li').length === 4`)
	opened := func(name string) {
		p.js(`[...document.querySelectorAll(".insp .flist button")].find(b => b.innerText === ` + quote(name) + `).click()`)
	}
	opened(hostileName)
	p.until("its lines as text", `document.querySelector('.insp .diff')?.innerText.includes(`+quote(hostileText)+`) &&
		document.querySelector('.insp .diff').innerText.includes('\\x1b[31mred\\u202e')`)
	p.until("no element of it", `!document.querySelector('main img, main script') && !['pwned', '1'].includes(document.title)`)
	p.accessible("files")
	opened("logo.bin")
	p.sees("A binary file is not shown.")
	p.visit("/runs/" + id + "#2//files")
	p.until("the files that the address names", `document.querySelector('.insp .flist')?.innerText.includes('runes.go')`)

	p.js(`window.saved = new Promise(done => {
		const make = URL.createObjectURL
		URL.createObjectURL = blob => { blob.text().then(done); return make.call(URL, blob) }
	}); true`)
	p.press("Download patch")
	got, err := eval[string](p, `window.saved`)
	if err != nil || !strings.HasPrefix(got, "diff --git ") || !strings.Contains(got, "unicode.IsLetter") {
		t.Errorf("%v, %.200s", err, got)
	}
	patch := filepath.Join(t.TempDir(), "result.patch")
	if err := os.WriteFile(patch, []byte(got), 0o600); err != nil {
		t.Fatal(err)
	}
	apply := exec.Command("git", "apply", "--check", patch)
	apply.Dir = s.dir
	if out, err := apply.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	p.press("Português")
	p.sees("Os arquivos estão no branch")
	p.press("Ver as mudanças")
	p.until("the focus on them", `document.activeElement.id === 'h-changes'`)
	p.accessible("arquivos")
}

// A run whose files were removed says so, and is shown without them; one without a workspace says nothing of files.
func TestFilesThatAreGone(t *testing.T) {
	s, id := coded(t, strings.Replace(codefix, `{branch: "refrain/{{run}}"}`, `{patch: "{{run}}.patch"}`, 1))
	if err := workspace.Remove(t.Context(), runfiles.Store(s.dir), id); err != nil {
		t.Fatal(err)
	}
	p := open(t, s)
	p.visit("/runs/" + id + "#1//files")
	p.until("how to take the patch", `document.querySelector('.handover .take code')?.innerText === 'git apply `+id+`.patch'`)
	p.until("why there are no files", `['.handover', '.insp .panelbody'].every(at =>
		document.querySelector(at)?.innerText.includes('The files of the run are not here'))`)
	p.until("no files", `!document.querySelector('.files, .flist, .diff')`)

	if err := os.WriteFile(filepath.Join(s.dir, "climb.yaml"), []byte(quick), 0o600); err != nil {
		t.Fatal(err)
	}
	p.visit("/runs/" + s.start(t, "climb") + "#1//files")
	p.sees("Why it stopped")
	p.until("its output instead", `document.querySelector('#tab-output')?.getAttribute('aria-selected') === 'true' &&
		!document.querySelector('#tab-files, .handover')`)
}
