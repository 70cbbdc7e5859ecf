// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// attributes turn off every conversion and filter, whatever .gitattributes in the tree says.
const attributes = "* -text -crlf -ident -filter !eol !working-tree-encoding !diff !merge !whitespace\n"

// unsealed lists files of a repository that change how git treats its contents. A store has none of these files.
var unsealed = []string{
	"commondir", "config.worktree", filepath.Join("info", "exclude"), filepath.Join("info", "grafts"),
	filepath.Join("info", "sparse-checkout"), "shallow",
}

// seal has the content of the files that control git in a store. A program that leaves its folder can write to the
// store, so the seal is restored before each command.
type seal struct {
	store  string
	config []byte
}

// openSealed returns a git for a store, with its seal. A config that git init may have written stays as it is, so that a
// store without write permission can be read.
func openSealed(ctx context.Context, bin, store, format string) (*git, error) {
	g := &git{bin: bin, dir: store, config: slices.Clone(pinned), env: []string{"GIT_DIR=" + store}}
	config, is := readWritten(filepath.Join(store, "config"))
	if is && plain(config, format) {
		g.seal = &seal{store, config}
	} else {
		made, s, err := g.blank(ctx, store, format)
		if err != nil {
			return nil, err
		}
		if err := removeAll(made); err != nil {
			return nil, err
		}
		g.seal = s
	}
	return g, nil
}

// plain reports whether a config is one that git init writes for a hash format.
func plain(config []byte, format string) bool {
	begin, end := "[core]\n\trepositoryformatversion = 0\n", ""
	if format != "sha1" {
		begin, end = "[core]\n\trepositoryformatversion = 1\n", "[extensions]\n\tobjectformat = "+format+"\n"
	}
	text, begins := strings.CutPrefix(string(config), begin)
	text, ends := strings.CutSuffix(text, end)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, " = ")
		begins = begins && slices.Contains([]string{"\tbare", "\tfilemode", "\tsymlinks", "\tignorecase", "\tprecomposeunicode"}, name) &&
			(value == "true\n" || value == "false\n")
	}
	return begins && ends
}

// blank creates an empty repository next to the store, with the config of a store.
func (g *git) blank(ctx context.Context, store, format string) (made string, _ *seal, err error) {
	made = store + "-" + rand.Text()
	init := *g
	init.dir, init.env, init.seal = filepath.Dir(store), []string{"GIT_DEFAULT_REF_FORMAT=files"}, nil
	_, err = init.run(ctx, "init", "--quiet", "--bare", "--template=", "--object-format="+format, made)
	var config []byte
	if err == nil {
		config, err = os.ReadFile(filepath.Join(made, "config"))
	}
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("prepare the store: %w", err), removeAll(made))
	}
	return made, &seal{store, config}, nil
}

// readWritten reads a file of the seal. It reads only regular files of limited size, because a program may have replaced
// the file with a pipe without a writer or a file without an end.
func readWritten(path string) ([]byte, bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 64<<10 {
		return nil, false
	}
	data, err := os.ReadFile(path)
	return data, err == nil
}

func (s *seal) put() error {
	for name, want := range map[string][]byte{"config": s.config, filepath.Join("info", "attributes"): []byte(attributes)} {
		path := filepath.Join(s.store, name)
		if has, is := readWritten(path); is && bytes.Equal(has, want) {
			continue
		}
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			_ = removeAll(path)
		}
		if err := writeFile(path, want); err != nil {
			return err
		}
	}
	for _, name := range unsealed {
		path := filepath.Join(s.store, name)
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		if err := removeAll(path); err != nil {
			return fmt.Errorf("remove what a program has put into the store: %w", err)
		}
	}
	return nil
}
