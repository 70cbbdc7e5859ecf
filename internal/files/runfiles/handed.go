// SPDX-License-Identifier: Apache-2.0

package runfiles

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/internal/process/shellword"
)

// Handed says where the files of a result went. It is zero if they are only in the store.
type Handed struct {
	// Way is branch, patch or applied; Name is the name of the branch, of the file or of the folder.
	Way    string `json:"way,omitzero"`
	Name   string `json:"name,omitzero"`
	Commit string `json:"commit,omitzero"`
	// Command merges the files, for a shell in the root of the run. It is empty if they were applied.
	Command string `json:"command,omitzero"`
}

// Handed reads from the value of [Key] where the files went.
func (w *Config) Handed(v any) (h Handed) {
	_, result := Value(v)
	if name, ok := strings.CutPrefix(result, "branch "); ok {
		h = Handed{Way: "branch", Name: name}
		h.Name, h.Commit, _ = strings.Cut(name, ", commit ")
		h.Commit, h.Command, _ = strings.Cut(h.Commit, taken)
		h.Command = cmp.Or(h.Command, w.taking(workspace.Merge, h.Name, 1, ""))
		h.Commit, _, _ = strings.Cut(h.Commit, unsigned)
	} else if name, ok := strings.CutPrefix(result, "patch "); ok {
		name, command, _ := strings.Cut(name, taken)
		name, _, _ = strings.Cut(name, insteadOf)
		h = Handed{Way: "patch", Name: name, Command: cmp.Or(command, w.applying(name, ""))}
	} else if name, ok := strings.CutPrefix(result, "applied to "); ok {
		h = Handed{Way: "applied", Name: name}
	}
	return h
}

// taken is what follows the commit of a branch in the value of [Key]: the command of [Config.taking].
const taken = "; take it with: "

// unsigned is what follows the commit of a branch if its commits have no signature.
const unsigned = ", not signed: "

// applying returns the command that applies a patch. up leads from the folder of the files to the top of its repository.
func (w *Config) applying(patch, up string) string {
	if up != "" {
		return w.git(up) + "apply <" + shellword.Of(patch)
	}
	seen, err := filepath.Rel(filepath.FromSlash(cmp.Or(w.From, ".")), patch)
	if err != nil {
		return ""
	}
	return w.git("") + "apply " + shellword.Of(seen)
}

// taking returns the command that takes a branch with this number of commits over. up leads from the folder of the files to the top of
// its repository.
func (w *Config) taking(way workspace.Taking, branch string, commits int, up string) string {
	start := shellword.Of(branch) + "~"
	if commits > 1 {
		start += strconv.Itoa(commits)
	}
	switch {
	case way == workspace.ApplyDiff:
		return fmt.Sprintf("%sdiff --binary %s %s | %[1]sapply", w.git(up), start, shellword.Of(branch))
	case way == workspace.CherryPick && commits > 1:
		return w.git("") + string(way) + " " + start + ".." + shellword.Of(branch)
	}
	return w.git("") + string(way) + " " + shellword.Of(branch)
}

// git returns the beginning of a command of git in the folder of the files, or in the one to which up leads from there, for a shell in
// the root of the run.
func (w *Config) git(up string) string {
	if from := filepath.Join(filepath.FromSlash(cmp.Or(w.From, ".")), up); from != "." {
		return "git -C " + shellword.Of(from) + " "
	}
	return "git "
}

// resultOf is the message of a result's commit. It begins a patch, too, so that no other file is taken for one.
func resultOf(run string) string { return "Result of run " + run }

// HandOver gives the files of the result to the user. Call it as a callback after the root agent.
func (rs *Runs) HandOver(ctx agent.CallbackContext) (*genai.Content, error) {
	if drive.At(ctx).IsReplay() || rs.cfg.Result.Ways() == 0 {
		return nil, nil
	}
	v, err := ctx.State().Get(Key)
	if err != nil { // no command has changed a file
		return nil, nil
	}
	was := stateOf(v)
	d, err := rs.tree(ctx, ctx.SessionID(), "", was)
	if err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	if rs.cfg.Result.Branch != "" && was.hash == d.tree.Start() { // it would have an empty commit
		return nil, nil
	}
	now := was
	if now.result, err = rs.give(ctx, d.tree, ctx.SessionID(), was); err != nil {
		return nil, fmt.Errorf("hand over the files of the result (they are kept as tree %s): %w", was.hash, err)
	}
	return nil, ctx.State().Set(Key, now.value())
}

// give hands a tree over and says where it went.
func (rs *Runs) give(ctx context.Context, t *workspace.Tree, id string, was state) (string, error) {
	r := &rs.cfg.Result
	switch {
	case r.Branch != "":
		return rs.cfg.branch(ctx, t, was, workspace.Delivery{Branch: r.Named(r.Branch, id), Message: resultOf(id), Number: true})
	case r.Apply:
		return "applied to " + cmp.Or(rs.cfg.From, "the files"), t.Apply(ctx, was.hash)
	}
	return rs.givePatch(ctx, t, id, was.hash)
}

// branch makes the branch of a delivery with the files of a state, and says where they went.
func (w *Config) branch(ctx context.Context, t *workspace.Tree, was state, r workspace.Delivery) (string, error) {
	r.Tree, r.Commits = was.hash, was.commit
	d, err := t.Deliver(ctx, r)
	if err != nil {
		return "", err
	}
	way, err := t.Taking(ctx, was.hash)
	if d.Unsigned != "" {
		d.Commit += unsigned + strings.ReplaceAll(d.Unsigned, taken, "; ")
	}
	return fmt.Sprintf("branch %s, commit %s%s%s", d.Branch, d.Commit, taken, w.taking(way, d.Branch, d.Commits, t.Up())), err
}
