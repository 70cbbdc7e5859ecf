// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	seam "github.com/refrain-dev/refrain/internal/runs/cluster"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/supervisor"
	"github.com/refrain-dev/refrain/temporal"
	"github.com/refrain-dev/refrain/temporal/cluster"
)

// gone is a server whose namespace was removed after the worker had connected.
type gone struct {
	workflowservice.UnimplementedWorkflowServiceServer
}

var errGone = serviceerror.ToStatus(serviceerror.NewNamespaceNotFound("default")).Err()

func (gone) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{Capabilities: &workflowservice.GetSystemInfoResponse_Capabilities{}}, nil
}

func (gone) DescribeNamespace(context.Context, *workflowservice.DescribeNamespaceRequest) (*workflowservice.DescribeNamespaceResponse, error) {
	return &workflowservice.DescribeNamespaceResponse{}, nil
}

func (gone) PollWorkflowTaskQueue(context.Context, *workflowservice.PollWorkflowTaskQueueRequest) (*workflowservice.PollWorkflowTaskQueueResponse, error) {
	return nil, errGone
}

func (gone) PollActivityTaskQueue(context.Context, *workflowservice.PollActivityTaskQueueRequest) (*workflowservice.PollActivityTaskQueueResponse, error) {
	return nil, errGone
}

// G8: a worker whom Temporal refuses does not stay as a process that does nothing. The SDK tries for two minutes.
func TestRefusedWorker(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes two minutes")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(srv, gone{})
	grpc_health_v1.RegisterHealthServer(srv, health.NewServer())
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(srv.Stop)
	c, err := cluster.Temporal{}.Dial(t.Context(), seam.Address{HostPort: l.Addr().String(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for name, work := range map[string]func(context.Context) error{
		"steps": func(ctx context.Context) error { return c.Steps(ctx, seam.Steps{Queue: "gpu", MaxSteps: 1}) },
		"runs": func(ctx context.Context) error {
			return c.Work(ctx, seam.Worker{MaxRuns: 1, Log: slog.New(slog.DiscardHandler), Watch: func(*supervisor.Supervisor) {},
				Supervisor: supervisor.Config{Service: session.InMemoryService(), AppName: "app", UserID: "user", Driver: temporal.Driver("")}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := work(t.Context())
			if err == nil || !strings.Contains(err.Error(), "refuses this worker") {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}
