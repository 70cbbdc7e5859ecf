// SPDX-License-Identifier: Apache-2.0

// Package artifact stores files that agents write and read, such as reports, images and test logs.
// Each save of a name makes a new version.
//
//	files := artifact.InMemoryService()
//	_, err := files.Save(ctx, &artifact.SaveRequest{
//		AppName: "app", UserID: "ana", SessionID: "s1", FileName: "report.md",
//		Part: genai.NewPartFromText("# Report"),
//	})
//
// A file belongs to its session, unless its name starts with "user:", which makes all of the
// user's sessions in the application share it. Names and requests are those of ADK for Go. Package
// disk keeps files in a folder; package artifacttest tests your own service.
package artifact

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"google.golang.org/genai"
)

// ErrNotFound reports that the artifact, or the version of it, does not exist. It wraps
// fs.ErrNotExist.
var ErrNotFound = fmt.Errorf("artifact not found: %w", fs.ErrNotExist)

// KeyPrefixUser is the prefix of files that all sessions of a user share, but for the runs of the cases of evals: see session.KeyPrefixApp.
const KeyPrefixUser = "user:"

// Service stores artifacts. It is safe for concurrent use. Every method returns [ErrInvalid] for a
// request that lacks a field or has an invalid file name.
type Service interface {
	// Save stores a part as the next version of a file, or as the version in the request.
	Save(ctx context.Context, req *SaveRequest) (*SaveResponse, error)
	// Load fetches a version of a file. Errors: [ErrNotFound].
	Load(ctx context.Context, req *LoadRequest) (*LoadResponse, error)
	// Delete removes a file, or one version of it. Deleting a file that does not exist is not an
	// error.
	Delete(ctx context.Context, req *DeleteRequest) error
	// List returns the names of the files of a session and of its user, sorted.
	List(ctx context.Context, req *ListRequest) (*ListResponse, error)
	// Versions returns the versions of a file, the newest first. Errors: [ErrNotFound].
	Versions(ctx context.Context, req *VersionsRequest) (*VersionsResponse, error)
	// GetArtifactVersion describes a version of a file. Errors: [ErrNotFound].
	GetArtifactVersion(ctx context.Context, req *GetArtifactVersionRequest) (*GetArtifactVersionResponse, error)
}

// SaveRequest is a request to store a file.
type SaveRequest struct {
	AppName, UserID, SessionID, FileName string
	// Part is the content: a text or inline data. It is not copied, so do not change it afterwards.
	Part *genai.Part
	// Version is optional; 0 makes the next version, any other number overwrites that version.
	Version int64
}

// SaveResponse holds the number of the version that was written, from 1.
type SaveResponse struct{ Version int64 }

// LoadRequest is a request for a file.
type LoadRequest struct {
	AppName, UserID, SessionID, FileName string
	// Version is optional; 0 means the latest.
	Version int64
}

// LoadResponse holds the file. The part is shared and must not be changed.
type LoadResponse struct{ Part *genai.Part }

// DeleteRequest is a request to remove a file.
type DeleteRequest struct {
	AppName, UserID, SessionID, FileName string
	// Version is optional; 0 removes all versions.
	Version int64
}

// ListRequest is a request for the names of the files of a session and its user.
type ListRequest struct{ AppName, UserID, SessionID string }

// ListResponse holds file names.
type ListResponse struct{ FileNames []string }

// VersionsRequest is a request for the versions of a file.
type VersionsRequest struct{ AppName, UserID, SessionID, FileName string }

// VersionsResponse holds version numbers.
type VersionsResponse struct{ Versions []int64 }

// GetArtifactVersionRequest is a request for the description of a version.
type GetArtifactVersionRequest struct {
	AppName, UserID, SessionID, FileName string
	// Version is optional; 0 means the latest.
	Version int64
}

// GetArtifactVersionResponse holds the description.
type GetArtifactVersionResponse struct{ ArtifactVersion *ArtifactVersion }

// ArtifactVersion describes one version of a file, without its content. The
// type is ADK v2's; in v1 CreateTime was a number of seconds.
type ArtifactVersion struct {
	Version int64
	// CanonicalURI is the store's own URI of the content; empty if the store has none.
	CanonicalURI string
	// CustomMetadata is further data of the store; it may be nil.
	CustomMetadata map[string]any
	CreateTime     time.Time
	MimeType       string
}
