// SPDX-License-Identifier: Apache-2.0

package skill_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/tool/skilltoolset/skill"
)

const haiku = `---
name: haiku
description: Writes a haiku. Use it for short poems.
license: MIT
metadata: {version: "1.0"}
allowed-tools: Read Bash(git add:*), Grep
---
Write three lines.
See references/form.md.
`

func library() fstest.MapFS {
	return fstest.MapFS{
		"haiku/SKILL.md":                {Data: []byte(haiku)},
		"haiku/references/form.md":      {Data: []byte("5, 7, 5 syllables")},
		"haiku/references/more/kigo.md": {Data: []byte("a word for the season")},
		"haiku/scripts/count.sh":        {Data: []byte("#!/bin/sh\n")},
		"haiku/private.txt":             {Data: []byte("secret")},
		"notes/readme.txt":              {Data: []byte("no skill")},
		"secret.txt":                    {Data: []byte("secret")},
	}
}

func ExampleNewFileSystemSource() {
	ctx, source := context.Background(), skill.NewFileSystemSource(library())
	all, err := source.ListFrontmatters(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range all {
		fmt.Println(f.Name, f.AllowedTools)
	}
	fmt.Println(source.ListResources(ctx, "haiku", "."))
	fmt.Println(source.ListResources(ctx, "haiku", "references/more"))
	// Output:
	// haiku [Read Bash(git add:*) Grep]
	// [references/form.md references/more/kigo.md scripts/count.sh] <nil>
	// [references/more/kigo.md] <nil>
}

// sources are a source of files and one in memory, which behave in the same way.
func sources(t *testing.T) map[string]skill.Source {
	t.Helper()
	files := skill.NewFileSystemSource(library())
	memory, _, err := skill.WithCompletePreloadSource(t.Context(), files)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]skill.Source{"files": files, "memory": memory}
}

func TestSourcesHaveASkill(t *testing.T) {
	for name, source := range sources(t) {
		t.Run(name, func(t *testing.T) {
			front, err := source.LoadFrontmatter(t.Context(), "haiku")
			if err != nil {
				t.Fatal(err)
			}
			want := &skill.Frontmatter{Name: "haiku", Description: "Writes a haiku. Use it for short poems.", License: "MIT",
				Metadata: map[string]string{"version": "1.0"}, AllowedTools: []string{"Read", "Bash(git add:*)", "Grep"}}
			if diff := cmp.Diff(want, front); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if text, err := source.LoadInstructions(t.Context(), "haiku"); err != nil || text != "Write three lines.\nSee references/form.md.\n" {
				t.Errorf("instructions %q, %v", text, err)
			}
			for _, file := range []string{"references/form.md", "./references/../references/form.md"} {
				r, err := source.LoadResource(t.Context(), "haiku", file)
				if err != nil {
					t.Errorf("%s: %v", file, err)
					continue
				}
				if data, err := io.ReadAll(r); err != nil || string(data) != "5, 7, 5 syllables" {
					t.Errorf("%s: %q, %v", file, data, err)
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Names and paths that a model makes up lead nowhere.
func TestPathsStayInTheSkill(t *testing.T) {
	for name, source := range sources(t) {
		for _, file := range []string{
			"private.txt", "SKILL.md", "../secret.txt", "references/../../secret.txt", "references/../private.txt", "/etc/passwd",
			"references", "references/none.md", "", ".", `references\..\..\secret.txt`, "references/form.md\x00",
		} {
			if r, err := source.LoadResource(t.Context(), "haiku", file); err == nil {
				data, _ := io.ReadAll(r)
				t.Errorf("%s: file %q is read: %q", name, file, data)
			} else if !errors.Is(err, skill.ErrInvalidResourcePath) && !errors.Is(err, skill.ErrResourceNotFound) {
				t.Errorf("%s: file %q: error %v", name, file, err)
			}
		}
		for _, other := range []string{"none", "..", ".", "", "haiku/references", "../haiku", "notes", "Haiku"} {
			if _, err := source.LoadInstructions(t.Context(), other); err == nil {
				t.Errorf("%s: there is a skill %q", name, other)
			} else if !errors.Is(err, skill.ErrInvalidSkillName) && !errors.Is(err, skill.ErrSkillNotFound) {
				t.Errorf("%s: skill %q: error %v", name, other, err)
			}
			if _, err := source.ListResources(t.Context(), other, "."); err == nil {
				t.Errorf("%s: skill %q has a list of files", name, other)
			}
		}
	}
	if _, err := skill.NewFileSystemSource(library()).ListResources(t.Context(), "haiku", ".."); !errors.Is(err, skill.ErrInvalidResourcePath) {
		t.Errorf("list of ..: error %v", err)
	}
}

// A link in a folder of skills does not lead out of it.
func TestLinksAreNotFollowed(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret.txt")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, library()); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"haiku/references/link.md": outside, "haiku/assets": filepath.Dir(outside)} {
		if err := os.Symlink(to, filepath.Join(dir, filepath.FromSlash(link))); err != nil {
			t.Skip(err) // Windows lets few people do that
		}
	}
	source := skill.NewFileSystemSource(os.DirFS(dir))
	for _, file := range []string{"references/link.md", "assets/secret.txt"} {
		if _, err := source.LoadResource(t.Context(), "haiku", file); !errors.Is(err, skill.ErrInvalidResourcePath) {
			t.Errorf("%s: error %v", file, err)
		}
	}
	for _, below := range []string{".", "assets"} {
		all, err := source.ListResources(t.Context(), "haiku", below)
		if list := strings.Join(all, " "); strings.Contains(list, "link") || strings.Contains(list, "secret") {
			t.Errorf("files below %s: %s, %v", below, list, err)
		}
	}
}

func TestBrokenFrontmatter(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"none":               {"Write.", "does not begin with a line ---"},
		"no end":             {"---\nname: haiku\ndescription: x\n", "no line --- ends"},
		"no YAML":            {"---\nname: [\n---\n", "invalid frontmatter"},
		"unknown field":      {"---\nname: haiku\ndescription: x\nauthor: me\n---\n", "author"},
		"another name":       {"---\nname: tanka\ndescription: x\n---\n", `has the name "tanka"`},
		"capitals":           {"---\nname: Haiku\ndescription: x\n---\n", "small letters"},
		"no description":     {"---\nname: haiku\n---\n", "description"},
		"a long description": {"---\nname: haiku\ndescription: " + strings.Repeat("x", 1025) + "\n---\n", "1024"},
		"tools":              {"---\nname: haiku\ndescription: x\nallowed-tools: {a: b}\n---\n", "allowed-tools"},
	} {
		source := skill.NewFileSystemSource(fstest.MapFS{"haiku/SKILL.md": {Data: []byte(tt.text)}})
		_, err := source.ListFrontmatters(t.Context())
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "haiku") {
			t.Errorf("%s: error %v, want %q in it", name, err, tt.want)
		}
	}
	windows := strings.ReplaceAll(haiku, "\n", "\r\n")
	if f, text, err := skill.ParseBytes([]byte(windows)); err != nil || f.Name != "haiku" || !strings.HasPrefix(text, "Write three") {
		t.Errorf("with line ends of Windows: %v, %q, %v", f, text, err)
	}
}

// A skill in memory changes when it is loaded anew, and a load that fails changes nothing.
func TestReload(t *testing.T) {
	files := library()
	source, reload, err := skill.WithCompletePreloadSource(t.Context(), skill.NewFileSystemSource(files))
	if err != nil {
		t.Fatal(err)
	}
	is := func(when, want string) {
		t.Helper()
		if text, err := source.LoadInstructions(t.Context(), "haiku"); err != nil || !strings.Contains(text, want) {
			t.Errorf("%s: %q, %v", when, text, err)
		}
	}
	files["haiku/SKILL.md"] = &fstest.MapFile{Data: []byte(strings.Replace(haiku, "three lines", "four lines", 1))}
	is("before the load", "three lines")
	if err := reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	is("after the load", "four lines")
	files["haiku/SKILL.md"] = &fstest.MapFile{Data: []byte("broken")}
	if err := reload(t.Context()); !errors.Is(err, skill.ErrInvalidFrontmatter) {
		t.Errorf("error %v", err)
	}
	is("after a load that failed", "four lines")
}
