// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"

	"github.com/refrain-dev/refrain/session"
)

// OpenLister is a [session.Service] that finds the sessions whose last run is not over, at a cost that does
// not grow with the number of other sessions. The services of this project that keep sessions in a database
// are OpenListers; sessiontest.TestService tests them.
type OpenLister interface {
	// ListOpen lists only these sessions, as [session.Service.List] does. Their state holds what
	// session.RunOf reads. An error without a response is one of List's errors. An error with a response
	// names the sessions that are left out because their run cannot be read.
	ListOpen(context.Context, *session.ListRequest) (*session.ListResponse, error)
}

// ListOpen lists the sessions whose last run is not over. With a service that is not an [OpenLister], it lists all
// sessions and drops the others. With an error it also returns the sessions that could be read, if any.
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
		if run := session.RunOf(one); run != nil && !run.Status.IsFinal() {
			open = append(open, one)
		}
	}
	return open, err
}
