// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refrain-dev/refrain/internal/credential"
	"github.com/refrain-dev/refrain/operations/problem"
	"github.com/refrain-dev/refrain/progress/prose"
)

// Where definitions and runs are.
const (
	definitionsURI = "refrain://definitions/"
	runsURI        = "refrain://runs/"
)

// uriOf is where something is. An ID may have characters that a template does not take as they are.
func uriOf(below, name string) string {
	return below + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
}

func (s *Server) addResources(m *mcp.Server) {
	m.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "definition", Title: "Definition", URITemplate: definitionsURI + "{name}", MIMEType: "application/yaml",
		Description: "The text of a definition; list_definitions lists the names.",
	}, s.resource(definitionsURI, func(_ context.Context, name string) (string, error) {
		_, text, err := s.runs.Folder.Read(name)
		return string(text), err
	}))
	m.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "run", Title: "Run", URITemplate: runsURI + "{id}", MIMEType: "application/json",
		Description: "All about a run, with the last iterations of its loops; list_runs lists the IDs.",
	}, s.resource(runsURI, func(ctx context.Context, id string) (string, error) {
		f, err := s.follow(ctx, id)
		if err != nil {
			return "", err
		}
		defer f.leave()
		if err := s.catchUp(ctx, f); err != nil {
			return "", err
		}
		snap, err := f.snapshot(prose.English, 0)
		return string(snap.text), err
	}))
}

// resource reads what is below an address.
func (s *Server) resource(below string, read func(ctx context.Context, name string) (string, error)) mcp.ResourceHandler {
	return func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		ctx, cancel := withRequest(ctx)
		defer cancel()
		uri := req.Params.URI
		name, err := url.PathUnescape(strings.TrimPrefix(uri, below))
		if err != nil {
			return nil, mcp.ResourceNotFoundError(uri)
		}
		text, err := read(ctx, name)
		if err != nil {
			return nil, resourceError(uri, err)
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, Text: text}}}, nil
	}
}

// resourceError is an error of the API as the protocol has it.
func resourceError(uri string, err error) error {
	p := problem.Of(err)
	switch {
	case p.Status == http.StatusNotFound:
		return mcp.ResourceNotFoundError(uri)
	case p.Status < 500:
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: credential.Masked(p.Error())}
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: credential.Masked(p.Error())}
}

// listResources lists the definitions, and then the runs, page by page. The cursor is the ID of the last
// run of a page.
func (s *Server) listResources(ctx context.Context, req *mcp.ListResourcesRequest) (mcp.Result, error) {
	out := &mcp.ListResourcesResult{Resources: []*mcp.Resource{}}
	want := &filter{limit: pageSize}
	if req.Params != nil {
		want.after = req.Params.Cursor
	}
	if want.after == "" {
		all, err := s.runs.Definitions()
		if err != nil {
			return nil, resourceError(definitionsURI, err)
		}
		for _, d := range all {
			out.Resources = append(out.Resources, &mcp.Resource{
				URI: uriOf(definitionsURI, d.Name), Name: d.Name, Title: credential.Masked(d.Title), Description: credential.Masked(d.Description),
				MIMEType: "application/yaml",
			})
		}
	}
	runs, err := s.toldRuns(ctx, want)
	if err != nil {
		return nil, resourceError(runsURI, err)
	}
	for _, r := range runs.Runs {
		out.Resources = append(out.Resources, &mcp.Resource{
			URI: uriOf(runsURI, r.ID), Name: r.ID, Title: credential.Masked(r.Name),
			Description: credential.Masked(r.sentence()), MIMEType: "application/json",
		})
	}
	out.NextCursor = runs.Next
	return out, nil
}
