// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"

	"github.com/refrain-dev/refrain/session"
)

// OpenLister is a [session.Service] that finds the sessions whose last run is not over, which costs no more
// where there are many others. The services of this project that keep sessions in a database are
// OpenListers; sessiontest.TestService tests them.
type OpenLister interface {
	// ListOpen is [session.Service.List] for these sessions alone. Of their state they have what
	// session.RunOf reads. The errors are those of List, with no response; and with the response an
	// error that names the sessions which are left out, because their run cannot be read.
	ListOpen(context.Context, *session.ListRequest) (*session.ListResponse, error)
}

// ListOpen lists the sessions whose last run is not over. With a service that is not an [OpenLister] it
// lists all and leaves the others out. Beside an error are the sessions that could be read, if there are any.
func ListOpen(ctx context.Context, svc session.Service, req *session.ListRequest) ([]session.Session, error) {
	list := svc.List
	if open, ok := svc.(OpenLister); ok {
		list = open.ListOpen
	}
	got, err := list(ctx, req)
	if got == nil {
		return nil, err
	}
	var open []session.Session
	for _, one := range got.Sessions {
		if run := session.RunOf(one); run != nil && !run.Status.Over() {
			open = append(open, one)
		}
	}
	return open, err
}
