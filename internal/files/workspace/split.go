// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Split describes the branches into which a result is split. Commits that change a file in common form a stack, in the order of the
// run: the first commit of a stack applies to the commit with which the run began, each other one to the commit before it.
type Split struct {
	Tree    Hash   // the files of the result
	Commits Hash   // the last of the commits that [Tree.Commit] has stored; empty for one commit
	Name    string // with which the names of the branches begin
	Message string // of a commit for the files that are in none of Commits
	Each    bool   // make a branch for each commit, and not for each stack
	Apart   string // a file of [Tree.Work] whose changes get a branch of their own, so that it joins no stacks; empty for none
	// Try is called with each branch when all are made, as [Tree.Clean] calls use with the branch's files; nil is allowed. Its error is that of
	// the split.
	Try func(p Part, dir string, env []string) error
}

// Part is a branch of a split result.
type Part struct {
	Delivered

	On    string   // the branch on which it stands; empty for the commit with which the run began
	Title string   // the first line of its first commit
	Files []string // that its commits change, as programs in [Tree.Work] see them
}

// Split makes the branches of a split result. Each name has its place in the order of the run, and the title of its first commit. A branch
// that the run has not made stays as it is: the new one then has a further number. A Split that was interrupted can be repeated, and
// finds its own branches. With an error Split returns the branches that it has made.
func (t *Tree) Split(ctx context.Context, s Split) ([]Part, error) {
	if !t.repo {
		return nil, noRepository(t.from)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	parts, err := t.split(ctx, s)
	if err != nil {
		return parts, fmt.Errorf("split the result into branches: %w", err)
	}
	if s.Try != nil {
		err = t.try(ctx, parts, s.Try)
	}
	return parts, err
}

// try calls use with the files of each branch, whose objects are in the user's repository.
func (t *Tree) try(ctx context.Context, parts []Part, use func(p Part, dir string, env []string) error) error {
	if t.prefix != "" {
		return fmt.Errorf("the copy of the run has only the folder %s of the repository, so the command would miss its other files; try the branches yourself", t.prefix)
	}
	own := t.git
	g, err := t.withOrigin(ctx, own)
	if err != nil {
		return err
	}
	t.git = g
	defer func() { t.git = own }()
	for _, p := range parts {
		h, err := g.object(ctx, p.Commit+"^{tree}")
		if err == nil {
			err = t.Clean(ctx, Hash(h), nil, "", func(dir string, env []string) error { return use(p, dir, env) })
		}
		if err != nil {
			return fmt.Errorf("try the branch %s: %w", p.Branch, err)
		}
	}
	return nil
}

func (t *Tree) split(ctx context.Context, s Split) (parts []Part, err error) {
	g := ofUser(t.user.bin, t.from, t.cfg.Environ, t.cfg.Filters)
	if _, err := g.run(ctx, "check-ref-format", "--branch", s.Name); err != nil {
		return nil, err
	}
	if err := t.git.known(ctx, s.Tree); err != nil {
		return nil, err
	}
	pieces, err := t.pieces(ctx, s)
	if err != nil {
		return nil, err
	}
	c := committing(ctx, g)
	for _, p := range pieces {
		c.date = cmp.Or(c.date, p.date)
	}
	start, err := t.ground(ctx, c)
	if err != nil {
		return nil, err
	}
	all := grouped(pieces, s.Each)
	tops := make(map[int]Part) // of the stacks
	for i, group := range all {
		part := Part{Title: subject(group[0].message)}
		on := start
		if below, ok := tops[group[0].stack]; ok {
			part.On, on = below.Branch, below.Commit
		}
		name := fmt.Sprintf("%s-%0*d", s.Name, len(strconv.Itoa(len(all))), i+1)
		if words := slug(part.Title); words != "" {
			name += "-" + words
		}
		if part.Files, part.Delivered, err = t.pile(ctx, c, on, group, name); err != nil {
			return parts, err
		}
		parts = append(parts, part)
		tops[group[0].stack] = part
	}
	return parts, nil
}

// piece is one commit of a split result.
type piece struct {
	link

	changes []Change
	stack   int // index of the first piece of its stack
}

// pieces lists the commits of a split result, the oldest first, with their stacks. Changes of the file s.Apart are the last piece.
func (t *Tree) pieces(ctx context.Context, s Split) (all []piece, err error) {
	links, err := t.chain(ctx, s.Commits)
	if err != nil {
		return nil, err
	}
	apart := path.Join(t.folder, s.Apart)
	before, titles := t.base, ""
	for _, l := range append(links, link{s.Tree, s.Message, ""}) {
		changes, err := t.git.files(ctx, before, l.tree)
		if err != nil {
			return nil, err
		}
		before = l.tree
		if s.Apart != "" && slices.ContainsFunc(changes, func(c Change) bool { return c.Path == apart }) {
			titles += "- " + subject(l.message) + "\n"
			changes = slices.DeleteFunc(changes, func(c Change) bool { return c.Path == apart })
		}
		if len(changes) > 0 {
			all = append(all, piece{link: l, changes: changes})
		}
	}
	if s.Apart != "" {
		changes, err := t.git.files(ctx, t.base, s.Tree, apart)
		if err != nil {
			return nil, err
		}
		if len(changes) > 0 {
			all = append(all, piece{link: link{s.Tree, "The changes of " + s.Apart + "\n\n" + titles, ""}, changes: changes})
		}
	}
	stack(all)
	return all, nil
}

// stack finds the stacks of pieces: two pieces are in one if they change the same file, or a file and what is in a folder of its name.
func stack(all []piece) {
	files, folders := make(map[string]int), make(map[string][]int) // the pieces that change the file, or files in the folder
	join := func(a, b int) {
		low, high := min(all[a].stack, all[b].stack), max(all[a].stack, all[b].stack)
		for i := range all {
			if all[i].stack == high {
				all[i].stack = low
			}
		}
	}
	for i := range all {
		all[i].stack = i
		for _, c := range all[i].changes {
			if other, ok := files[c.Path]; ok {
				join(i, other)
			}
			for _, other := range folders[c.Path] {
				join(i, other)
			}
			files[c.Path] = i
			for dir := path.Dir(c.Path); dir != "."; dir = path.Dir(dir) {
				if other, ok := files[dir]; ok {
					join(i, other)
				}
				if in := folders[dir]; len(in) == 0 || in[len(in)-1] != i {
					folders[dir] = append(in, i)
				}
			}
		}
	}
}

// grouped returns the pieces of each branch: one piece for each, or else those of a stack, in the order of their first pieces.
func grouped(all []piece, each bool) (groups [][]piece) {
	at := make(map[int]int) // the groups of the stacks
	for _, p := range all {
		i, known := at[p.stack]
		if each || !known {
			i = len(groups)
			at[p.stack], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], p)
	}
	return groups
}

// pile makes a branch of some pieces on a commit.
func (t *Tree) pile(ctx context.Context, c *committer, on string, pieces []piece, name string) (files []string, d Delivered, err error) {
	var tree Hash
	for _, p := range pieces {
		if tree, err = t.onto(ctx, c.g, on, p.changes); err != nil {
			return nil, d, err
		}
		if on, err = c.commit(ctx, tree, on, p.message, p.date); err != nil {
			return nil, d, err
		}
		d.Commits++
		for _, change := range p.changes {
			files = append(files, t.Seen(change.Path))
		}
	}
	d.Unsigned = c.unsigned
	slices.Sort(files)
	err = t.pointNew(ctx, c.g, tree, on, Delivery{Branch: name, Message: pieces[len(pieces)-1].message, Number: true}, &d)
	return slices.Compact(files), d, err
}

// subject returns the first line of a message.
func subject(message string) string {
	line, _, _ := strings.Cut(message, "\n")
	return line
}

// mostSlug is how many characters of a title are in the name of a branch.
const mostSlug = 40

// slug returns the words of a title for the name of a branch; empty without a letter or digit.
func slug(title string) string {
	text := ""
	for _, word := range strings.FieldsFunc(strings.ToLower(title), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if text != "" && len([]rune(text))+len([]rune(word)) >= mostSlug {
			break
		}
		text += "-" + word
	}
	if runes := []rune(strings.TrimPrefix(text, "-")); len(runes) > mostSlug {
		return string(runes[:mostSlug])
	}
	return strings.TrimPrefix(text, "-")
}
