// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/session"
)

// A run that is removed while runs are listed is left out of the list.
func TestRunRemovedWhileListed(t *testing.T) {
	store := session.InMemoryService()
	for _, id := range []string{"r_1", "r_2"} {
		if _, err := store.Create(t.Context(), &session.CreateRequest{AppName: runstore.AppName, UserID: runstore.UserName, SessionID: id}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := runstore.List(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Delete(t.Context(), &session.DeleteRequest{AppName: runstore.AppName, UserID: runstore.UserName, SessionID: "r_1"}); err != nil {
		t.Fatal(err)
	}
	rows, err := listRows(t.Context(), store, all, runsFlags{})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	if diff := cmp.Diff([]string{"r_2"}, ids); diff != "" {
		t.Error(diff)
	}
}
