// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/program"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
	"github.com/refrain-dev/refrain/supervisor"
)

// HowToResume returns the command that resumes a run which no process drives, or the reason why no command can. All verbs use
// it.
func HowToResume(view *session.View, id string) string {
	by, flags, err := resumable(view)
	if err != nil {
		return cannotResume(id, err)
	}
	return "Resume with: " + by + " resume " + id + flags
}

func cannotResume(id string, why error) string {
	return fmt.Sprintf("refrain cannot resume run %s: %v", id, why)
}

// HowToResumeIn returns what HowToResume returns for a run of a store.
func HowToResumeIn(ctx context.Context, store session.Service, id string) string {
	if err := writable(store); err != nil {
		return cannotResume(id, err)
	}
	view, err := get(context.WithoutCancel(ctx), store, id, 0)
	if err != nil {
		return cannotResume(id, err)
	}
	return HowToResume(view, id)
}

// HowToResume returns how to resume the run. A run in a file must be imported into a store first.
func (r *Run) HowToResume() string {
	if r.Store != nil {
		if err := writable(r.Store); err != nil {
			return cannotResume(r.ID, err)
		}
		return HowToResume(r.View(), r.ID)
	}
	view := session.NewView(session.ViewConfig{State: make(map[string]any)})
	for _, ev := range r.Events {
		view.Apply(ev)
	}
	if _, _, err := resumable(view); err != nil {
		return cannotResume(r.ID, err)
	}
	return "Import the run into a store with: refrain import " + r.File.Name
}

// writable returns the reason why no run of a store can be resumed; nil for a store that can be written.
func writable(store session.Service) error {
	if s, ok := store.(*sqlite.Service); ok && s.ReadOnly() {
		return errors.New("its store is read-only here; copy the database to a folder that you can write, and name " +
			"the copy with --store")
	}
	return nil
}

// resumable returns the name of the program that resumes a run, and the flags that its verb resume needs with the reason for
// them, as far as the run alone tells. The error says why the run cannot be resumed.
func resumable(view *session.View) (by, flags string, err error) {
	started, err := supervisor.StartedWith(view)
	if errors.Is(err, supervisor.ErrNotFound) {
		return "", "", errors.New("it was not started by refrain run")
	}
	if err != nil {
		return "", "", err
	}
	p, err := program.Decode(started)
	if err != nil {
		return "", "", err
	}
	var why []string
	if _, err := p.Definition(); err != nil && p.Program == "" { // a program with its own code has the models that its definitions name
		flags = " --definition FILE"
		why = append(why, "its own definition cannot be read here")
	}
	if r := session.RunOf(view); r != nil {
		if _, ok := QueueOf(r.Driver); ok {
			p.Dir, p.Root = ".", "." // the workers choose the folder
		}
	}
	for _, dir := range []string{p.Dir, p.Root} {
		if program.IsFolder(dir) != nil {
			flags += " --dir FOLDER"
			why = append(why, "its folder "+dir+" is not here")
			break
		}
	}
	if why != nil {
		flags += " (" + strings.Join(why, "; ") + ")"
	}
	return cmp.Or(p.Program, "refrain"), flags, nil
}
