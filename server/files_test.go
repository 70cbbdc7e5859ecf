// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/server"
)

// coding is a loop over a repository, whose second iteration is the best and whose third is undone.
const coding = `name: coding
workspace: {from: project, result: {patch: "{{run}}.patch"}}
max_iterations: 3
on_regression: rollback
score: {key: points, target: 100}
sub_agents:
  - name: coder
    command:
      - sh
      - -c
      - |
        n=$(($(cat n 2>/dev/null || echo 0) + 1)); echo $n > n
        case $n in
        1) printf 'one\ntwo \033[31m\342\200\256 <b>\nfour' > a.txt; echo 5 > points;;
        2) printf '\000\001' > binary; rm old.txt; echo x > "$(printf '<img src=x>\033[31m\342\200\256\377')"; echo 9 > points
           yes 'a long line of a file that is cut' | head -n 400000 > large;;
        *) echo worse > a.txt; echo 1 > points;;
        esac
  - {name: judge, command: [cat, points], json: true, output_key: points}
`

// coded is a server with a run over a repository that has ended.
func coded(t *testing.T, definitions map[string]string, change ...func(*server.Config)) (s *site, id string) {
	t.Helper()
	if err := workspace.CheckGit(t.Context()); err != nil || runtime.GOOS == "windows" {
		t.Skip("no git, or no shell: ", err)
	}
	s = open(t, definitions, change...)
	sh := exec.Command("sh", "-ec", `git init -q project; cd project; printf 'one\ntwo\n' > a.txt; echo old > old.txt; git add -A
git -c user.name=ana -c user.email=ana@example.com commit -qm first`)
	sh.Dir = s.dir
	if out, err := sh.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	id = s.run(map[string]any{"definition": "coding"}).Run
	if status := s.wait(id); status != "completed" {
		t.Fatal(status, s.logs)
	}
	return s, id
}

type filesAnswer struct {
	From, To       string
	Total          int
	Added, Removed int64
	Files          []file
}

type file struct {
	Path, Status   string
	Added, Removed int64
	Binary         bool
}

func TestFilesOfARun(t *testing.T) {
	s, id := coded(t, map[string]string{"coding.yaml": coding})
	at := "/api/v1/runs/" + id + "/files"
	const shown = `"<img src=x>\x1b[31m\u202e\xff"`
	for query, want := range map[string][]file{
		"?from=iteration/0&to=iteration/1": {{"a.txt", "M", 2, 1, false}, {"n", "A", 1, 0, false}, {"points", "A", 1, 0, false}},
		"?from=iteration/1&to=iteration/2": {{shown, "A", 1, 0, false}, {"binary", "A", 0, 0, true}, {"large", "A", 400000, 0, false},
			{"n", "M", 1, 1, false}, {"old.txt", "D", 0, 1, false}, {"points", "M", 1, 1, false}},
		"?from=iteration/2&to=iteration/3": {{"a.txt", "M", 1, 3, false}, {"n", "M", 1, 1, false}, {"points", "M", 1, 1, false}}, // undone
		"?from=iteration/2":                {},
		"?to=iteration/1&loop=coding":      {{"a.txt", "M", 2, 1, false}, {"n", "A", 1, 0, false}, {"points", "A", 1, 0, false}},
	} {
		var got filesAnswer
		s.ok("GET", at+query, nil, &got)
		if diff := cmp.Diff(want, got.Files); diff != "" || got.Total != len(want) || got.From == "" || got.To == "" {
			t.Errorf("%s: %+v %s", query, got, diff)
		}
	}

	var by struct {
		Loop       string
		Iterations []struct {
			Number, From, Total int
			Best, Undone        bool
		}
	}
	s.ok("GET", at+"/iterations", nil, &by)
	if text := fmt.Sprint(by); text != "{coding [{1 0 3 false false} {2 1 6 true false} {3 2 3 false true}]}" {
		t.Error(text)
	}
	s.refused(404, "loop_not_found", "GET", at+"/iterations?loop=coding/judge", nil)

	var got struct {
		file
		Lines []struct {
			Op, Text string
			Old, New int
			Words    []progress.Edit
		}
		Cut bool
	}
	diff := func(query, path string) (text string) {
		t.Helper()
		got.Lines, got.Cut = nil, false
		s.ok("GET", at+"/diff"+query+"&path="+url.QueryEscape(path), nil, &got)
		for _, l := range got.Lines {
			text += l.Op + l.Text + "\n"
		}
		return text
	}
	want := "@\n one\n-two\n+two \\x1b[31m\\u202e <b>\n+four\n\\ No newline at end of file\n"
	if text := diff("?from=iteration/0&to=iteration/1", "a.txt"); text != want || got.Lines[3].New != 2 || got.Lines[2].Old != 2 {
		t.Errorf("%q, %+v", text, got)
	}
	words := []progress.Edit{{Op: progress.Kept, Text: "two"}, {Op: progress.Put, Text: " \\x1b[31m\\u202e <b>"}}
	if diff := cmp.Diff(words, got.Lines[3].Words); diff != "" || got.Lines[1].Words != nil || got.Lines[4].Words != nil {
		t.Error(diff)
	}
	if text := diff("?to=end", shown); text != "@\n+x\n" || got.Path != shown {
		t.Errorf("%q, %+v", text, got)
	}
	if text := diff("?to=end", "binary"); text != "" || !got.Binary || got.Cut {
		t.Errorf("%q, %+v", text, got)
	}
	if text := diff("?to=end", "large"); !got.Cut || len(text) < 10_000 || len(text) > 1<<20 || len(got.Lines) > 2000 || got.Added != 400000 {
		t.Errorf("%d bytes, %d lines, cut %v", len(text), len(got.Lines), got.Cut)
	}

	patch := s.ok("GET", at+"/patch", nil, nil)
	handed, err := os.ReadFile(filepath.Join(s.dir, id+".patch"))
	said := len(handed) - len(patch.body) // above it, which run the patch is of
	if err != nil || !strings.HasSuffix(string(handed), string(patch.body)) || said > 100 ||
		!strings.Contains(patch.header.Get("Content-Disposition"), id+".patch") {
		t.Errorf("the patch is not the one that was handed over: %v, %d and %d bytes, %v", err, len(patch.body), len(handed), patch.header)
	}

	var head struct {
		Files runfiles.Handed
	}
	s.ok("GET", "/api/v1/runs/"+id+"/view", nil, &head)
	name := id + ".patch"
	if want := (runfiles.Handed{Way: "patch", Name: name, Command: "git -C project apply ../" + name}); head.Files != want {
		t.Errorf("the page says %+v", head.Files)
	}
}

// Whatever is asked for, no file is named that is not a changed one of the run, and each refusal has its reason.
func TestFilesAreRefused(t *testing.T) {
	s, id := coded(t, map[string]string{"coding.yaml": coding, "counting.yaml": counting})
	at := "/api/v1/runs/" + id + "/files"
	for _, path := range []string{"../coding.yaml", "/etc/passwd", "a", ".", "..", ".git/config", "a.txt/../n", ":(glob)*", `"\x00"`,
		"n\x00", "-n", "--output=pwned", "old.txt/"} {
		s.refused(404, "file_not_changed", "GET", at+"/diff?path="+url.QueryEscape(path), nil)
	}
	s.refused(400, "bad_request", "GET", at+"/diff", nil)
	s.refused(400, "bad_request", "GET", at+`/diff?path="a`, nil)
	for _, what := range []string{"", "/diff", "/patch"} {
		s.refused(404, "iteration_not_found", "GET", at+what+"?path=n&from=iteration/9", nil)
		s.refused(404, "iteration_not_found", "GET", at+what+"?path=n&to=iteration/9", nil)
		s.refused(400, "bad_request", "GET", at+what+"?path=n&from=start", nil)
		s.refused(404, "run_not_found", "GET", "/api/v1/runs/r_none/files"+what+"?path=n", nil)
	}
	other := s.run(map[string]any{"definition": "counting"}).Run
	s.wait(other)
	s.refused(404, "no_workspace", "GET", "/api/v1/runs/"+other+"/files", nil)
	s.refused(405, "wrong_method", "POST", at, nil)

	if err := workspace.Remove(t.Context(), runfiles.Store(s.dir), id); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"", "/diff", "/patch"} {
		if text := s.refused(404, "files_not_here", "GET", at+what+"?path=n", nil); !strings.Contains(text, "refrain rm") {
			t.Error(text)
		}
	}
}

// A patch with a key in it is not sent, since it would be another one without the key; a list and a difference are
// masked.
func TestAKeyInAFileIsMasked(t *testing.T) {
	const key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
	leaking := strings.Replace(coding, "echo 5 > points", "echo key = "+key+" > a.txt; echo 5 > points", 1)
	s, id := coded(t, map[string]string{"coding.yaml": leaking})
	at := "/api/v1/runs/" + id + "/files"
	if got := string(s.ok("GET", at+"/diff?path=a.txt", nil, nil).body); strings.Contains(got, key) || !strings.Contains(got, "[secret]") {
		t.Error(got)
	}
	s.refused(422, "patch_has_secret", "GET", at+"/patch", nil)
}

// Words that differ within a line do not show a key whose name is in another word.
func TestAKeyInWordsThatDifferIsMasked(t *testing.T) {
	const key = "abcdefghijklmnopqrstuvwxyz0123456789"
	leaking := strings.Replace(coding, "1) ", "1) echo 'Authorization: Bearer "+key+"' > b.txt;", 1)
	leaking = strings.Replace(leaking, "2) ", "2) echo 'Authorization: Bearer "+key+"-2 more' > b.txt;", 1)
	s, id := coded(t, map[string]string{"coding.yaml": leaking})
	diff := s.ok("GET", "/api/v1/runs/"+id+"/files/diff?path=b.txt&from=iteration/1&to=iteration/2", nil, nil)
	if got := string(diff.body); strings.Contains(got, key) || !strings.Contains(got, `"words"`) {
		t.Error(got)
	}
}

// A log that a stranger has written names no folder here.
func TestFilesOfAnExportedRunAreNotHere(t *testing.T) {
	s, id := coded(t, map[string]string{"coding.yaml": coding})
	shown := &site{TB: t, store: s.store, logs: s.logs}
	shown.start(func(c *server.Config) { c.ReadOnly = true })
	shown.refused(404, "files_not_here", "GET", "/api/v1/runs/"+id+"/files", nil)
	if got := shown.ok("GET", "/api/v1/runs/"+id+"/view", nil, nil); strings.Contains(string(got.body), `"files"`) {
		t.Errorf("%s", got.body)
	}
}
