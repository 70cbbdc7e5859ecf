// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// commitNote is the file in the folder of a run with the user's last commit, as git stores it. The store has no commit of the user,
// because git would look for its parents there.
const commitNote = "commit"

// headRef returns the ref of the files of the user's last commit. It is not under refs/refrain/, because an export of the run does not
// take files along that [Config].Exclude leaves out.
func headRef(name string) string { return "refs/refrain-head/" + name }

// withOrigin returns a git that also reads the objects of the user's repository. No other command on a store does, because git add
// stores no object that it finds there, and git gc in the user's repository may delete the object later.
func (t *Tree) withOrigin(ctx context.Context, g *git) (*git, error) {
	objects, err := t.userPath(ctx, "objects")
	if err != nil {
		return nil, err
	}
	if strings.ContainsRune(objects, filepath.ListSeparator) || strings.HasPrefix(objects, `"`) {
		objects = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(objects) + `"`
	}
	return g.with("GIT_ALTERNATE_OBJECT_DIRECTORIES=" + objects), nil
}

// keepHead stores the files of the user's last commit and notes the commit, so that the run needs no object of the user's repository
// from then on. Contents that the store has already are not stored again; the others keep their deltas.
func (t *Tree) keepHead(ctx context.Context) error {
	head, err := t.head()
	if err != nil || head == "" {
		return err
	}
	lock, err := lockPruning(ctx, filepath.Dir(t.store), false)
	if err != nil {
		return err
	}
	defer lock.Close()
	g, err := t.withOrigin(ctx, t.git)
	if err != nil {
		return err
	}
	commit, err := g.run(ctx, "cat-file", "commit", head)
	if err != nil {
		return err
	}
	tree, _ := partsOf(commit)
	objects, whole, err := g.objectsOf(ctx, tree, "--ignore-missing", "--not", "--all")
	if err != nil {
		return err
	}
	if len(objects) > 0 {
		pack := filepath.Join(t.store, "objects", "pack", "pack")
		if _, err := g.feed(ctx, objects, "pack-objects", "--quiet", "--delta-base-offset", "--window=0", "--compression=1", pack); err != nil {
			return err
		}
	}
	if whole { // a partial clone may lack some, and git prune would fail
		if _, err := t.git.run(ctx, "update-ref", headRef(t.name), tree); err != nil {
			return err
		}
	}
	return writeFile(filepath.Join(t.room, commitNote), commit)
}

// objectsOf lists the objects of a tree with their paths, as git rev-list does, and reports whether all of them exist.
func (g *git) objectsOf(ctx context.Context, tree string, args ...string) (objects []byte, whole bool, err error) {
	out, err := g.run(ctx, append([]string{"rev-list", "--objects", "--missing=print", tree}, args...)...)
	whole = true
	for line := range bytes.Lines(out) {
		if bytes.HasPrefix(line, []byte("?")) {
			whole = false
		} else {
			objects = append(objects, line...)
		}
	}
	return objects, whole, err
}

// lacks lists those of some objects that a repository does not have. Each object has a line, in which its path may follow.
func (g *git) lacks(ctx context.Context, objects []byte) (missing []string, err error) {
	if len(objects) == 0 {
		return nil, nil
	}
	var names bytes.Buffer
	for line := range bytes.Lines(objects) {
		name, _, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		names.Write(name)
		names.WriteByte('\n')
	}
	out, err := g.feed(ctx, names.Bytes(), "cat-file", "--batch-check=%(objectname)")
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutSuffix(line, " missing\n"); ok {
			missing = append(missing, name)
		}
	}
	return missing, err
}

// partsOf returns the tree and the parents of a commit.
func partsOf(commit []byte) (tree string, parents []string) {
	for line := range strings.Lines(string(commit)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch name {
		case "tree":
			tree = value
		case "parent":
			parents = append(parents, value)
		default:
			return tree, parents
		}
	}
	return tree, parents
}

// commit returns the user's last commit as git stores it; it is nil for the tree of an older version, and for one from another machine.
func (t *Tree) commit() ([]byte, error) {
	commit, err := os.ReadFile(filepath.Join(t.room, commitNote))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the commit that the run began with: %w", err)
	}
	return commit, nil
}

// parent returns the commit of the user's repository on which the branch of a result starts. If git gc has deleted the
// commit with which the run began, parent brings it back. If its parents are deleted, too, parent makes a commit without parents in its
// place, because a commit with missing parents would damage the repository.
func (t *Tree) parent(ctx context.Context, c *committer) (string, error) {
	head, err := t.head()
	if err != nil || head == "" {
		return "", err
	}
	commit, err := t.commit()
	if err != nil || commit == nil {
		return head, err
	}
	tree, parents := partsOf(commit)
	objects, _, err := t.git.objectsOf(ctx, tree)
	if err != nil {
		return "", err
	}
	missing, err := c.g.lacks(ctx, objects)
	if err != nil {
		return "", err
	}
	if len(missing) > 0 {
		names := []byte(strings.Join(missing, "\n") + "\n")
		pack, err := t.git.feed(ctx, names, "pack-objects", "--quiet", "--stdout", "--window=0", "--compression=1")
		if err == nil {
			_, err = c.g.feed(ctx, pack, "unpack-objects", "-q")
		}
		if err != nil {
			return "", fmt.Errorf("bring back the commit that the run began with: %w", err)
		}
	}
	// A repository that has the commit has its history, or is shallow.
	if missing, err = c.g.lacks(ctx, []byte(head+"\n")); err != nil || len(missing) == 0 {
		return head, err
	}
	if missing, err = c.g.lacks(ctx, []byte(strings.Join(parents, "\n"))); err != nil {
		return "", err
	}
	if len(missing) > 0 {
		message := "The files of commit " + head + ", with which the run began\n\nThe repository has the commit and its history no longer."
		return c.commit(ctx, Hash(tree), "", message, "")
	}
	return c.g.feed1(ctx, commit, "hash-object", "-t", "commit", "-w", "--stdin")
}

// cutHistory ends the history of a tree's own repository with the user's last commit if git gc has deleted the parents of the commit
// in the user's repository, so that git log works in the tree. It looks there again only if git has deleted something since.
func (t *Tree) cutHistory(ctx context.Context, work string) error {
	commit, err := t.commit()
	if err != nil || commit == nil || t.prefix != "" {
		return err
	}
	_, parents := partsOf(commit)
	if t.objects == "" {
		if t.objects, err = t.userPath(ctx, "objects"); err != nil {
			return err
		}
	}
	now := work + t.foldersOf(parents)
	if now == t.history {
		return nil
	}
	head, err := t.head()
	if err != nil {
		return err
	}
	// It reads no repository that programs in the tree can change.
	g, err := t.withOrigin(ctx, t.git)
	if err != nil {
		return err
	}
	missing, err := g.lacks(ctx, []byte(strings.Join(parents, "\n")))
	if err != nil {
		return err
	}
	if t.history = now; len(missing) == 0 {
		return nil
	}
	root, err := os.OpenRoot(work)
	if err != nil {
		return fmt.Errorf("end the history of the tree: %w", err)
	}
	defer root.Close()
	_ = root.Remove(".git/shallow") // a link, perhaps
	if err := root.WriteFile(".git/shallow", []byte(head+"\n"), 0o600); err != nil {
		return fmt.Errorf("end the history of the tree: %w", err)
	}
	return nil
}

// foldersOf returns the times of the folders in the user's repository that have some objects, alone or in a pack.
func (t *Tree) foldersOf(objects []string) (times string) {
	folders := []string{"pack"}
	for _, name := range objects {
		folders = append(folders, name[:min(2, len(name))])
	}
	for _, name := range folders {
		if info, err := os.Stat(filepath.Join(t.objects, name)); err == nil {
			times += info.ModTime().String()
		}
		times += "\n"
	}
	return times
}

// dissociate stores the objects that a store of an older version reads in the users' repositories. A store that lacks some of them
// stays as it is.
func (t *Tree) dissociate(ctx context.Context) error {
	name := filepath.Join(t.store, "objects", "info", "alternates")
	if _, err := os.Stat(name); err != nil {
		return nil
	}
	if _, err := t.git.run(ctx, "repack", "-a", "-d", "-q"); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return nil
	}
	if err := os.Remove(name); err != nil {
		return fmt.Errorf("prepare the store: %w", err)
	}
	return nil
}

// keepOldHead does what keepHead does for the tree of an older version, if the user's repository still has the commit. The tree's own
// repository, which read the commit through the store, is made anew.
func (t *Tree) keepOldHead(ctx context.Context) error {
	if commit, err := t.commit(); err != nil || commit != nil || !t.repo {
		return err
	}
	head, err := t.head()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && head != "" {
		var missing []string
		if missing, err = t.user.lacks(ctx, []byte(head+"\n")); len(missing) > 0 {
			return err
		}
	}
	if err == nil {
		err = t.keepHead(ctx)
	}
	if err == nil {
		err = removeAll(filepath.Join(t.Dir(), ".git"))
	}
	return err
}

// mostPacks is how many packs a store may have before the removal of a run makes one of them. There is one for each commit with which
// runs have begun, with the contents that the others do not have.
const mostPacks = 20

// repack deletes the contents in packs that no run uses, once no run is left or the packs are many, because it reads the whole store.
// Contents of the last hour stay, because another run may be storing the same contents now.
func (g *git) repack(ctx context.Context) error {
	packs, err := filepath.Glob(filepath.Join(g.dir, "objects", "pack", "*.pack"))
	if err != nil || len(packs) == 0 {
		return err
	}
	if ref, err := g.word(ctx, "for-each-ref", "--count=1"); err != nil || ref != "" && len(packs) <= mostPacks {
		return err
	}
	_, err = g.run(ctx, "repack", "-A", "-d", "-q", "--window=0", "--unpack-unreachable=1.hour.ago")
	return err
}
