// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// notes lists the files in the folder of a run that another machine needs too.
var notes = []string{"head", "dirty", "exclude", folderNote}

const (
	maxNote    = 16 << 20
	maxCarried = 1_000_000 // files in a tree that is carried
	maxListing = 1 << 30   // bytes of all trees, without the files in them
	maxObjects = 2_000_000 // files and trees in all of them
	maxRefs    = 64 << 20  // bytes of the refs
	maxDepth   = 2048      // folders in each other: no longer path can be written
)

// Export writes the trees of a run into a new file, a git bundle, that [Receive] reads on another machine. The folder is
// [Config].Store. The error wraps fs.ErrNotExist if the store has no files of the run.
func Export(ctx context.Context, folder, run, file string) error {
	s, err := OpenStored(ctx, folder, run)
	if err != nil {
		return err
	}
	var entries bytes.Buffer
	for _, name := range notes {
		text, err := os.ReadFile(filepath.Join(folder, "runs", s.name, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("export the files of run %q: %w", run, err)
		}
		blob, err := s.git.feed1(ctx, text, "hash-object", "-w", "--stdin")
		if err != nil {
			return err
		}
		fmt.Fprintf(&entries, "100644 blob %s\t%s\x00", blob, name)
	}
	tree, err := s.git.feed1(ctx, entries.Bytes(), "mktree", "-z")
	if err != nil {
		return err
	}
	prefix := "refs/refrain/" + s.name + "/"
	if _, err := s.git.run(ctx, "update-ref", prefix+"notes", tree); err != nil {
		return err
	}
	file, err = filepath.Abs(file)
	if err != nil {
		return fmt.Errorf("export the files of run %q: %w", run, err)
	}
	refs, err := s.git.run(ctx, "for-each-ref", "--format=%(refname)", prefix)
	if err == nil {
		err = s.git.pipe(ctx, refs, io.Discard, "bundle", "create", "--quiet", file, "--stdin")
	}
	if err == nil {
		err = os.Chmod(file, 0o600) // for its owner only, as the log beside it
	}
	return err
}

// Carried has the trees of a run from another machine, in a temporary repository until Keep stores them.
type Carried struct {
	git         *git
	store       string // the folder of [Config].Store
	format      string
	made        string // the repository
	base, start Hash
	notes       map[string][]byte
	trees       []Hash
}

var carriedRef = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64}) refs/refrain/[A-Za-z0-9_-]+/(?:(base|start|notes)|beside/[A-Za-z0-9_-]+/[a-z0-9]+|[0-9a-f]{40,64})$`)
})

// Receive reads a file that [Export] has written, and checks it: that it has all objects of the trees, that each hashes to
// its name, that no path leads out of its tree, and that no tree is larger than limit. It writes below store only, in a
// folder that [Carried.Close] deletes, until [Carried.Keep].
func Receive(ctx context.Context, store, file string, trees []Hash, limit int64) (c *Carried, err error) {
	bin, err := findGit(ctx)
	if err != nil {
		return nil, err
	}
	if file, err = filepath.Abs(file); err != nil {
		return nil, fmt.Errorf("read the files of the run: %w", err)
	}
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the files of the run: %w", err)
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Size() > limit:
		return nil, &LimitError{"store", file, info.Size(), limit}
	}
	c = &Carried{store: store, trees: trees, notes: make(map[string][]byte)}
	_, absent := os.Stat(store)
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
			if absent != nil { // and only if they are empty
				os.Remove(store)
				os.Remove(filepath.Dir(store))
			}
			c = nil
		}
	}()
	if c.store, err = realPath(store); err != nil {
		return c, err
	}
	if c.format, err = formatOf(file); err != nil {
		return c, err
	}
	c.made = filepath.Join(c.store, "carried-"+rand.Text())
	c.git = &git{bin: bin, dir: c.store, config: slices.Clone(pinned)}
	if _, err := c.git.run(ctx, "init", "--quiet", "--bare", "--template=", "--object-format="+c.format, c.made); err != nil {
		return c, err
	}
	c.git.dir, c.git.env = c.made, []string{"GIT_DIR=" + c.made}
	refs, err := c.git.run(ctx, "bundle", "unbundle", file)
	if err == nil {
		_, err = c.git.run(ctx, "fsck", "--full", "--strict", "--no-dangling", "--no-progress")
	}
	if err != nil {
		return c, fmt.Errorf("git refuses it: %w", err)
	}
	return c, c.check(ctx, file, string(refs), limit)
}

// formatOf reads the kind of hash from the beginning of a bundle. It refuses a bundle of more than
// [maxObjects], because git and this process need memory for each of them.
func formatOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("read the files of the run: %w", err)
	}
	defer f.Close()
	in, none := bufio.NewReader(f), errors.New("it has no files of a run: it is no git bundle as refrain export --files writes it")
	format := "sha1"
	begin, _ := in.Peek(64)
	switch text := string(begin); {
	case strings.HasPrefix(text, "# v3 git bundle\n@object-format=sha256\n"):
		format = "sha256"
	case !strings.HasPrefix(text, "# v2 git bundle\n"):
		return "", none
	}
	for n, line := 0, ""; line != "\n"; n += len(line) { // the refs
		part, err := in.ReadSlice('\n') // that no long line fills the memory
		if err != nil || n > maxRefs {
			return "", none
		}
		line = string(part)
	}
	var pack struct {
		Is               [4]byte
		Version, Objects uint32
	}
	switch err := binary.Read(in, binary.BigEndian, &pack); {
	case err != nil || string(pack.Is[:]) != "PACK":
		return "", none
	case pack.Objects > maxObjects:
		return "", fmt.Errorf("it has %d files and folders in all its versions, more than the limit of %d", pack.Objects, maxObjects)
	}
	return format, nil
}

// check finds the trees that are needed, and measures them.
func (c *Carried) check(ctx context.Context, file, refs string, limit int64) error {
	var noted Hash
	for line := range strings.Lines(refs) {
		m := carriedRef().FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			return fmt.Errorf("it has a ref %.80q, which no run has", strings.TrimSpace(line))
		}
		switch m[2] {
		case "base":
			c.base = Hash(m[1])
		case "start":
			c.start = Hash(m[1])
		case "notes":
			noted = Hash(m[1])
		}
	}
	c.trees = append(slices.Clone(c.trees), c.base, c.start, noted)
	objects, err := c.objects(ctx)
	if err != nil {
		return err
	}
	for _, h := range c.trees {
		n, ok := objects[string(h)]
		switch {
		case !ok || !n.tree:
			return fmt.Errorf("it has no tree %.80q, which the run needs", string(h))
		case n.total.bytes > limit:
			return &LimitError{"store", file, n.total.bytes, limit}
		case n.total.files > maxCarried:
			return &LimitError{"files", file, n.total.files, maxCarried}
		}
	}
	c.trees = c.trees[:len(c.trees)-1]
	listed, err := c.git.run(ctx, "ls-tree", "-z", string(noted))
	if err != nil {
		return err
	}
	for _, entry := range list(listed) {
		meta, name, _ := strings.Cut(entry, "\t")
		if !slices.Contains(notes, name) {
			continue
		}
		n := meta[strings.LastIndexByte(meta, ' ')+1:]
		if objects[n].size > maxNote {
			return &LimitError{"file_size", name, objects[n].size, maxNote}
		}
		text, err := c.git.run(ctx, "cat-file", "blob", n)
		if err != nil {
			return err
		}
		c.notes[name] = text
	}
	if head := Hash(c.notes["head"]); head != "" && !head.Valid() {
		return fmt.Errorf("its commit is %.80q", string(head))
	}
	for _, name := range list(c.notes["dirty"]) {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("it names the file %q, which leads out of the tree", name)
		}
	}
	return nil
}

// object is a tree or a file. total is its size on the disk with everything below it.
type object struct {
	tree   bool
	size   int64
	inside []*object // of a tree
	total  struct{ files, bytes int64 }
	depth  int // of the folders in it, once it is known; 0 before
}

// objects reads the sizes of all objects, and the entries of trees.
func (c *Carried) objects(ctx context.Context) (map[string]*object, error) {
	all := make(map[string]*object)
	in, done := c.reads(ctx, nil, "--batch-all-objects", "--batch-check=%(objectname) %(objecttype) %(objectsize)")
	defer done()
	var trees bytes.Buffer
	var listing int64
	for {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		f := strings.Fields(line)
		if len(f) != 3 {
			return nil, fmt.Errorf("git lists an object as %q", line)
		}
		size, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("git lists an object as %q: %w", line, err)
		}
		if all[f[0]] = (&object{size: size, tree: f[1] == "tree"}); f[1] == "tree" {
			trees.WriteString(f[0] + "\n")
			listing += size
		}
	}
	if listing > maxListing {
		return nil, &LimitError{"store", "trees", listing, maxListing}
	}
	if err := c.entries(ctx, trees.Bytes(), all); err != nil {
		return nil, err
	}
	for _, o := range all {
		if o.weigh(0) > maxDepth {
			return nil, errors.New("it has folders that are too deep in each other")
		}
	}
	return all, nil
}

// reads returns the output of git cat-file. done ends the command.
func (c *Carried) reads(ctx context.Context, in []byte, args ...string) (_ *bufio.Reader, done func()) {
	r, w := io.Pipe()
	go func() { w.CloseWithError(c.git.pipe(ctx, in, w, append([]string{"cat-file", "--buffer"}, args...)...)) }()
	return bufio.NewReader(r), func() { r.Close() }
}

// entries reads the entries of trees. It keeps only one tree at a time, because a small file may have very large
// ones.
func (c *Carried) entries(ctx context.Context, trees []byte, all map[string]*object) error {
	in, done := c.reads(ctx, trees, "--batch")
	defer done()
	width := map[string]int{"sha1": 20, "sha256": 32}[c.format]
	hash := make([]byte, 2*width)
	var buffer []byte
	for {
		head, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		f := strings.Fields(head)
		if err != nil || len(f) != 3 || all[f[0]] == nil {
			return fmt.Errorf("git shows an object as %q: %w", head, err)
		}
		o := all[f[0]]
		buffer = slices.Grow(buffer[:0], int(o.size)+1)[:o.size+1]
		if _, err := io.ReadFull(in, buffer); err != nil {
			return fmt.Errorf("read a tree: %w", err)
		}
		for content := buffer[:o.size]; len(content) > 0; {
			entry, rest, ok := bytes.Cut(content, []byte{0})
			mode, name, named := bytes.Cut(entry, []byte{' '})
			if !ok || !named || len(rest) < width {
				return errors.New("a tree is cut off")
			}
			hex.Encode(hash, rest[:width])
			is := all[string(hash)]
			switch {
			case string(mode) == modeNested:
				return fmt.Errorf("it has a repository %.80q inside a tree, which no run has", name)
			case is == nil: // git fsck does not notice it below a tree that no ref names
				return fmt.Errorf("it does not have the contents of %.80q, the object %s", name, hash)
			}
			o.inside = append(o.inside, is)
			content = rest[width:]
		}
	}
}

// weigh finds the total of an object that is so deep in others, and returns its own depth. A tree cannot be in itself,
// because it hashes to its name.
func (o *object) weigh(within int) int {
	switch {
	case o.depth > 0:
		return o.depth
	case within > maxDepth:
		return within
	case !o.tree:
		o.depth, o.total.files, o.total.bytes = 1, 1, o.size
		return 1
	}
	depth := 0
	for _, in := range o.inside {
		depth = max(depth, in.weigh(within+1))
		o.total.files = min(math.MaxInt32, o.total.files+in.total.files)
		o.total.bytes = min(math.MaxInt64/4, o.total.bytes+in.total.bytes)
	}
	o.total.files++
	o.depth = depth + 1
	return o.depth
}

// Keep stores the trees as those of a run that the store does not have, with its [Config].Owner.
func (c *Carried) Keep(ctx context.Context, run, owner string) error {
	t := &Tree{cfg: Config{Owner: owner}, storage: storage{name: refName(run), store: filepath.Join(c.store, storeNames[c.format])}}
	t.room = filepath.Join(c.store, "runs", t.name)
	lock, err := lockRoom(ctx, t.room)
	if err != nil {
		return err
	}
	defer lock.Close()
	t.git = &git{bin: c.git.bin, dir: t.room, config: slices.Clone(pinned), env: []string{"GIT_DIR=" + t.store}}
	if err := t.prepareStore(ctx, c.format); err != nil {
		return err
	}
	if has, err := t.git.object(ctx, t.ref("start")); err != nil || has != "" {
		return errors.Join(err, fmt.Errorf("the store has files of a run %q already: remove them with refrain rm", run))
	}
	for _, ext := range []string{"pack", "rev", "idx"} { // a pack counts once it has an index
		files, _ := filepath.Glob(filepath.Join(c.made, "objects", "pack", "*."+ext))
		for _, name := range files {
			to := filepath.Join(t.store, "objects", "pack", filepath.Base(name))
			if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
				return fmt.Errorf("keep the files of the run: %w", err)
			}
			if _, err := os.Stat(to); err == nil {
				continue // the same pack: its name is its hash
			}
			if err := os.Rename(name, to); err != nil {
				return fmt.Errorf("keep the files of the run: %w", err)
			}
		}
	}
	if err := t.noteOwner(); err != nil {
		return err
	}
	for name, text := range c.notes {
		if err := writeFile(filepath.Join(t.room, name), text); err != nil {
			return err
		}
	}
	for _, h := range c.trees {
		if err := t.pin(ctx, string(h), h); err != nil {
			return err
		}
	}
	return errors.Join(t.pin(ctx, "base", c.base), t.pin(ctx, "start", c.start))
}

// Close deletes the trees, unless Keep has stored them.
func (c *Carried) Close() error {
	if c.made == "" {
		return nil
	}
	return removeAll(c.made)
}
