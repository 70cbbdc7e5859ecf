// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/refrain-dev/refrain/internal/runs/program"
)

// The hash of a definition covers the files that its commands name, wherever a command names them, and no others.
func TestHashCoversTheFilesThatCommandsName(t *testing.T) {
	const text = `name: build
type: sequential
inputs: {where: {choices: [deep], default: deep}}
callbacks:
  before_run: [{command: [sh, tools/callback.sh]}]
sub_agents:
  - {name: plain, command: [sh, tools/plain.sh, --out=tools/flag.cfg]}
  - {name: code, command: [sh, -c, "cd . && ./tools/code.sh; python3 'tools/code.py'"]}
  - {name: there, command: [sh, there.sh], dir: tools}
  - {name: up, command: [sh, ../outside.sh]}
  - {name: cd, command: [sh, -c, "set -e; cd tools/deep && ./cd.sh; cd .. ; (cd {{where}}; sh ../up.sh)"]}
  - {name: quoted, command: [sh, -c, 'cd "$PWD/tools/a b" && sh x.sh; sh "$(pwd)"/tools/quo"ted".sh']}
  - {name: option, command: [env, -C, tools/deep, sh, option.sh]}
  - {name: in, command: [sh, -c, "git -C tools/deep diff --no-index in.txt; env --chdir=tools sh chdir.sh"]}
  - {name: machine, command: [/bin/sh, -c, "true"]}
`
	named := []string{"../outside.sh", "tools/a b/x.sh", "tools/callback.sh", "tools/chdir.sh", "tools/code.py", "tools/code.sh", "tools/deep/cd.sh",
		"tools/deep/in.txt", "tools/deep/option.sh", "tools/flag.cfg", "tools/plain.sh", "tools/quoted.sh", "tools/there.sh", "tools/up.sh"}
	make := func() string {
		root := filepath.Join(t.TempDir(), "project")
		for _, name := range append(named, "build.yaml", "tools/other.sh") {
			file := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			content := "first"
			if name == "build.yaml" {
				content = text
			}
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return root
	}
	hash := func(root string) string {
		p := new(program.Program)
		def, err := p.Read(filepath.Join(root, "build.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if got := program.Scripts(def, root); !slices.Equal(got, named) {
			t.Fatalf("the files are %q", got)
		}
		return p.Hash(def, root)
	}
	root := make()
	first := hash(root)
	if other := hash(make()); other != first {
		t.Error("the hash depends on the folder")
	}
	for _, name := range append(named, "tools/other.sh") {
		file := filepath.Join(root, name)
		if err := os.WriteFile(file, []byte("second"), 0o600); err != nil {
			t.Fatal(err)
		}
		if changed := hash(root) != first; changed != (name != "tools/other.sh") {
			t.Errorf("with a new %s the hash has changed: %t", name, changed)
		}
		if err := os.WriteFile(file, []byte("first"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A word of a command with placeholders names the files that it can become: with the choices of a placeholder, or with any value.
// Links between folders make no files up, and do not hold the search up.
func TestScriptsThatPlaceholdersName(t *testing.T) {
	for text, want := range map[string][]string{
		`[./tool, "scripts/{{kind}}"]`:                    {"scripts/a.sh", "scripts/b.sh", "scripts/deep/c.sh"},
		`[./tool, "scripts/{{free}}"]`:                    {"scripts/a.sh", "scripts/b.sh", "scripts/deep/c.sh"},
		`[./tool, "scripts/{{free}}/c.sh"]`:               {"scripts/deep/c.sh"},
		`[./tool, "linked/{{free}}"]`:                     {"linked/a.sh", "linked/b.sh", "linked/deep/c.sh"},
		`[./tool, "li{{free}}/b.sh"]`:                     {"linked/b.sh"},
		`[./tool, "{{kind}}"]`:                            {"a.sh"},
		`[./tool, "{{ kind }}"]` + "\ndir: \"{{where}}\"": {"a.sh", "scripts/a.sh", "scripts/b.sh"},
		`[./tool, "{{free}}"]`:                            nil,
		`[./tool, "./{{free}}/{{other}}"]`:                nil,
		`[./tool, "../{{free}}/outside.sh"]`:              {"outside.sh", "xy0/outside.sh"},
		`[./tool, "{{kind}}x{{kind}}y{{kind}}z"]`:         {"x-y-z", "xy0/x-y-z"},
		`[./tool, "{{free}}x{{free}}y{{free}}z"]`:         {"x-y-z", "xy0/x-y-z"},
	} {
		root := filepath.Join(t.TempDir(), "project")
		for _, name := range []string{"a.sh", "outside.sh", "scripts/a.sh", "scripts/b.sh", "scripts/deep/c.sh", "x-y-z"} {
			file := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("scripts", filepath.Join(root, "linked")); err != nil {
			t.Skip(err)
		}
		for i := range 20 {
			if err := os.Symlink(".", filepath.Join(root, "xy"+strconv.Itoa(i))); err != nil {
				t.Fatal(err)
			}
		}
		file := filepath.Join(root, "build.yaml")
		if err := os.WriteFile(file, []byte("name: build\nstate: {kind: a.sh}\nshapes: {kind: {choices: [a.sh, b.sh]}}\n"+
			"inputs:\n  where: {choices: [., scripts], default: scripts}\n  free: {pattern: \".*\"}\n  other: {pattern: \".*\"}\ncommand: "+text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		def, err := new(program.Program).Read(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := program.Scripts(def, root); !slices.Equal(got, want) {
			t.Errorf("%s names %q, and not %q", text, got, want)
		}
	}
}
