// SPDX-License-Identifier: Apache-2.0

// Package server drives runs and serves them over HTTP: its own API under /api/v1, which openapi.json
// describes, the API of Google's ADK under /api, the Model Context Protocol at /mcp, and the
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
// A run never depends on a connection: a client that leaves misses nothing, and continues from the
// number of its last event. A client that reads too slowly is dropped, and the run goes on.
//
// Package operations carries out the requests of all protocols.
package server

import ()
