// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Patch writes the changes of a tree since it was copied from From, as a patch that git apply accepts.
func (t *Tree) Patch(ctx context.Context, h Hash, w io.Writer) error {
	return t.Diff(ctx, t.base, h, w)
}

// Apply writes the changes that a tree has since it was copied from From into the files of From, but not into the
// repository there. If one of these files has changed in From in the meantime, Apply writes nothing and returns a
// [*ConflictError]. An Apply that was interrupted can be repeated.
func (t *Tree) Apply(ctx context.Context, h Hash) error {
	changes, err := t.Files(ctx, t.base, h)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(t.from)
	if err != nil {
		return fmt.Errorf("apply the result: %w", err)
	}
	defer root.Close()
	contents, was := make(map[string][]byte), make(map[string][]byte)
	var todo []Change
	conflict := &ConflictError{}
	for _, c := range changes {
		if contents[c.Path], err = t.blob(ctx, c.Mode, c.blob); err == nil {
			was[c.Path], err = t.blob(ctx, c.WasMode, c.wasBlob)
		}
		if err != nil {
			return fmt.Errorf("apply the result: %w", err)
		}
		mode, content, err := onDisk(root, c.Path)
		switch {
		case err != nil:
			return fmt.Errorf("apply the result: %w", err)
		case mode == c.Mode && bytes.Equal(content, contents[c.Path]):
		case mode == c.WasMode && bytes.Equal(content, was[c.Path]):
			todo = append(todo, c)
		case mode == "" && t.makesWay(changes, c.Path):
			todo = append(todo, c)
		default:
			conflict.Paths = append(conflict.Paths, c.Path)
		}
	}
	if len(conflict.Paths) > 0 {
		return conflict
	}
	for _, c := range todo { // deletions first, because a folder may become a file
		if c.Mode == "000000" {
			if err := remove(root, c.Path); err != nil {
				return fmt.Errorf("apply the result: %w", err)
			}
		}
	}
	for _, c := range todo {
		if c.Mode != "000000" {
			if err := put(root, c.Path, c.Mode, contents[c.Path]); err != nil {
				return fmt.Errorf("apply the result: %w", err)
			}
		}
	}
	return nil
}

// makesWay reports whether a folder at a path is removed by other changes.
func (t *Tree) makesWay(changes []Change, name string) bool {
	for _, c := range changes {
		if c.Status == "D" && strings.HasPrefix(c.Path, name+"/") {
			return true
		}
	}
	return false
}

// blob returns the stored content of a file, or nil if the mode says that the file does not exist.
func (t *Tree) blob(ctx context.Context, mode, blob string) ([]byte, error) {
	if mode == "000000" {
		return nil, nil
	}
	return t.git.run(ctx, "cat-file", "blob", blob)
}

// onDisk returns the mode and the content of a file in the form that trees use. The mode is 000000 if there is no
// file, and empty for a folder or any other kind of file.
func onDisk(root *os.Root, name string) (mode string, content []byte, err error) {
	name = filepath.FromSlash(name)
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err != nil && isNotFolder(root, name):
		return "000000", nil, nil
	case err != nil:
		return "", nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := root.Readlink(name)
		return "120000", []byte(target), err
	case !info.Mode().IsRegular():
		return "", nil, nil
	}
	content, err = root.ReadFile(name)
	if info.Mode().Perm()&0o100 != 0 {
		return "100755", content, err
	}
	return "100644", content, err
}

// isNotFolder reports whether a path leads through a file where a folder should be.
func isNotFolder(root *os.Root, name string) bool {
	for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
		if info, err := root.Lstat(dir); err == nil {
			return !info.IsDir()
		}
	}
	return false
}

// remove deletes a file, and then the folders above it that have become empty.
func remove(root *os.Root, name string) error {
	name = filepath.FromSlash(name)
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
		if root.Remove(dir) != nil {
			break
		}
	}
	return nil
}

// put writes a complete file or leaves the old one. An existing file keeps its read and write permissions.
func put(root *os.Root, name, mode string, content []byte) error {
	name = filepath.FromSlash(name)
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	made := filepath.Join(filepath.Dir(name), ".refrain-"+rand.Text())
	var err error
	if mode == "120000" {
		err = root.Symlink(string(content), made)
	} else {
		perm := fs.FileMode(0o644)
		was, statErr := root.Lstat(name)
		kept := statErr == nil && was.Mode().IsRegular()
		if kept {
			perm = was.Mode().Perm() &^ 0o111
		}
		if mode == "100755" {
			perm |= perm & 0o444 >> 2
		}
		if err = root.WriteFile(made, content, perm); err == nil && kept {
			err = root.Chmod(made, perm) // regardless of the umask
		}
	}
	if err == nil {
		err = root.Rename(made, name)
	}
	if err != nil {
		_ = root.Remove(made)
	}
	return err
}

// ErrBranchExists means that another branch already has the name of the result's branch.
var ErrBranchExists = errors.New("there is one of this name; rename or delete it, or choose another name")

// Branch creates a branch in the user's repository with the files of a tree, and returns its commit. The branch
// starts at the last commit of the repository; files that were not committed when the run began get a commit of their
// own before the result, except those with a filter that is off. The contents pass through the line end conversions that the
// user has configured, and through the filters that [Config].Filters permits, as with git add; a result that changes a file with
// another filter is a [*FilterError]. Branch checks nothing out and runs no hook.
//
// If a branch of this name already has these files, Branch returns its commit. If Branch made its last commit in this
// repository with the same message, the new result replaces it, unless the branch is checked out. For any other
// branch of this name Branch returns [ErrBranchExists].
func (t *Tree) Branch(ctx context.Context, h Hash, branch, message string) (commit string, err error) {
	d, err := t.Deliver(ctx, Delivery{Tree: h, Branch: branch, Message: message})
	return d.Commit, err
}

// Taking names the git command that brings the result of a branch into the user's files.
type Taking string

const (
	// Merge is used if all files were committed when the run began.
	Merge Taking = "merge"
	// CherryPick skips the commit of the uncommitted files, because git merge would refuse to overwrite those files. It also skips
	// the commit in place of one that git gc has deleted.
	CherryPick Taking = "cherry-pick"
	// ApplyDiff changes only the files, because the result changes files that are not committed, or because the index has changes.
	ApplyDiff Taking = "apply"
)

// Taking returns the git command that brings the result of [Tree.Branch] into the user's files.
func (t *Tree) Taking(ctx context.Context, h Hash) (Taking, error) {
	dirty, err := t.dirty()
	if err != nil {
		return Merge, err
	}
	if len(dirty) == 0 {
		return t.takingClean(ctx)
	}
	head, err := t.head()
	if err != nil || head == "" {
		return ApplyDiff, err
	}
	changes, err := t.git.files(ctx, t.base, h)
	if err != nil {
		return "", err
	}
	for _, c := range changes {
		if slices.Contains(dirty, c.Path) {
			return ApplyDiff, nil
		}
	}
	if _, err := t.user.run(ctx, "diff", "--cached", "--quiet", "--no-ext-diff", "--no-textconv"); code(err) == 1 {
		return ApplyDiff, nil
	} else if err != nil {
		return "", err
	}
	return CherryPick, nil
}

// takingClean does what Taking does if all files were committed.
func (t *Tree) takingClean(ctx context.Context) (Taking, error) {
	head, err := t.head()
	if err != nil || head == "" {
		return Merge, err
	}
	missing, err := t.user.lacks(ctx, []byte(head+"\n"))
	if err != nil || len(missing) > 0 {
		return CherryPick, err
	}
	now, err := t.user.object(ctx, t.cfg.Base.revision()+"^{commit}")
	if err != nil || now == "" {
		return Merge, err
	}
	if _, err = t.user.run(ctx, "merge-base", "--is-ancestor", head, now); code(err) == 1 {
		return CherryPick, nil // the commit was amended or rebased: a merge would bring the old one back
	}
	return Merge, err
}

// CheckBranch returns an error if [Tree.Branch] could not create a branch for the tree of cfg now, so that a run does
// not do work whose result cannot be delivered. CheckBranch opens no tree; it reads only From, Store and Run of cfg.
func CheckBranch(ctx context.Context, cfg Config, branch, message string) error {
	bin, err := findGit(ctx)
	if err != nil {
		return err
	}
	t := &Tree{cfg: cfg, storage: storage{room: filepath.Join(cfg.Store, "runs", refName(cfg.Run))}}
	if err := t.findOrigin(ctx, bin); err != nil {
		return err
	}
	if !t.repo {
		return noRepository(t.from)
	}
	if _, err := t.user.run(ctx, "check-ref-format", "--branch", branch); err != nil {
		return fmt.Errorf("the result cannot become the branch %q: %w", branch, err)
	}
	there, err := t.user.word(ctx, "for-each-ref", "--format=%(refname)", "refs/heads/"+branch)
	if err != nil || there == "" {
		return err
	}
	if err := t.replaceable(ctx, t.user, branch, message); err != nil {
		return fmt.Errorf("the result cannot become the new branch %q: %w", branch, err)
	}
	return nil
}

// madeHere returns [ErrBranchExists] if a branch is checked out, or if its last commit is not a result with this message.
func madeHere(ctx context.Context, g *git, branch, message string) error {
	is, err := g.word(ctx, "for-each-ref", "--format=%(worktreepath)%(committeremail)%(contents)", "refs/heads/"+branch)
	if err == nil && is != "<refrain@localhost>"+message {
		err = ErrBranchExists
	}
	return err
}

func (t *Tree) branch(ctx context.Context, r Delivery) (d Delivered, err error) {
	g := ofUser(t.user.bin, t.from, t.cfg.Environ, t.cfg.Filters) // whose configuration may have changed since Open
	if _, err := g.run(ctx, "check-ref-format", "--branch", r.Branch); err != nil {
		return d, err
	}
	if err := t.git.known(ctx, r.Tree); err != nil {
		return d, err
	}
	c := committing(ctx, g)
	parent, err := t.ground(ctx, c)
	if err != nil {
		return d, err
	}
	var tree Hash
	links, err := t.chain(ctx, r.Commits)
	if err != nil {
		return d, err
	}
	links = append(links, link{r.Tree, r.Message, ""})
	before := t.base
	for i, l := range links {
		changes, err := t.git.files(ctx, before, l.tree)
		if err != nil {
			return d, err
		}
		if len(changes) == 0 && (i < len(links)-1 || d.Commits > 0) {
			continue
		}
		if tree, err = t.onto(ctx, g, parent, changes); err != nil {
			return d, err
		}
		if parent, err = c.commit(ctx, tree, parent, l.message, l.date); err != nil {
			return d, err
		}
		before = l.tree
		d.Commits++
	}
	d.Unsigned = c.unsigned
	err = t.pointNew(ctx, g, tree, parent, r, &d)
	return d, err
}

// ground returns the commit on which branches of the result stand: the one with which the run began, or one for the files that were not
// committed then.
func (t *Tree) ground(ctx context.Context, c *committer) (string, error) {
	parent, err := t.parent(ctx, c)
	if err != nil {
		return "", err
	}
	tree, err := t.committed(ctx, c.g, parent)
	if err != nil || tree == "" {
		return parent, err
	}
	return c.commit(ctx, tree, parent, "The files that were not committed when the run began", "")
}

// pointNew creates the branch of a result, with a number if the delivery permits it and the branch exists.
func (t *Tree) pointNew(ctx context.Context, g *git, tree Hash, commit string, r Delivery, d *Delivered) error {
	for n := 1; ; n++ {
		d.Branch, d.Commit = r.Branch, commit
		if n > 1 {
			d.Branch = fmt.Sprintf("%s-%d", r.Branch, n)
		}
		if err := t.point(ctx, g, tree, r.Message, d); !r.Number || n == 99 || !errors.Is(err, ErrBranchExists) {
			return err
		}
	}
}

// point creates the branch of a result, unless the branch exists. A branch with the same files stays as it is.
func (t *Tree) point(ctx context.Context, g *git, tree Hash, message string, d *Delivered) error {
	ref := "refs/heads/" + d.Branch
	there, err := g.object(ctx, ref+"^{commit}")
	if err != nil {
		return err
	}
	if there != "" {
		has, err := g.word(ctx, "rev-parse", "--verify", there+"^{tree}")
		if err != nil {
			return err
		}
		err = t.replaceable(ctx, g, d.Branch, message)
		if Hash(has) == tree && (err != nil || d.Commits == 1) {
			d.Commit = there
			return nil
		}
		if err != nil {
			return err
		}
	}
	if err := t.noteBranch(d.Branch, d.Commit); err != nil {
		return err
	}
	_, err = g.run(ctx, "update-ref", ref, d.Commit, cmp.Or(there, strings.Repeat("0", len(d.Commit))))
	return err
}

// head returns the commit that the tree was copied from, or "" if there was none.
func (t *Tree) head() (string, error) {
	known, err := os.ReadFile(filepath.Join(t.room, "head"))
	if err != nil {
		return "", fmt.Errorf("read the commit that the run began with: %w", err)
	}
	return string(known), nil
}

// dirty returns the names of the files that were not committed when the tree was copied.
func (t *Tree) dirty() ([]string, error) {
	names, err := os.ReadFile(filepath.Join(t.room, "dirty"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read which files were not committed: %w", err)
	}
	return list(names), nil
}

// committed returns a tree with the files that were not committed, or the empty hash if there were none.
func (t *Tree) committed(ctx context.Context, g *git, parent string) (Hash, error) {
	names, err := t.dirty()
	if err != nil || len(names) == 0 {
		return "", err
	}
	out, err := t.git.run(ctx, "ls-tree", "-r", "-z", "--full-tree", string(t.base))
	if err != nil {
		return "", err
	}
	stored := make(map[string]Change)
	for _, entry := range list(out) {
		meta, name, _ := strings.Cut(entry, "\t")
		f := strings.Fields(meta)
		stored[name] = Change{Path: name, Mode: f[0], blob: f[2]}
	}
	var changes []Change
	for _, name := range names {
		c, ok := stored[name]
		if !ok {
			c = Change{Path: name, Mode: "000000"}
		}
		changes = append(changes, c)
	}
	return t.onto(ctx, g, parent, changes)
}

// onto applies changes to the tree of a commit, stores the new tree in the user's repository and returns it.
func (t *Tree) onto(ctx context.Context, g *git, parent string, changes []Change) (Hash, error) {
	names := make([]string, 0, len(changes))
	for _, c := range changes {
		if strings.HasPrefix(c.Mode, "100") { // neither a link nor a deletion
			names = append(names, c.Path)
		}
	}
	filtered, err := g.filtered(ctx, names)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if filter := filtered[name]; filter != "" {
			return "", &FilterError{name, filter}
		}
	}
	edits := make([]edit, 0, len(changes))
	for _, c := range changes {
		e := edit{t.prefix + c.Path, c.Mode, c.blob}
		if c.Mode == "000000" {
			e.blob = strings.Repeat("0", len(t.base))
		} else {
			content, err := t.blob(ctx, c.Mode, c.blob)
			if err != nil {
				return "", err
			}
			args := []string{"hash-object", "-w", "--stdin", "--path=" + c.Path}
			if c.Mode == "120000" {
				args = []string{"hash-object", "-w", "--stdin", "--no-filters"}
			}
			if e.blob, err = g.feed1(ctx, content, args...); err != nil {
				return "", err
			}
		}
		edits = append(edits, e)
	}
	return t.edited(ctx, g, parent, edits)
}

// feed1 does what feed does, and returns the output without the line end.
func (g *git) feed1(ctx context.Context, in []byte, args ...string) (string, error) {
	if in == nil {
		in = []byte{}
	}
	out, err := g.feed(ctx, in, args...)
	return strings.TrimSpace(string(out)), err
}

// commitTree stores a commit; sign is the option of git that signs or does not.
func commitTree(ctx context.Context, g *git, tree Hash, parent, message, sign string) (string, error) {
	if !strings.HasSuffix(message, "\n") {
		message += "\n"
	}
	args := []string{"commit-tree", sign, "-F", "-"}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	return g.feed1(ctx, []byte(message), append(args, string(tree))...)
}
