// SPDX-License-Identifier: Apache-2.0

// Package server drives runs and tells about them over HTTP: an API of its own under /api/v1, which
// openapi.json describes, that of Google's ADK under /api, the Model Context Protocol at /mcp, and the
// Agent2Agent protocol under /a2a.
//
//	srv, err := server.New(server.Config{Config: operations.Config{
//		Service: store, AppName: "refrain", UserID: "user", Dir: "loops",
//	}})
//	if err != nil {
//		return err
//	}
//	if err := srv.Recover(ctx); err != nil {
//		return err
//	}
//	go srv.Serve(listener)
//	<-ctx.Done()
//	return srv.Shutdown(context.Background())
//
// A run never depends on a connection: whoever leaves misses nothing, and comes back with the number
// of the last event. A client that reads too slowly is dropped, and the run goes on.
//
// What the protocols ask for, package operations does.
package server

import ()
