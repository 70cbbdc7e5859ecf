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
// A run does not depend on a connection. A client that disconnects loses no events, and can continue
// after the number of its last event. The server disconnects a client that reads too slowly, and the
// run continues.
//
// Package operations carries out the requests of all protocols.
package server

import ()
